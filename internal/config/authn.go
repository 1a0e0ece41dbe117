package config

import (
	"crypto/sha256"
	"slices"
	"strconv"

	"switchboard/internal/auth"
)

// Auth modes.
const (
	ModeKeys = "keys" // a client key is needed
	ModeNone = "none" // everybody is let in; loopback only
	ModeIAM  = "iam"  // AWS checks the caller's signature before we are called
)

func (l *loader) auth(v value) {
	a := &l.cfg.Auth
	l.keysAt = v.at.key("keys")
	l.object(v,
		field{name: "mode", read: func(v value) {
			l.modeAt = l.valueAt(v)
			l.enum(&a.Mode, ModeKeys, ModeNone, ModeIAM)(v)
		}},
		field{name: "keys", read: l.clientKeys},
		field{name: "admin", read: l.adminKey},
	)
}

func (l *loader) clientKeys(v value) {
	l.keysAt = v.at
	digests := map[[32]byte]string{}
	names := map[string]string{}
	l.list(v, func(i int, item value) {
		key := auth.Key{Name: strconv.Itoa(i + 1)}
		good := false
		l.secretive(item,
			field{name: "name", read: func(v value) {
				s, ok := l.text(v)
				if !ok {
					return
				}
				if err := checkName(s); err != nil {
					l.fail(l.valueAt(v), "the name %v; write for example alpha", err)
					return
				}
				key.Name = s
			}},
			field{name: "sha256", missing: "the digest of the key; switchboard key new prints one", read: func(v value) {
				if key.SHA256, good = l.digest(v); !good {
					return
				}
				if other, twice := digests[key.SHA256]; twice {
					l.fail(l.valueAt(v), "the same key as %s; each client needs its own", other)
					good = false
					return
				}
				digests[key.SHA256] = item.at.path
			}},
			field{name: "user_path", read: func(v value) {
				s, ok := l.text(v)
				if !ok {
					return
				}
				path, err := auth.ParseUserPath(s)
				if err != nil {
					l.fail(l.valueAt(v), "%s is %v", show(s), err)
				}
				key.UserPath = path
			}},
		)
		if other, twice := names[key.Name]; twice {
			l.fail(item.at.key("name"), "%s is the name of %s already; choose another", show(key.Name), other)
			good = false
		}
		names[key.Name] = item.at.path
		if good {
			l.cfg.Auth.Keys = append(l.cfg.Auth.Keys, key)
		}
	})
}

func (l *loader) adminKey(v value) {
	l.secretive(v, field{name: "sha256", missing: "the digest of the admin key; or leave auth.admin out", read: func(v value) {
		if digest, ok := l.digest(v); ok {
			l.cfg.Auth.Admin = &digest
			l.adminAt = l.valueAt(v)
		}
	}})
}

// digest reads a SHA-256. Its text is never shown: it may be the key itself.
func (l *loader) digest(v value) (digest [32]byte, ok bool) {
	s, ok := l.text(v)
	if !ok {
		return digest, false
	}
	l.keepSecret(s)
	digest, err := parseDigest(s)
	switch {
	case err != nil:
		l.fail(l.valueAt(v), "%v", err)
		return digest, false
	case digest == sha256.Sum256(nil):
		l.fail(l.valueAt(v), "the digest of an empty key, which would let everybody in; switchboard key new prints a key and its digest")
		return digest, false
	}
	return digest, true
}

// finishAuth checks what depends on the address and on the environment.
func (l *loader) finishAuth(fileFound bool) {
	a := &l.cfg.Auth
	if key, ok := l.given(variable("SWITCHBOARD_ADMIN_KEY"), "SWITCHBOARD_ADMIN_KEY"); ok && key != "" {
		l.adminAt = variable("SWITCHBOARD_ADMIN_KEY")
		digest := sha256.Sum256([]byte(key))
		a.Admin = &digest
	}
	if a.Admin != nil && slices.ContainsFunc(a.Keys, func(k auth.Key) bool { return k.SHA256 == *a.Admin }) {
		l.fail(l.adminAt, "a client key is the admin key as well; the admin API needs a key of its own")
	}

	if l.problems.under("auth") {
		return // a mode or keys may only be missing because of what is said already
	}
	private := loopback(l.cfg.Listen) && !l.lambda
	if a.Mode == "" {
		a.Mode = ModeKeys
		if !fileFound && private {
			a.Mode = ModeNone
		}
	}
	where, instead, write := "listening on "+show(l.cfg.Listen), "use keys, or listen on 127.0.0.1", "write a "+defaultPath+" with auth.keys, or listen on 127.0.0.1"
	if l.lambda {
		where, instead, write = "on Lambda", "use keys, or iam with a Function URL of AuthType AWS_IAM", "set SWITCHBOARD_CONFIG to a file of the bundle or ssm:/path, with auth.keys"
	}
	switch {
	case a.Mode == ModeNone && !private:
		l.fail(l.modeAt, "none would let everybody in, %s; %s", where, instead)
	case a.Mode == ModeIAM && !loopback(l.cfg.Listen) && !l.carried:
		l.fail(l.modeAt, "iam would let everybody in, listening on %s: only a Lambda Function URL checks IAM; use keys", show(l.cfg.Listen))
	case a.Mode == ModeIAM && a.Open() && l.cfg.AWS.URLAuthType == "NONE":
		l.fail(l.modeAt, "iam would let everybody in: the Function URL's AuthType is NONE; make it AWS_IAM, or use keys")
	case a.Mode == ModeKeys && len(a.Keys) == 0 && !fileFound:
		l.fail(place{path: "auth.keys"}, "no client key, so nobody could call, %s; %s", where, write)
	case a.Mode == ModeKeys && len(a.Keys) == 0:
		at := l.keysAt
		if at.path == "" {
			at = place{"auth.keys", 1, 1}
		}
		elsewhere := ", or set auth.mode: none on a loopback address"
		if l.lambda {
			elsewhere = ""
		}
		l.fail(at, "no client key, so nobody could call; add one made by switchboard key new%s", elsewhere)
	}
}
