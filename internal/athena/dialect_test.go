package athena_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"switchboard/internal/athena"
	"switchboard/internal/audit"
	"switchboard/internal/record"
)

var update = flag.Bool("update", false, "write testdata anew")

// statementsOf are the statements of one question.
func statementsOf(t *testing.T, ask func(context.Context, audit.Reader) error, edit ...func(*athena.Options)) (statements []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, &fake{}, edit...)
		if err := ask(t.Context(), r); err != nil {
			t.Error(err)
		}
		for _, q := range r.fake.queries {
			if q.database != "events" || q.workgroup != "audit" {
				t.Errorf("a query ran in database %q, workgroup %q", q.database, q.workgroup)
			}
		}
		statements = r.fake.statements()
	})
	return statements
}

func TestStatementsAreAsReviewed(t *testing.T) {
	f := audit.Filter{
		SessionID: "it's", UserPath: "/team", Model: "m-oai", Status: 429, Reason: "affinity",
		From: time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
	}
	p := audit.Page{Limit: 50, Offset: 100} // beyond the end: the total is asked for by itself
	var got txtar.Archive
	for _, question := range []struct {
		name string
		ask  func(context.Context, audit.Reader) error
	}{
		{"threads", func(ctx context.Context, r audit.Reader) error { _, err := r.Threads(ctx, f, p); return err }},
		{"log", func(ctx context.Context, r audit.Reader) error { _, err := r.Log(ctx, f, p); return err }},
		{"sessions", func(ctx context.Context, r audit.Reader) error { _, err := r.Sessions(ctx, f, p); return err }},
		{"summary", func(ctx context.Context, r audit.Reader) error { _, err := r.Summary(ctx, f); return err }},
		{"daily", func(ctx context.Context, r audit.Reader) error { _, err := r.Daily(ctx, f); return err }},
	} {
		for i, statement := range statementsOf(t, question.ask) {
			name := question.name
			if i > 0 {
				name += "-total"
			}
			got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(statement + "\n")})
		}
	}
	file := filepath.Join("testdata", "questions.txtar")
	if *update {
		if err := os.WriteFile(file, txtar.Format(&got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Files, got.Files, cmp.Transformer("text", func(data []byte) string { return string(data) })); diff != "" {
		t.Errorf("statements differ from %s; -update writes them (-want +got):\n%s", file, diff)
	}
}

// Whatever a filter has, a statement has it in quotes, where it means nothing: only the
// characters of plain literals, and chr(…).
func TestValuesAreLiterals(t *testing.T) {
	for _, value := range []string{
		"zz'zz", "zz''zz", "zz\"zz", "zz`zz", "zz--zz", "zz;zz", "zz?zz", "zz\x00zz", `zz\zz`, `zz\'zz`, "zz\nzz", "zz\x1bzz", "zz/*zz",
		"zz会zz", "zz😀zz", "zz\xffzz", "zz{{zz}}", "zz$1zz", "zz%zz", "zz\u2028zz", "zz\u202ezz", "zz' OR 1=1 --zz",
	} {
		f := audit.Filter{SessionID: value, UserPath: value, Model: value, Provider: value, Outcome: value, Reason: value}
		for _, statement := range statementsOf(t, func(ctx context.Context, r audit.Reader) error {
			_, err := r.Threads(ctx, f, audit.Page{Limit: 1})
			return err
		}) {
			if strings.Contains(statement, value) || !strings.Contains(statement, "e.session_id = ('zz") {
				t.Errorf("value %q stands in the statement:\n%s", value, statement)
			}
			for _, c := range statement {
				if c != '\n' && (c < ' ' || c > '~') || strings.ContainsRune(";?\\`\"{}$#", c) {
					t.Errorf("value %q: the statement has a %q:\n%s", value, c, statement)
				}
			}
			if strings.Count(statement, "'")%2 != 0 || strings.Contains(statement, "--") || strings.Contains(statement, "/*") {
				t.Errorf("value %q: the statement is open:\n%s", value, statement)
			}
		}
	}
}

func TestLongValuesAreRefused(t *testing.T) {
	for length, wantErr := range map[int]bool{200: false, 900: false, 901: true, 1 << 20: true} {
		for _, f := range []audit.Filter{
			{SessionID: strings.Repeat("'", length)},
			{UserPath: strings.Repeat("'", length)},
			{Model: strings.Repeat("'", length)},
			{Provider: strings.Repeat("'", length)},
			{Outcome: strings.Repeat("'", length)},
			{Reason: strings.Repeat("'", length)},
		} {
			synctest.Test(t, func(t *testing.T) {
				r := open(t, &fake{})
				_, err := r.Sessions(t.Context(), f, audit.Page{Limit: 200})
				if (err != nil) != wantErr || wantErr == (len(r.fake.queries) > 0) {
					t.Errorf("Sessions with a value of %d bytes = %v after %d queries", length, err, len(r.fake.queries))
				}
				for _, statement := range r.fake.statements() {
					if len(statement) > 262_144 {
						t.Errorf("a value of %d bytes makes a statement of %d", length, len(statement))
					}
				}
			})
		}
	}
}

// What statements read is what events have; that the table has the same is
// internal/templatetest's.
func TestColumnsAreTheEventsFields(t *testing.T) {
	var want []string
	for field := range reflect.TypeFor[record.Event]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want = append(want, name)
	}
	got := audit.EventColumns()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-record.Event +statements):\n%s", diff)
	}
}
