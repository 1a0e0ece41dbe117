package session

import "switchboard/internal/wire"

// maxOpening is how many messages the opening of a conversation may have.
const maxOpening = 8

// maxPooled is the largest buffer in bytes that is kept for the next request.
const maxPooled = 1 << 20

// opens tells whether a surface's requests resend the opening of their conversation.
func opens(s wire.Surface) bool {
	return s == wire.Chat || s == wire.Responses || s == wire.Messages
}

// automatic is the id of the conversation that the request's opening begins: what stays
// the same from turn to turn, whatever clients rewrite in it. Only the opening is read, not
// the history behind it. false: there is no user turn in the first messages, or the opening
// is not JSON.
func (i *Identifier) automatic(r *wire.Request, userPath string) (string, bool) {
	c := i.pool.Get().(*canonical) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	c.body, c.out, c.members, c.depth = r.Body, c.out[:0], c.members[:0], 0
	id, ok := "", c.opening(r, userPath)
	if ok {
		id = digest("auto-", c.out)
	}
	c.body = nil // the pool must not keep a body alive
	if cap(c.out)+cap(c.scratch) <= maxPooled {
		i.pool.Put(c)
	}
	return id, ok
}

// opening writes the canonical form of the request's opening: the parts in a fixed order,
// each behind a letter that no value begins with.
func (c *canonical) opening(r *wire.Request, userPath string) bool {
	f := &r.Fields
	c.text("switchboard opening 1")
	c.text(userPath)
	c.text(f.Model)
	// Behind a response whose session is not known any more stands no opening, only a turn
	// such as "go on": the response's id keeps different conversations apart.
	if f.PreviousResponse != "" {
		c.out = append(c.out, 'P')
		c.text(f.PreviousResponse)
	}
	c.out = append(c.out, 'S')
	if !c.context(f.System) {
		return false
	}
	c.out = append(c.out, 'I')
	if !c.context(f.Instructions) {
		return false
	}
	c.out = append(c.out, 'T')
	if !c.tools(f.Tools) {
		return false
	}
	c.out = append(c.out, 'M')
	if r.Surface == wire.Responses {
		return c.input(f.Input)
	}
	return c.messages(f.Messages)
}

// context writes a system prompt; nothing when it is absent, null or has no text.
func (c *canonical) context(value wire.Span) bool {
	if !value.Found() || c.body[value.Start] == 'n' {
		return true
	}
	_, ok := c.content(value.Start, systemMessage)
	return ok
}

// tools writes the tools; nothing when there are none.
func (c *canonical) tools(value wire.Span) bool {
	if !value.Found() || c.body[value.Start] == 'n' {
		return true
	}
	start := len(c.out)
	_, ok := c.value(value.Start)
	if string(c.out[start:]) == "[]" {
		c.out = c.out[:start]
	}
	return ok
}

// input writes the input of the Responses surface, where a text is one user message.
func (c *canonical) input(value wire.Span) bool {
	if !value.Found() || c.body[value.Start] != '"' {
		return c.messages(value)
	}
	c.out = append(c.out, '{')
	c.text("content")
	if _, ok := c.value(value.Start); !ok {
		return false
	}
	c.text("role")
	c.text("user")
	c.out = append(c.out, '}')
	return true
}

// messages writes the messages through the first user turn, and tells whether there is one.
func (c *canonical) messages(array wire.Span) bool {
	count, user, broken := 0, false, false
	whole := wire.Elements(c.body, array, func(message wire.Span) bool {
		if count++; count > maxOpening {
			return false
		}
		var kind kind
		kind, user = c.kindOf(message)
		_, ok := c.object(message.Start, kind)
		broken = !ok
		return ok && !user
	})
	return whole && user && !broken
}

// kindOf reads a message's role ahead of its other members, which may stand before it.
func (c *canonical) kindOf(message wire.Span) (kind kind, user bool) {
	kind = otherMessage
	wire.Members(c.body, message, func(key, value wire.Span) bool {
		if !wire.Is(c.body, key, "role") {
			return true
		}
		user = wire.Is(c.body, value, "user")
		if wire.Is(c.body, value, "system") || wire.Is(c.body, value, "developer") {
			kind = systemMessage
		}
		return false
	})
	return kind, user
}
