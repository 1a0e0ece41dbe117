package config_test

import (
	"encoding/json"
	"log"
	"strings"
	"testing"

	"switchboard/internal/config"
)

// S-SEC-03, S-SEC-05: one line of JSON per entry, whoever writes it, and no key in it.
func TestSSEC03StrayLinesAreJSONWithoutQuotes(t *testing.T) {
	for given, want := range map[string]string{
		`Unsolicited response received on idle HTTP channel starting with "X: sk-test-AAAABBBBCCCCDDDD1234"; err=<nil>`: "Unsolicited response received on idle HTTP channel starting with",
		"net/http: something\n": "net/http: something",
		"two\nlines":            "two\nlines",
		`"all quoted"`:          "",
		"":                      "",
	} {
		var out strings.Builder
		log.New(config.Stray(&out), "", 0).Print(given)
		var line struct{ Level, Msg, Cause string }
		if err := json.Unmarshal([]byte(out.String()), &line); err != nil || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%q: logged %q (%v), want one line of JSON", given, out.String(), err)
		}
		if line.Level != "WARN" || line.Msg == "" || line.Cause != want {
			t.Errorf("%q: logged %+v, want cause %q", given, line, want)
		}
	}
}
