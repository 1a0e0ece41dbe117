package config

import "time"

// readFile reads the top level; the sections are beside it. false: the text is no mapping
// in YAML, which is said.
func (l *loader) readFile(text []byte) bool {
	root, ok := l.parse(text)
	l.prefetch(root.node)
	if !ok {
		return len(l.problems) == 0 // nothing but comments
	}
	return l.object(root,
		field{name: "listen", read: l.listen},
		field{name: "session_db_path", read: l.sessionDBPath},
		field{name: "log_level", read: l.enum(&l.cfg.LogLevel, logLevels()...)},
		field{name: "auth", read: l.auth},
		field{name: "session", read: l.session},
		field{name: "providers", read: l.providers},
		field{name: "virtual_models", read: l.virtualModels},
		field{name: "translation", read: l.readTranslation},
		field{name: "models_endpoint", read: l.modelsEndpoint},
		field{name: "routing", read: l.routing},
		field{name: "timeouts", read: l.timeouts},
		field{name: "degrade", read: l.degrade},
		field{name: "limits", read: l.limits},
	)
}

func (l *loader) listen(v value) {
	s, ok := l.text(v)
	if !ok {
		return
	}
	l.listenAt = l.valueAt(v)
	l.unused = append(l.unused, v.at.path)
	if err := checkListen(s); err != nil {
		l.fail(l.listenAt, "%s is %v", show(s), err)
		return
	}
	l.cfg.Listen = s
}

func (l *loader) sessionDBPath(v value) {
	s, ok := l.text(v)
	if ok && s == "" {
		l.fail(l.valueAt(v), "empty; name a file, or leave the key out for the platform's default")
	}
	l.unused = append(l.unused, v.at.path)
	l.cfg.SessionDBPath = s
}

func (l *loader) routing(v value) {
	l.object(v, field{name: "max_attempts", read: l.count(&l.cfg.MaxAttempts, 1, 100)})
}

func (l *loader) modelsEndpoint(v value) {
	l.object(v, field{name: "only_virtual", read: l.boolean(&l.cfg.OnlyVirtual)})
}

func (l *loader) timeouts(v value) {
	t := &l.cfg.Timeouts
	l.object(v,
		field{name: "connect", read: l.duration(&t.Connect)},
		field{name: "first_byte", read: l.duration(&t.FirstByte)},
		field{name: "first_byte_unary", read: l.duration(&t.FirstByteUnary)},
		field{name: "idle", read: l.duration(&t.Idle)},
	)
}

func (l *loader) degrade(v value) {
	d := &l.cfg.Degrade
	var noCreditMax, overloadMax, serverErrorMax, timeoutMax ceiling
	l.object(v,
		field{name: "rate_limit", read: l.duration(&d.RateLimit)},
		field{name: "subscription_rate_limit", read: l.duration(&d.SubscriptionRateLimit)},
		field{name: "no_credit", read: l.duration(&d.NoCredit)},
		field{name: "no_credit_max", read: noCreditMax.read(l)},
		field{name: "overload", read: l.duration(&d.Overload)},
		field{name: "overload_max", read: overloadMax.read(l)},
		field{name: "server_error", read: l.duration(&d.ServerError)},
		field{name: "server_error_max", read: serverErrorMax.read(l)},
		field{name: "server_error_after", read: l.count(&d.ServerErrorAfter, 1, 1000)},
		field{name: "timeout", read: l.duration(&d.Timeout)},
		field{name: "timeout_max", read: timeoutMax.read(l)},
		field{name: "model_not_found", read: l.duration(&d.ModelNotFound)},
	)
	noCreditMax.apply(l, "no_credit", d.NoCredit, &d.NoCreditMax)
	overloadMax.apply(l, "overload", d.Overload, &d.OverloadMax)
	serverErrorMax.apply(l, "server_error", d.ServerError, &d.ServerErrorMax)
	timeoutMax.apply(l, "timeout", d.Timeout, &d.TimeoutMax)
}

// ceiling is the time up to which a degradation doubles.
type ceiling struct {
	given time.Duration
	at    place
}

func (c *ceiling) read(l *loader) func(value) {
	return func(v value) {
		l.duration(&c.given)(v)
		c.at = l.valueAt(v)
	}
}

// apply refuses a ceiling below the time it starts from; the default one moves up with it.
func (c *ceiling) apply(l *loader, name string, start time.Duration, into *time.Duration) {
	switch {
	case c.given == 0:
		*into = max(*into, start)
	case c.given < start:
		l.fail(c.at, "%v is less than %s, which is %v; write at least that", c.given, name, start)
	default:
		*into = c.given
	}
}

func (l *loader) limits(v value) {
	l.object(v,
		field{name: "max_body", read: l.size(&l.cfg.MaxBody)},
		// A store key of DynamoDB has at most 2048 bytes.
		field{name: "max_session_id", read: l.count(&l.cfg.Session.MaxLength, 1, 2048)},
	)
}

func (l *loader) size(into *int64) func(value) {
	return func(v value) {
		s, ok := l.scalar(v)
		if !ok {
			l.fail(l.valueAt(v), "found %s where a size belongs; write for example 32MiB", kind(l.plain(v.node)))
			return
		}
		n, err := parseSize(s)
		if err != nil {
			l.fail(l.valueAt(v), "%s is %v", show(s), err)
			return
		}
		*into = n
	}
}
