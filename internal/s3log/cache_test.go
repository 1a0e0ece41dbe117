package s3log

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/audit"
)

// A file that is damaged, of another version or of another bucket is made anew.
func TestCacheIsReplaced(t *testing.T) {
	s := newShelf()
	s.put(hour23+"x", made("A", "2026-02-28 23:30:00"))
	now := newClock("2026-02-28 23:50:00")
	for name, spoil := range map[string]func(t *testing.T, path string, o *Options){
		"garbage": func(t *testing.T, path string, _ *Options) { write(t, path, []byte(strings.Repeat("garbage ", 4000))) },
		"empty":   func(t *testing.T, path string, _ *Options) { write(t, path, nil) },
		"cut":     func(t *testing.T, path string, _ *Options) { mustDo(t, os.Truncate(path, 10_000)) },
		"another version": func(t *testing.T, path string, _ *Options) {
			c, err := openConn(path, 100, 0x2) // SQLITE_OPEN_READWRITE
			mustDo(t, err, query(c, "PRAGMA user_version = 7", nil), c.Close())
		},
		"another bucket": func(_ *testing.T, _ string, o *Options) { o.Source = "other" },
		"another prefix": func(_ *testing.T, _ string, o *Options) { o.Prefix = "events2/" },
		"damaged inside": func(t *testing.T, path string, _ *Options) {
			data, err := os.ReadFile(path)
			mustDo(t, err)
			for i := 8192; i < len(data); i++ { // all but the schema
				data[i] = 0xaa
			}
			write(t, path, data)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Bucket: s, Now: now.Now, Dir: filepath.Join(t.TempDir(), "new", "dir")}
			r, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			logOf(t, r, "", "")
			mustDo(t, r.Close(), r.Close())
			spoil(t, filepath.Join(o.Dir, cacheName), &o)
			r = open(t, o)
			want := "A"
			if name == "another prefix" {
				want = ""
			}
			if got, coverage := logOf(t, r, "", ""); got != want || !coverage.Complete {
				t.Errorf("Log = %q, %+v, want %q", got, coverage, want)
			}
			if got, _ := logOf(t, r, "", ""); got != want {
				t.Errorf("Log again = %q, want %q", got, want)
			}
		})
	}
	if _, err := Open(t.Context(), Options{Bucket: s, Dir: "/dev/null/x"}); err == nil {
		t.Error("Open in no directory = nil, want an error")
	}
	r := open(t, Options{Bucket: s})
	mustDo(t, r.Close())
	if _, err := r.Daily(t.Context(), audit.Filter{}); !errors.Is(err, errClosed) {
		t.Errorf("Daily after Close = %v, want %v", err, errClosed)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	mustDo(t, os.WriteFile(path, data, 0o600))
}
