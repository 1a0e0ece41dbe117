package provider

// readMessages takes an event of Anthropic's messages surface.
func (s *Stream) readMessages(name, data []byte) Mark {
	kind := typeOf(name, data)
	switch string(kind) {
	case "content_block_delta":
		return Output
	case "content_block_start":
		return s.readBlockStart(data)
	case "message_start":
		s.walk(data, "message")
		return 0
	case "message_delta":
		s.final = s.walk(data, "") || s.final
		if stopReason(data) {
			return Output
		}
		return 0
	case "message_stop":
		return End | Done
	case "error":
		return s.fail(data)
	case "":
		if errorMember(data) {
			return s.fail(data)
		}
	}
	return 0 // ping, content_block_stop, and what is not known
}

// walk merges the usage object of the event, or of the event's member within. It tells
// whether output tokens were among it.
func (s *Stream) walk(data []byte, within string) bool {
	c := cursor{b: data}
	return s.mergeUsage(&c, within)
}

func (s *Stream) mergeUsage(c *cursor, within string) (output bool) {
	if !c.open('{') {
		return false
	}
	for {
		key, ok := c.key()
		if !ok {
			return output
		}
		switch {
		case within != "" && string(key) == within:
			output = s.mergeUsage(c, "")
		case within == "" && string(key) == "usage" && c.peek() == '{':
			output = s.merge(c)
		default:
			c.skip()
		}
	}
}

// merge takes a usage object over what is known: its numbers are cumulative.
func (s *Stream) merge(c *cursor) (output bool) {
	var t tokens
	tier := t.read(c)
	if c.bad {
		return false
	}
	for f := range fieldCount {
		bit := uint16(1) << f
		switch {
		case t.bad&bit != 0:
			s.tokens.bad |= bit
		case t.set&bit == 0:
		case t.n[f] == 0 && s.tokens.n[f] > 0 && f != fOutput:
			// A total cannot shrink to nothing: some gateways fill message_delta with zeros.
		default:
			s.tokens.n[f] = t.n[f]
			s.tokens.set |= bit
			s.tokens.bad &^= bit
		}
	}
	s.seen = true
	s.setTier(tier)
	return t.has(fOutput)
}

// readBlockStart: text, tool and thinking blocks begin empty and are filled by deltas;
// others (search results, redacted thinking) come whole.
func (s *Stream) readBlockStart(data []byte) Mark {
	c := cursor{b: data}
	if !c.open('{') {
		return 0
	}
	for {
		key, ok := c.key()
		if !ok {
			return 0
		}
		if string(key) != "content_block" {
			c.skip()
			continue
		}
		if blockHasContent(&c) {
			return Output
		}
	}
}

func blockHasContent(c *cursor) bool {
	if !c.open('{') {
		return false
	}
	var whole, filled bool
	for {
		key, ok := c.key()
		if !ok {
			return whole || filled
		}
		switch string(key) {
		case "type":
			switch string(c.str()) {
			case "text", "thinking", "tool_use", "server_tool_use", "mcp_tool_use":
			default:
				whole = true
			}
		case "text", "thinking":
			filled = c.filled() || filled
		default:
			c.skip()
		}
	}
}

// stopReason tells whether a message_delta says why the message ends.
func stopReason(data []byte) bool {
	c := cursor{b: data}
	if !c.open('{') {
		return false
	}
	for {
		key, ok := c.key()
		if !ok {
			return false
		}
		if string(key) != "delta" || !c.open('{') {
			if string(key) != "delta" {
				c.skip()
			}
			continue
		}
		for {
			inner, ok := c.key()
			if !ok {
				break
			}
			if string(inner) == "stop_reason" {
				return c.filled()
			}
			c.skip()
		}
	}
}
