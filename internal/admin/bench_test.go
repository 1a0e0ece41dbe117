package admin_test

import (
	"net/http"
	"strconv"
	"testing"

	"switchboard/internal/audit"
)

// What a page costs beside its reader: fifty threads, a month of days, fifty sessions.
// Compare with benchstat over -count=10.
func BenchmarkPages(b *testing.B) {
	reader := filled()
	for i := range audit.DefaultLimit {
		e := moved()
		e.EventID = strconv.Itoa(i)
		reader.threads.Sessions = append(reader.threads.Sessions, audit.Thread{SessionID: "s1", UserPath: "/team", RequestCount: 9, Latest: e})
		reader.sessions.Entries = append(reader.sessions.Entries, reader.sessions.Entries[0])
	}
	a := asking(reader)
	for name, path := range map[string]string{
		"audit": "/admin/?days=all", "usage": "/admin/ui/usage?from=2026-02-01&to=2026-02-28", "threads JSON": "/admin/audit/sessions", "threads CSV": "/admin/audit/sessions?format=csv",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w := get(a, http.MethodGet, path, adminKey); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
