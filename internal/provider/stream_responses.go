package provider

import "bytes"

// readResponses takes an event of the responses surface.
func (s *Stream) readResponses(name, data []byte) Mark {
	kind := typeOf(name, data)
	switch string(kind) {
	case "response.completed", "response.incomplete":
		if !s.takeResponse(data) {
			return 0 // cut: the client cannot read it either
		}
		s.final = true
		return Output | End | Done
	case "response.failed", "response.cancelled":
		s.final = true
		s.takeResponse(data)
		return s.fail(data) | End | Done
	case "error":
		return s.fail(data)
	case "response.created", "response.in_progress", "response.queued":
		if s.id == "" {
			s.takeResponse(data)
		}
		return 0
	case "response.image_generation_call.partial_image",
		"response.output_text.annotation.added":
		return Output
	case "":
		if errorMember(data) {
			return s.fail(data)
		}
		return 0
	}
	if bytes.HasSuffix(kind, []byte(".delta")) || bytes.HasSuffix(kind, []byte(".done")) {
		return Output
	}
	return 0
}

// takeResponse reads what the response object of an event says; false if it is cut.
func (s *Stream) takeResponse(data []byte) bool {
	c := cursor{b: data}
	c.open('{')
	for {
		key, ok := c.key()
		if !ok {
			return !c.bad
		}
		if string(key) == "response" {
			s.responseObject(&c)
		} else {
			c.skip()
		}
	}
}

func (s *Stream) responseObject(c *cursor) {
	if !c.open('{') {
		return
	}
	for {
		key, ok := c.key()
		if !ok {
			return
		}
		switch string(key) {
		case "id":
			if id := c.str(); len(id) > 0 {
				s.id = unquote(id)
			}
		case "usage":
			s.takeUsage(c)
		case "service_tier":
			s.setTier(c.str())
		default:
			c.skip()
		}
	}
}
