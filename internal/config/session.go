package config

import (
	"time"

	"switchboard/internal/auth"
	"switchboard/internal/session"
)

// placedRule is a session header rule and where it stands.
type placedRule struct {
	rule session.Rule
	at   place
}

func (l *loader) session(v value) {
	s := &l.cfg.Session
	l.object(v,
		field{name: "enabled", read: l.boolean(&s.Enabled)},
		field{name: "auto_detect", read: l.boolean(&s.AutoDetect)},
		field{name: "builtin_rules", read: l.boolean(&s.BuiltinRules)},
		field{name: "idle_ttl", read: l.idleTTL},
		field{name: "headers", read: l.sessionHeaders},
	)
}

func (l *loader) idleTTL(v value) {
	var d time.Duration
	l.duration(&d)(v)
	if d == 0 {
		return // said already
	}
	if d < time.Second {
		l.fail(l.valueAt(v), "%v is less than a second; the store counts in seconds", d)
		return
	}
	l.cfg.IdleTTL = d
}

func (l *loader) sessionHeaders(v value) {
	l.list(v, func(_ int, item value) {
		rule := placedRule{at: item.at}
		good := true
		ok := l.object(item,
			field{name: "header", missing: "the name of a header", read: func(v value) {
				var text bool
				rule.rule.Header, text = l.text(v)
				good = good && text
				rule.at = place{item.at.path + ".header", l.valueAt(v).line, l.valueAt(v).col}
			}},
			field{name: "transform", read: func(v value) {
				var text bool
				rule.rule.Transform, text = l.text(v)
				good = good && text
			}},
		)
		// Without a header object has said so.
		if ok && good && rule.at.path != item.at.path {
			l.fileRules = append(l.fileRules, rule)
		}
	})
}

// finishSession puts the environment's rules before the file's and has the session package
// check each, because it knows which headers carry credentials.
func (l *loader) finishSession(environment []placedRule) {
	for _, r := range append(environment, l.fileRules...) {
		alone := l.cfg.Session
		alone.Headers = []session.Rule{r.rule}
		if _, err := session.New(alone, auth.Headers()...); err != nil {
			l.fail(r.at, "%v", err)
			continue
		}
		l.cfg.Session.Headers = append(l.cfg.Session.Headers, r.rule)
	}
	if _, err := session.New(l.cfg.Session, auth.Headers()...); err != nil {
		l.fail(place{path: "session"}, "%v", err)
	}
}
