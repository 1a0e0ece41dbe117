package sqlite

import (
	"errors"
	"path"
	"strings"
)

// DefaultPath is where the database lives when nothing else is configured (DESIGN 6), for
// the platform goos: $XDG_STATE_HOME or ~/.local/state, ~/Library/Application Support, or
// %LOCALAPPDATA%, then switchboard/sessions.db. home may be empty where it is not needed.
func DefaultPath(goos string, getenv func(string) string, home string) (string, error) {
	const app, file = "switchboard", "sessions.db"
	switch goos {
	case "windows":
		base := getenv("LOCALAPPDATA")
		if base == "" && home != "" {
			base = home + `\AppData\Local`
		}
		if base == "" {
			return "", errors.New("sqlite: default path: neither LOCALAPPDATA nor a home directory is known; set session_db_path")
		}
		return strings.TrimRight(base, `\/`) + `\` + app + `\` + file, nil
	case "darwin", "ios":
		if home == "" {
			return "", errors.New("sqlite: default path: no home directory is known; set session_db_path")
		}
		return path.Join(home, "Library", "Application Support", app, file), nil
	}
	// The XDG specification has a relative path ignored.
	if state := getenv("XDG_STATE_HOME"); path.IsAbs(state) {
		return path.Join(state, app, file), nil
	}
	if home == "" {
		return "", errors.New("sqlite: default path: neither XDG_STATE_HOME nor a home directory is known; set session_db_path")
	}
	return path.Join(home, ".local", "state", app, file), nil
}
