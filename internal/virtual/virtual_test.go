package virtual_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/mem"
	"switchboard/internal/provider"
	"switchboard/internal/route"
	"switchboard/internal/virtual"
	"switchboard/internal/wire"
)

// providers are A, B and C, each with m and one of its own: a, b, c.
func providers() []*provider.Provider {
	var list []*provider.Provider
	for _, identity := range []string{"A", "B", "C"} {
		list = append(list, &provider.Provider{
			Identity: identity, Type: "openai", StickyKeys: true, Surfaces: []wire.Surface{wire.Chat},
			Models: []provider.Model{{ID: "m", Upstream: "m"}, {ID: strings.ToLower(identity), Upstream: strings.ToLower(identity)}},
			Keys:   []provider.Key{{ID: "1", Text: identity + "-secret"}},
		})
	}
	return list
}

func declared() []route.Virtual {
	return []route.Virtual{{Source: "fixed", Affinity: true, Targets: []route.VirtualTarget{{Model: "A/a"}}}}
}

// instance is one process.
type instance struct {
	*testing.T
	*virtual.Models
	log *bytes.Buffer
}

func newInstance(t *testing.T, cell *mem.Cell) *instance {
	t.Helper()
	i := &instance{T: t, log: &bytes.Buffer{}}
	var err error
	if i.Models, err = virtual.New(providers(), declared(), cell, slog.New(slog.NewJSONHandler(i.log, nil))); err != nil {
		t.Fatal(err)
	}
	return i
}

