package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/session"
)

// probedRules bounds the search for SESSION_HEADER_<N> without Source.Environ.
const probedRules = 64

// readEnvironment lays environment and flags over the file.
func (l *loader) readEnvironment() {
	l.override("SWITCHBOARD_LISTEN", "--listen", l.src.Listen, func(at place, s string) {
		l.listenAt = at
		if err := checkListen(s); err != nil {
			l.fail(at, "%s is %v", show(s), err)
			return
		}
		l.cfg.Listen = s
	})
	l.override("SWITCHBOARD_SESSION_DB", "--session-db", l.src.SessionDB, func(_ place, s string) {
		l.cfg.SessionDBPath = s
	})
	l.override("SWITCHBOARD_LOG_LEVEL", "--log-level", l.src.LogLevel, func(at place, s string) {
		if problem := checkEnum(s, logLevels()); problem != "" {
			l.fail(at, "%s", problem)
			return
		}
		l.cfg.LogLevel = s
	})
	l.toggle("SESSION_KEEPING_ENABLED", &l.cfg.Session.Enabled)
	l.toggle("SESSION_AUTO_DETECT", &l.cfg.Session.AutoDetect)
	l.toggle("SESSION_BUILTIN_RULES", &l.cfg.Session.BuiltinRules)
	l.toggle("KEEP_ONLY_ALIASES_AT_MODELS_ENDPOINT", &l.cfg.OnlyVirtual)
}

// override applies a flag, else a variable. Empty is not set.
func (l *loader) override(name, flag, given string, apply func(place, string)) {
	if given != "" {
		apply(variable(flag), given)
		return
	}
	if s := strings.TrimSpace(l.getenv(name)); s != "" {
		apply(variable(name), s)
	}
}

func (l *loader) toggle(name string, into *bool) {
	s := l.getenv(name)
	if strings.TrimSpace(s) == "" {
		return
	}
	b, err := parseBool(s)
	if err != nil {
		l.fail(variable(name), "%s is %v", show(s), err)
		return
	}
	*into = b
}

// headerRules reads SESSION_HEADER_<N> and its transform, in the order of N; gaps are fine.
func (l *loader) headerRules() []placedRule {
	const prefix, suffix = "SESSION_HEADER_", "_TRANSFORM"
	type numbered struct {
		n    int
		text string // as written: 01 and 1 are two variables
	}
	var found []numbered
	if l.src.Environ == nil {
		for n := 1; n <= probedRules; n++ {
			found = append(found, numbered{n, strconv.Itoa(n)})
		}
	} else {
		for _, variable := range l.src.Environ() {
			name, _, _ := strings.Cut(variable, "=")
			text, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			text = strings.TrimSuffix(text, suffix)
			if n, err := strconv.Atoi(text); err == nil && n >= 0 {
				found = append(found, numbered{n, text})
			}
		}
		slices.SortFunc(found, func(a, b numbered) int {
			return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.text, b.text))
		})
		found = slices.Compact(found)
	}
	var rules []placedRule
	for _, f := range found {
		name := prefix + f.text
		header := strings.TrimSpace(l.getenv(name))
		transform := strings.TrimSpace(l.getenv(name + suffix))
		switch {
		case header != "":
			rules = append(rules, placedRule{session.Rule{Header: header, Transform: transform}, variable(name)})
		case transform != "":
			l.fail(variable(name+suffix), "there is no %s; set it to the name of a header", name)
		}
	}
	return rules
}

// finish checks what depends on file and environment together.
func (l *loader) finish(fileFound bool) {
	l.finishSession(l.headerRules())
	if !l.providersGiven {
		l.environmentProviders()
	}
	l.finishProviders()
	l.finishTranslation()
	l.finishVirtuals()
	l.finishAuth(fileFound)
	l.finishFunction()
}
