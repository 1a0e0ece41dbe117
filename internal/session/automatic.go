package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"switchboard/internal/wire"
)

// maxOpening is how many messages may stand before the end of the first user turn.
const maxOpening = 8

// automatic names a session by the opening of its conversation, which clients resend
// unchanged on every turn: user path, model, system context, tools and the messages through
// the first user turn. ok is false when there is no user turn among the first messages.
func automatic(r *wire.Request, userPath string) (id string, ok bool) {
	if r.Surface == wire.Embeddings {
		return "", false
	}
	o := opening{hash: sha256.New(), canonical: canonical{body: r.Body}}
	o.text("user path", userPath)
	o.text("model", r.Fields.Model)
	o.system(r.Fields.System)
	o.system(r.Fields.Instructions)
	if r.Fields.Tools.Found() {
		o.part("tools", r.Fields.Tools)
	}
	list := r.Fields.Messages
	if r.Surface == wire.Responses {
		list = r.Fields.Input
	}
	if !o.messages(list) {
		return "", false
	}
	return "auto-" + hex.EncodeToString(o.hash.Sum(nil)[:16]), true
}

// opening hashes labelled, length-prefixed parts, so that no two openings read alike.
type opening struct {
	hash hash.Hash
	canonical
}

func (o *opening) text(label, value string) {
	o.write([]byte(label))
	o.write([]byte(value))
}

func (o *opening) write(b []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(b)))
	o.hash.Write(length[:]) //nolint:errcheck // a hash never fails
	o.hash.Write(b)         //nolint:errcheck // a hash never fails
}

func (o *opening) part(label string, value wire.Span) {
	o.write([]byte(label))
	o.out = o.value(o.out[:0], value)
	o.write(o.out)
}

// system takes the system context: a string, or blocks of which the billing header, which
// is new on every request, is left out.
func (o *opening) system(value wire.Span) {
	if !value.Found() {
		return
	}
	o.write([]byte("system"))
	o.out = o.content(o.out[:0], value)
	o.write(o.out)
}

// messages takes the messages through the first user turn and tells whether there was one.
func (o *opening) messages(list wire.Span) bool {
	if !list.Found() {
		return false
	}
	if o.body[list.Start] == '"' { // responses: a string is one user message
		o.write([]byte("user"))
		o.out = o.value(o.out[:0], list)
		o.write(o.out)
		return true
	}
	found, seen := false, 0
	wire.Elements(o.body, list, func(message wire.Span) bool {
		if seen++; seen > maxOpening {
			return false
		}
		role, content, rest := o.message(message)
		switch role {
		case "developer":
			role = "system"
		case "system", "user":
		default:
			role = "other " + role
		}
		o.write([]byte(role))
		if content.Found() {
			o.out = o.content(o.out[:0], content)
			o.write(o.out)
		}
		o.out = append(o.out[:0], rest...)
		o.write(o.out)
		found = role == "user"
		return !found
	})
	return found
}