// stored is a cell with these entries.
func stored(t *testing.T, entries ...string) *mem.Cell {
	t.Helper()
	cell := &mem.Cell{}
	data := `{"edit":"x","models":[` + strings.Join(entries, ",") + `]}`
	if err := cell.Swap(t.Context(), []byte(data), 0, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return cell
}

func change(t *testing.T, body string) virtual.Change {
	t.Helper()
	c, err := virtual.ParseChange([]byte(body))
	if err != nil {
		t.Fatalf("ParseChange(%s) = %v", body, err)
	}
	return c
}

// saves puts an edit of any version.
func (i *instance) saves(body string) virtual.Listing {
	i.Helper()
	l, err := i.Save(i.Context(), change(i.T, body))
	if err != nil {
		i.Fatalf("Save(%s) = %v", body, err)
	}
	return l
}

// refuses is the error of an edit that is not accepted, and sees to it that nothing changed.
func (i *instance) refuses(body string) error {
	i.Helper()
	before, err := i.List(i.Context())
	if err != nil {
		i.Fatal(err)
	}
	_, refusal := i.Save(i.Context(), change(i.T, body))
	after, err := i.List(i.Context())
	if refusal == nil || err != nil || after.Version != before.Version {
		i.Fatalf("Save(%s) = %v, version %d -> %d", body, refusal, before.Version, after.Version)
	}
	return refusal
}

// goes is where a request for a model would go, in order: "A/a B/m"; "-" for an unknown one.
func goes(c *route.Catalog, model string) string {
	d := c.Plan(route.Input{Model: model, Surface: wire.Chat})
	if !d.Known {
		return "-"
	}
	var list []string
	for _, a := range d.Attempts {
		list = append(list, a.Provider.Identity+"/"+a.Model.ID)
	}
	return strings.Join(list, " ")
}

func (i *instance) want(model, want string) {
	i.Helper()
	if got := goes(i.For(""), model); got != want {
		i.Errorf("%s goes to %q, want %q", model, got, want)
	}
}

func TestSaveListAndRemove(t *testing.T) {
	i := newInstance(t, &mem.Cell{})
	i.want("smart", "-")
	i.want("fixed", "A/a")
	l := i.saves(`{"source":"smart","strategy":"failover","targets":[{"model":"B/b","weight":3},{"provider":"C","model":"c"}],"description":"d"}`)
	i.want("smart", "B/b C/c")
	want := virtual.Listing{Version: 1, Models: []virtual.Listed{
		{Declared: true, Model: virtual.Model{
			Source: "fixed", Strategy: "round_robin", Affinity: true, Enabled: true,
			Targets: []virtual.Target{{Model: "A/a", Weight: 1}}, UserPaths: []string{},
		}},
		{Model: virtual.Model{
			Source: "smart", Strategy: "failover", Affinity: true, Enabled: true, Description: "d",
			Targets: []virtual.Target{{Model: "B/b", Weight: 3}, {Model: "C/c", Weight: 1}}, UserPaths: []string{},
		}},
	}}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
	i.saves(`{"source":"smart","target_model":"C/c"}`)
	i.want("smart", "C/c")
	i.saves(`{"source":"clever","old_source":"smart","target_model":"C/c"}`)
	i.want("smart", "-")
	i.want("clever", "C/c")
	if l, err := i.Remove(t.Context(), "clever", 3); err != nil || l.Version != 4 || len(l.Models) != 1 {
		t.Errorf("Remove = %+v, %v", l, err)
	}
	i.want("clever", "-")
	for source, want := range map[string]error{"clever": virtual.ErrNotFound, "fixed": virtual.ErrDeclared, "": virtual.ErrNotFound} {
		if _, err := i.Remove(t.Context(), source, virtual.AnyVersion); !errors.Is(err, want) {
			t.Errorf("Remove(%q) = %v, want %v", source, err, want)
		}
	}
}

func TestRefusedEditsNameTheField(t *testing.T) {
	i := newInstance(t, &mem.Cell{})
	i.saves(`{"source":"low","target_model":"m"}`)
	i.saves(`{"source":"high","target_model":"low"}`)
	for body, want := range map[string]string{
		`{"source":"x","target_model":"Z/z"}`:                                         `targets[0].model: target "Z/z" is neither`,
		`{"source":"x","targets":[{"model":"m"},{"model":"nothing"}]}`:                `targets[1].model: target "nothing" is neither`,
		`{"source":"x","target_model":"m","strategy":"fastest"}`:                      `strategy: there is no strategy "fastest"`,
		`{"source":"x","target_model":"x"}`:                                           `targets: its targets lead back to it: x -> x`,
		`{"source":"low","target_model":"high"}`:                                      `low -> high -> low`,
		`{"source":"low","targets":[{"model":"m"},{"model":"high"}],"enabled":false}`: `low -> high -> low`,
		`{"source":"high","old_source":"low","target_model":"m"}`:                     `source: there is a virtual model "high" already`,
		`{"source":"x","old_source":"nothing","target_model":"m"}`:                    virtual.ErrNotFound.Error(),
		`{"source":"fixed","target_model":"m"}`:                                       virtual.ErrDeclared.Error(),
		`{"source":"x","old_source":"fixed","target_model":"m"}`:                      virtual.ErrDeclared.Error(),
		`{"source":"fixed","old_source":"low","target_model":"m"}`:                    virtual.ErrDeclared.Error(),
		`{"source":"x","target_model":"m","version":1}`:                               virtual.ErrStale.Error(),
		`{"source":"x","target_model":"m","version":77}`:                              virtual.ErrStale.Error(),
	} {
		if err := i.refuses(body); !strings.Contains(err.Error(), want) {
			t.Errorf("Save(%s) = %q, want %q in it", body, err, want)
		}
	}
	if _, err := i.Remove(t.Context(), "low", virtual.AnyVersion); err == nil || !strings.Contains(err.Error(), `"high" has it as a target`) {
		t.Errorf("Remove of a target = %v, want that high has it", err)
	}
}

func TestDepth(t *testing.T) {
	i := newInstance(t, &mem.Cell{})
	below := "m"
	for n := 8; n >= 1; n-- {
		i.saves(fmt.Sprintf(`{"source":"v%d","target_model":%q}`, n, below))
		below = fmt.Sprint("v", n)
	}
	err := i.refuses(`{"source":"v0","target_model":"v1"}`)
	if want := "targets: virtual models are nested more than 8 deep below it: v0 -> v1 -> v2 -> v3 -> v4 -> v5 -> v6 -> v7 -> v8"; err.Error() != want {
		t.Errorf("nine deep = %q, want %q", err, want)
	}
	// Also from below.
	i.saves(`{"source":"v9","target_model":"m"}`)
	if err := i.refuses(`{"source":"v8","target_model":"v9"}`); !strings.Contains(err.Error(), "v7 -> v8 -> v9") {
		t.Errorf("nine deep from below = %q", err)
	}
}

// A rename takes those along that have it as a target.
func TestRenameIsFollowed(t *testing.T) {
	i := newInstance(t, &mem.Cell{})
	i.saves(`{"source":"low","target_model":"B/b"}`)
	i.saves(`{"source":"high","strategy":"failover","targets":[{"model":"low","weight":7},{"model":"C/c"}]}`)
	l := i.saves(`{"source":"lower","old_source":"low","target_model":"B/b"}`)
	i.want("high", "B/b C/c")
	if high, _ := l.Find("high"); high.Targets[0] != (virtual.Target{Model: "lower", Weight: 7}) {
		t.Errorf("high = %+v, want it to follow to lower", high)
	}
}

// A virtual model hides a real one of its name, which stays reachable as provider/model and
// as the target of the one that hides it.
func TestShadowing(t *testing.T) {
	i := newInstance(t, &mem.Cell{})
	l := i.saves(`{"source":"m","strategy":"failover","targets":[{"model":"C/c"},{"model":"m"}]}`)
	i.want("m", "C/c A/m B/m C/m")
	i.want("A/m", "A/m")
	if m, _ := l.Find("m"); !m.Hides {
		t.Error("hides_model = false, want true")
	}
	i.saves(`{"source":"m","target_model":"C/c","enabled":false}`)
	i.want("m", "A/m B/m C/m")
}

func TestDisabled(t *testing.T) {
	i := newInstance(t, &mem.Cell{})
	i.saves(`{"source":"low","target_model":"B/b","enabled":false}`)
	i.want("low", "-")
	i.saves(`{"source":"high","strategy":"failover","targets":[{"model":"low"},{"model":"C/c"}]}`)
	i.want("high", "C/c")
	l := i.saves(`{"source":"only","target_model":"low"}`)
	i.want("only", "-")
	if only, _ := l.Find("only"); only.Problem != "all of its targets are disabled" {
		t.Errorf("problem = %q", only.Problem)
	}
	l = i.saves(`{"source":"low","target_model":"B/b"}`)
	i.want("only", "B/b")
	i.want("high", "B/b C/c")
	if only, _ := l.Find("only"); only.Problem != "" {
		t.Errorf("problem = %q, want none any more", only.Problem)
	}
}

// What is stored may be anything; what cannot be used is left out, and said.
func TestBadDocuments(t *testing.T) {
	good := `{"source":"good","targets":[{"model":"B/b"}]}`
	for name, tt := range map[string]struct {
		entries  []string
		problems map[string]string // by source
	}{
		"not an object":     {[]string{`7`, good}, map[string]string{"": "cannot be read"}},
		"wrong types":       {[]string{`{"source":"x","targets":"m"}`, good}, map[string]string{"x": "cannot be read: targets"}},
		"no targets":        {[]string{`{"source":"x"}`, good}, map[string]string{"x": "targets: empty"}},
		"gone provider":     {[]string{`{"source":"x","targets":[{"model":"Z/z"}]}`, good}, map[string]string{"x": `target "Z/z" is neither`}},
		"and what needs it": {[]string{`{"source":"y","targets":[{"model":"x"}]}`, `{"source":"x","targets":[{"model":"Z/z"}]}`, good}, map[string]string{"x": `target "Z/z"`, "y": `target "x"`}},
		"circle":            {[]string{`{"source":"x","targets":[{"model":"y"}]}`, `{"source":"y","targets":[{"model":"x"}]}`, good}, map[string]string{"x": "x -> y -> x", "y": "x -> y -> x"}},
		"declared":          {[]string{`{"source":"fixed","targets":[{"model":"B/b"}]}`, good}, map[string]string{"fixed": "the configuration declares"}},
		"twice":             {[]string{good, `{"source":"good","targets":[{"model":"C/c"}]}`}, map[string]string{"good": "there are two"}},
		"bad strategy":      {[]string{`{"source":"x","strategy":"fastest","targets":[{"model":"m"}]}`, good}, map[string]string{"x": `no strategy "fastest"`}},
		"bad weight":        {[]string{`{"source":"x","targets":[{"model":"m","weight":0}]}`, good}, map[string]string{"x": "targets[0].weight: 0"}},
		"bad name":          {[]string{`{"source":"x\n","targets":[{"model":"m"}]}`, good}, map[string]string{"x\n": "source: the name"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstance(t, stored(t, tt.entries...))
			for range 3 {
				i.Refresh(t.Context(), time.Now())
			}
			i.want("good", "B/b")
			i.want("fixed", "A/a")
			l, err := i.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]string{}
			for _, m := range l.Models {
				if m.Problem != "" {
					found[m.Source] = m.Problem
				}
			}
			for source, want := range tt.problems {
				if !strings.Contains(found[source], want) {
					t.Errorf("problem of %q = %q, want %q in it", source, found[source], want)
				}
			}
			if len(found) != len(tt.problems) {
				t.Errorf("problems = %q, want %d", found, len(tt.problems))
			}
			if lines := strings.Count(i.log.String(), "\n"); lines != len(tt.problems) {
				t.Errorf("logged %d lines, want %d: %s", lines, len(tt.problems), i.log)
			}
			// The rest can be edited, and what is not understood survives it.
			after := i.saves(`{"source":"new","target_model":"C/c"}`)
			if len(after.Models) != len(l.Models)+1 {
				t.Errorf("after an edit there are %d, want %d", len(after.Models), len(l.Models)+1)
			}
			for source := range tt.problems {
				if _, err := i.Remove(t.Context(), source, virtual.AnyVersion); err != nil {
					t.Errorf("Remove(%q) = %v", source, err)
				}
			}
		})
	}
	for _, text := range []string{"{", "[]", `"x"`, "\x00\xff", `{"models":{}}`, `{"models":7}`} {
		cell := &mem.Cell{}
		if err := cell.Swap(t.Context(), []byte(text), 0, time.Time{}); err != nil {
			t.Fatal(err)
		}
		i := newInstance(t, cell)
		i.Refresh(t.Context(), time.Now())
		i.want("fixed", "A/a")
		if l, err := i.List(t.Context()); err != nil || !strings.Contains(l.Problem, "cannot be read") || len(l.Models) != 1 || !strings.Contains(i.log.String(), "problem") {
			t.Errorf("List of %q = %+v, %v; log %s", text, l, err, i.log)
		}
		i.saves(`{"source":"new","target_model":"C/c"}`)
		i.want("new", "C/c")
	}
}

func TestLimits(t *testing.T) {
	var entries []string
	for n := range 1000 {
		entries = append(entries, fmt.Sprintf(`{"source":"v%d","targets":[{"model":"m"}]}`, n))
	}
	i := newInstance(t, stored(t, entries...))
	if err := i.refuses(`{"source":"x","target_model":"m"}`); !strings.Contains(err.Error(), "1000") {
		t.Errorf("one too many = %v", err)
	}
	i.saves(`{"source":"v7","target_model":"B/b"}`)
	i = newInstance(t, stored(t, entries[:500]...))
	long := strings.Repeat("d", 1000)
	var err error
	for n := range 500 {
		if _, err = i.Save(t.Context(), change(t, fmt.Sprintf(`{"source":"v%d","target_model":"m","description":%q}`, n, long))); err != nil {
			break
		}
	}
	var field *virtual.FieldError
	if !errors.As(err, &field) || field.Field != "body" || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("too much in all = %v", err)
	}
}
