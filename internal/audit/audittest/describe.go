package audittest

import (
	"fmt"
	"strings"
	"time"

	"switchboard/internal/audit"
)

// describe writes only what the filter names.
func describe(f audit.Filter, p *audit.Page) string {
	var parts []string
	for _, text := range [...]struct{ name, value string }{
		{"session_id", f.SessionID},
		{"user_path", f.UserPath},
		{"model", f.Model},
		{"provider", f.Provider},
		{"outcome", f.Outcome},
		{"reason", f.Reason},
	} {
		if text.value != "" {
			parts = append(parts, fmt.Sprintf("%s=%q", text.name, text.value))
		}
	}
	if f.PathOnly {
		parts = append(parts, fmt.Sprintf("path only (%q)", f.UserPath))
	}
	if f.Status != 0 {
		parts = append(parts, fmt.Sprint("status=", f.Status))
	}
	if !f.From.IsZero() {
		parts = append(parts, "from="+f.From.Format(time.RFC3339Nano))
	}
	if !f.To.IsZero() {
		parts = append(parts, "to="+f.To.Format(time.RFC3339Nano))
	}
	if p != nil {
		parts = append(parts, fmt.Sprintf("limit=%d offset=%d", p.Limit, p.Offset))
	}
	return strings.Join(parts, ", ")
}
