package virtual_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/virtual"
)

func TestParseChange(t *testing.T) {
	full := virtual.Model{
		Source: "s", Strategy: "cost", UserPaths: []string{"/team/a", "/"}, Description: "two\nlines",
		Targets: []virtual.Target{{Model: "A/m", Weight: 1}, {Model: "B/x/y", Weight: 1000}},
	}
	short := virtual.Model{Source: "s", Strategy: "round_robin", Affinity: true, Enabled: true, UserPaths: []string{}, Targets: []virtual.Target{{Model: "m", Weight: 1}}}
	for body, want := range map[string]virtual.Change{
		`{"source":"s","target_model":"m"}`:                                     {Model: short, Version: virtual.AnyVersion},
		`{"source":"s","targets":[{"model":"m"}],"version":0,"old_source":"o"}`: {Model: short, OldSource: "o"},
		`{"source":"s","targets":[{"model":"m","weight":null}],"session_affinity":null,"enabled":null,"user_paths":null,"strategy":"","version":null}`: {Model: short, Version: virtual.AnyVersion},
		`{"source":"s","strategy":"cost","session_affinity":false,"enabled":false,"user_paths":["/team/a","/team/a/","/"],"description":"two\nlines",
		  "targets":[{"model":"A/m"},{"provider":"B","model":"x/y","weight":1000}],"version":7,"declared":false,"hides_model":true,"problem":"p"}`: {Model: full, Version: 7},
	} {
		got, err := virtual.ParseChange([]byte(body))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("ParseChange(%s) = %v (-want +got):\n%s", body, err, diff)
		}
	}
}

// Whatever a listing says can be sent back.
func TestAListingCanBeSentBack(t *testing.T) {
	i := newInstance(t, stored(t, `{"source":"gone","targets":[{"model":"Z/z"}]}`))
	l := i.saves(`{"source":"smart","targets":[{"model":"B/b","weight":2}],"user_paths":["/a"]}`)
	for _, m := range l.Models {
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := change(t, string(body)); !cmp.Equal(got.Model, m.Model) {
			t.Errorf("sent back: %s", cmp.Diff(m.Model, got.Model))
		}
	}
}

func TestParseChangeNamesTheField(t *testing.T) {
	long := strings.Repeat("x", 201)
	for body, field := range map[string]string{
		``: "body", `null`: "source", `[]`: "body", `7`: "body", `{`: "body", `{} {}`: "body", "\xff": "body",
		`{"target_model":"m"}`:                                                                      "source",
		`{"source":"","target_model":"m"}`:                                                          "source",
		`{"source":" s","target_model":"m"}`:                                                        "source",
		`{"source":"s\u0000","target_model":"m"}`:                                                   "source",
		`{"source":"` + long + `","target_model":"m"}`:                                              "source",
		`{"source":7,"target_model":"m"}`:                                                           "source",
		`{"source":"s"}`:                                                                            "targets",
		`{"source":"s","targets":[]}`:                                                               "targets",
		`{"source":"s","targets":{}}`:                                                               "targets",
		`{"source":"s","targets":["m"]}`:                                                            "targets",
		`{"source":"s","targets":[{"model":"m"},{}]}`:                                               "targets[1].model",
		`{"source":"s","targets":[{"model":"m\n"}]}`:                                                "targets[0].model",
		`{"source":"s","targets":[{"model":"m","wieght":1}]}`:                                       "wieght",
		`{"source":"s","targets":[{"model":"m","weight":0}]}`:                                       "targets[0].weight",
		`{"source":"s","targets":[{"model":"m","weight":1001}]}`:                                    "targets[0].weight",
		`{"source":"s","targets":[{"model":"m","weight":-1}]}`:                                      "targets[0].weight",
		`{"source":"s","targets":[{"model":"m","weight":1.5}]}`:                                     "targets.weight",
		`{"source":"s","targets":[{"provider":"A ","model":""}]}`:                                   "targets[0].model",
		`{"source":"s","targets":[{"provider":" A","model":"m"}]}`:                                  "targets[0].provider",
		`{"source":"s","target_model":"","targets":[]}`:                                             "target_model",
		`{"source":"s","target_model":"m","targets":[{"model":"m"}]}`:                               "target_model",
		`{"source":"s","target_model":"m","enabled":"yes"}`:                                         "enabled",
		`{"source":"s","target_model":"m","session_affinity":1}`:                                    "session_affinity",
		`{"source":"s","target_model":"m","strategy":1}`:                                            "strategy",
		`{"source":"s","target_model":"m","user_paths":"/a"}`:                                       "user_paths",
		`{"source":"s","target_model":"m","user_paths":["/a","team"]}`:                              "user_paths[1]",
		`{"source":"s","target_model":"m","user_paths":[""]}`:                                       "user_paths[0]",
		`{"source":"s","target_model":"m","user_paths":["/a//b"]}`:                                  "user_paths[0]",
		`{"source":"s","target_model":"m","description":"a\u0007"}`:                                 "description",
		`{"source":"s","target_model":"m","version":-1}`:                                            "version",
		`{"source":"s","target_model":"m","version":"7"}`:                                           "version",
		`{"source":"s","target_model":"m","stratgy":"cost"}`:                                        "stratgy",
		`{"source":"s","target_model":"m","description":"` + strings.Repeat("d", 1001) + `"}`:       "description",
		`{"source":"s","targets":[` + strings.Repeat(`{"model":"m"},`, 100) + `{"model":"m"}]}`:     "targets",
		`{"source":"s","target_model":"m","user_paths":[` + strings.Repeat(`"/a",`, 100) + `"/a"]}`: "user_paths",
	} {
		_, err := virtual.ParseChange([]byte(body))
		var at *virtual.FieldError
		if !errors.As(err, &at) || at.Field != field || at.Text == "" {
			t.Errorf("ParseChange(%.100s) = %v, want a fault of %s", body, err, field)
		}
	}
}

func FuzzParseChange(f *testing.F) {
	f.Add([]byte(`{"source":"s","targets":[{"model":"m","weight":2}],"user_paths":["/a"],"version":3}`))
	f.Add([]byte(`{"source":"s","target_model":"m","declared":{},"enabled":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := virtual.ParseChange(body)
		if err != nil {
			if at := (*virtual.FieldError)(nil); !errors.As(err, &at) {
				t.Fatalf("ParseChange error = %T %v", err, err)
			}
			return
		}
		again, err := json.Marshal(c.Model)
		if err != nil {
			t.Fatal(err)
		}
		back, err := virtual.ParseChange(again)
		if err != nil || !cmp.Equal(back.Model, c.Model) {
			t.Errorf("%s comes back as %+v, %v", again, back.Model, err)
		}
	})
}
