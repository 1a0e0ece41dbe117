package audit_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

var update = flag.Bool("update", false, "write testdata anew")

func TestStatementsAreAsReviewed(t *testing.T) {
	for name, dialect := range map[string]audit.Dialect{
		"bound":    {Relations: flatTable().Relations},
		"literals": {Literals: true, OffsetFirst: true, Relations: flatTable().Relations},
	} {
		file := filepath.Join("testdata", name+".sql")
		got := golden(dialect)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("statements of dialect %s differ from %s; -update writes them (-want +got):\n%s", name, file, diff)
		}
	}
}

// No value is in the text of a statement that binds; in one with literals none can be
// anything but a literal.
func TestValuesAreNoText(t *testing.T) {
	for _, value := range []string{"zz'zz", "zz--zz", "zz;zz", "zz?1zz", "zz\x00zz", "zz\\zz", "zz\nzz", "zz/*zz"} {
		f := audit.Filter{SessionID: value, UserPath: value, Model: value, Provider: value, Outcome: value, Reason: value}
		for _, literals := range []bool{false, true} {
			d := audit.Dialect{Literals: literals, Relations: flatTable().Relations}
			for _, s := range []audit.Statement{
				d.Threads(f, audit.Page{Limit: 1}), d.ThreadsTotal(f), d.Log(f, audit.Page{Limit: 1}), d.LogTotal(f),
				d.Sessions(f, audit.Page{Limit: 1}), d.SessionsTotal(f), d.Summary(f), d.Daily(f),
			} {
				if strings.Contains(s.SQL, value) || !literals && strings.Contains(s.SQL, "zz") {
					t.Errorf("literals=%v: value %q is in the text:\n%s", literals, value, s.SQL)
				}
				if literals != (len(s.Args) == 0) {
					t.Errorf("literals=%v: Args = %q", literals, s.Args)
				}
			}
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"":           "''",
		"m-oai":      "('m' || chr(45) || 'oai')",
		"plain 1/2":  "'plain 1/2'",
		"it's":       "('it' || chr(39) || 's')",
		"'":          "chr(39)",
		"a\x00b":     "('a' || chr(0) || 'b')",
		"会":          "chr(20250)",
		"😀":          "chr(128512)",
		"bad\xffend": "('bad' || chr(65533) || 'end')",
		`\';--?`:     "(chr(92) || chr(39) || chr(59) || chr(45) || chr(45) || chr(63))",
	} {
		if got := audit.Quote(text); got != want {
			t.Errorf("Quote(%q) = %s, want %s", text, got, want)
		}
	}
}

// FuzzQuote: whatever the text, between quotes there is nothing that means something.
func FuzzQuote(f *testing.F) {
	f.Add("it's")
	f.Add("a\x00\\;--?é\xff")
	f.Fuzz(func(t *testing.T, text string) {
		quoted := audit.Quote(text)
		var back strings.Builder
		for _, part := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(quoted, "("), ")"), " || ") {
			if literal, ok := strings.CutPrefix(part, "'"); ok {
				literal = strings.TrimSuffix(literal, "'")
				if strings.ContainsAny(literal, "'\\;?-\x00\n*") || !utf8.ValidString(literal) {
					t.Fatalf("Quote(%q) = %s", text, quoted)
				}
				back.WriteString(literal)
				continue
			}
			var r rune
			for _, digit := range strings.TrimSuffix(strings.TrimPrefix(part, "chr("), ")") {
				r = r*10 + digit - '0'
			}
			back.WriteRune(r)
		}
		if !strings.HasSuffix(quoted, ")") && strings.Contains(quoted, "chr(") {
			t.Fatalf("Quote(%q) = %s", text, quoted)
		}
		if got, want := back.String(), strings.ToValidUTF8(text, "\uFFFD"); utf8.ValidString(text) && got != want {
			t.Errorf("Quote(%q) stands for %q", text, got)
		}
	})
}

func TestMillis(t *testing.T) {
	for nanos, want := range map[int64]int64{0: 0, 1: 1, 999_999: 1, 1_000_000: 1, 1_000_001: 2, -1: 0, -1_000_000: -1, -1_000_001: -1} {
		if got := audit.Millis(time.Unix(0, nanos)); got != want {
			t.Errorf("Millis(%d ns) = %d, want %d", nanos, got, want)
		}
	}
}

func TestNewestKeyOrders(t *testing.T) {
	keys := []string{
		audit.NewestKey(0, "a"), audit.NewestKey(9, "z"), audit.NewestKey(10, "a"), audit.NewestKey(10, "b"),
		audit.NewestKey(1_772_000_000_000, ""), audit.NewestKey(math.MaxInt64, "a"),
	}
	for i, key := range keys {
		if i > 0 && keys[i-1] >= key {
			t.Errorf("NewestKey: %q is not before %q", keys[i-1], key)
		}
	}
	if got := audit.TimeOfKey(keys[5]); got != math.MaxInt64 {
		t.Errorf("TimeOfKey(%q) = %d", keys[5], got)
	}
	if got := audit.TimeOfKey("x"); got != 0 {
		t.Errorf("TimeOfKey(x) = %d, want 0", got)
	}
}

// Every field of the event is a column, and is read back.
func TestEventColumnsAreTheFields(t *testing.T) {
	if got, want := len(audit.EventColumns()), 34; got != want {
		t.Errorf("%d columns, want %d", got, want)
	}
	usage := audit.UsageOf(&record.Event{Switched: true, Provider: "p"})
	if want := [11]int64{0: 1, 8: 1, 9: 1}; usage.Fields() != want || len(audit.UsageColumns()) != len(want) {
		t.Errorf("UsageOf(unpriced switch) = %v, want %v", usage.Fields(), want)
	}
}
