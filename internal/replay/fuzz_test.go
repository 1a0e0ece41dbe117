package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"switchboard/internal/record/recordtest"
	"switchboard/internal/replay"
)

// FuzzLines: any log is read to its end; what is found is one line of JSON with an id; the
// way the bytes come makes no difference; and neither does a log beside it.
func FuzzLines(f *testing.F) {
	line := undelivered(recordtest.Full(1))
	for _, seed := range []string{
		"", line, unwritten(recordtest.Full(2)), request(line), line[:300], line[100:], line + line + "\n\n" + line,
		`{"message":` + quoted(line) + `}`, "2026 " + line, "    \"message\": " + quoted(line) + ",", "[" + quoted(line) + "]",
		`{"events":[{"message":` + quoted(line) + `}]}`, `{"field":"@message","value":` + quoted(line) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		var all []string
		for event, err := range replay.Lines(bytes.NewReader(log)) {
			var line *replay.LineError
			switch {
			case errors.As(err, &line):
				all = append(all, err.Error())
			case err != nil:
				t.Fatal(err)
			default:
				var fields map[string]any
				if err := json.Unmarshal(event.JSON, &fields); err != nil || event.EventID == "" || bytes.ContainsAny(event.JSON, "\n\r") {
					t.Fatalf("event %q: %v", event.JSON, err)
				}
				all = append(all, string(event.JSON))
			}
		}
		var again []string
		for event, err := range replay.Lines(iotest.OneByteReader(strings.NewReader("a log before\n" + string(log)))) {
			var line *replay.LineError
			if errors.As(err, &line) {
				line.Line--
				again = append(again, line.Error())
			} else {
				again = append(again, string(event.JSON))
			}
		}
		if strings.Join(all, "\n") != strings.Join(again, "\n") {
			t.Fatalf("read at once:\n%q\nbyte by byte, later:\n%q", all, again)
		}
	})
}
