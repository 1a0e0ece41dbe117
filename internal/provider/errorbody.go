package provider

// ErrorBody puts an error body where clients of OpenAI's look for it, {"error":{…}}, at the
// vendors that have it elsewhere: out of an array, or around members that lie open. Other
// bodies are returned as they are; nothing that an error says is left out.
func (v *Vendor) ErrorBody(body []byte) []byte {
	if v.WrapsErrors {
		body = unwrap(body)
	}
	if v.FlatErrors {
		body = wrap(body)
	}
	return body
}

// unwrap takes the one object out of an array.
func unwrap(body []byte) []byte {
	inner := trim(body)
	if len(inner) < 4 || inner[0] != '[' {
		return body
	}
	c := cursor{b: inner, i: 1}
	if c.peek() != '{' {
		return body
	}
	object := c.raw()
	if object == nil || c.peek() != ']' {
		return body
	}
	return object
}

// wrap makes {"error":{"message":…}} of {"message":…}, and of {"code":…,"error":"…"}.
func wrap(body []byte) []byte {
	flat := trim(body)
	if !looksWhole(flat) {
		return body
	}
	var text, code []byte
	c := cursor{b: flat, i: 1}
	for {
		key, ok := c.key()
		if !ok {
			break
		}
		value := c.raw()
		switch string(key) {
		case "error":
			if len(value) == 0 || value[0] != '"' {
				return body
			}
			text = value
		case "code":
			code = value
		}
	}
	switch {
	case c.bad:
		return body
	case text == nil:
		return append(append([]byte(`{"error":`), flat...), '}')
	case code == nil:
		code = []byte("null")
	}
	out := append([]byte(`{"error":{"message":`), text...)
	out = append(append(out, `,"type":"invalid_request_error","code":`...), code...)
	return append(out, "}}"...)
}
