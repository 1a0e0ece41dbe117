package sqlite_test

import (
	"testing"

	"switchboard/internal/sqlite"
)

func TestDefaultPath(t *testing.T) {
	tests := []struct {
		name, goos, home, want string
		env                    map[string]string
	}{
		{"linux", "linux", "/home/u", "/home/u/.local/state/switchboard/sessions.db", nil},
		{"linux with XDG", "linux", "/home/u", "/state/switchboard/sessions.db", map[string]string{"XDG_STATE_HOME": "/state"}},
		{"linux with XDG, no home", "linux", "", "/state/switchboard/sessions.db", map[string]string{"XDG_STATE_HOME": "/state/"}},
		{"linux, relative XDG is ignored", "linux", "/home/u", "/home/u/.local/state/switchboard/sessions.db", map[string]string{"XDG_STATE_HOME": "state"}},
		{"freebsd", "freebsd", "/home/u", "/home/u/.local/state/switchboard/sessions.db", nil},
		{"linux, no home", "linux", "", "", nil},
		{"darwin", "darwin", "/Users/u", "/Users/u/Library/Application Support/switchboard/sessions.db", map[string]string{"XDG_STATE_HOME": "/state"}},
		{"darwin, no home", "darwin", "", "", nil},
		{"windows", "windows", `C:\Users\u`, `D:\Local\switchboard\sessions.db`, map[string]string{"LOCALAPPDATA": `D:\Local`}},
		{"windows without LOCALAPPDATA", "windows", `C:\Users\u`, `C:\Users\u\AppData\Local\switchboard\sessions.db`, nil},
		{"windows, nothing known", "windows", "", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sqlite.DefaultPath(tt.goos, func(name string) string { return tt.env[name] }, tt.home)
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("DefaultPath(%q, %v, %q) = %q, %v, want %q", tt.goos, tt.env, tt.home, got, err, tt.want)
			}
		})
	}
}
