package carrier

import "errors"

// span is a text in an event's small texts.
type span struct{ from, to int }

type field struct{ name, value span }

// event is what is read of a Function URL event (payload version 2.0). The body stays in
// the buffer the event came in. The small texts are gathered in one, so that they become
// strings by one allocation.
type event struct {
	text []byte

	method, host, sourceIP, path span // of the request context
	rawPath, rawQuery            span
	headers                      []field // names in canonical form
	cookies                      []span

	body   []byte
	base64 bool // the body still has to be decoded
}

// notOurs is an event that did not come from a Function URL.
type notOurs struct{ cause error }

func (e *notOurs) Error() string { return "not a Function URL event: " + e.cause.Error() }

func (e *notOurs) Unwrap() error { return e.cause }

var errNoMethod = errors.New("it has no requestContext.http.method")

// decode reads buf, which it changes: the body is unescaped where it stands. Members that
// are not needed are passed over, and of a member that comes twice the last counts.
func (e *event) decode(buf []byte) error {
	*e = event{text: e.text[:0], headers: e.headers[:0], cookies: e.cookies[:0]}
	i := skipSpace(buf, 0)
	if i >= len(buf) || buf[i] != '{' {
		return &notOurs{errSyntax}
	}
	i, err := e.object(buf, i, func(name []byte, i int) (int, error) { return e.member(buf, name, i) })
	if err != nil {
		return &notOurs{err}
	}
	if skipSpace(buf, i) != len(buf) {
		return &notOurs{errSyntax}
	}
	if e.method.from == e.method.to {
		return &notOurs{errNoMethod}
	}
	return nil
}

// object calls member for each member of the object at i, with its name and the offset of
// its value. The name is good until member appends to the texts.
func (e *event) object(buf []byte, i int, member func(name []byte, i int) (int, error)) (int, error) {
	return list(buf, i, '{', '}', func(i int) (int, error) {
		if i >= len(buf) || buf[i] != '"' {
			return 0, errSyntax
		}
		mark := len(e.text)
		name, i, err := e.string(buf, i)
		if err != nil {
			return 0, err
		}
		i = skipSpace(buf, i)
		if i >= len(buf) || buf[i] != ':' {
			return 0, errSyntax
		}
		i = skipSpace(buf, i+1)
		e.text = e.text[:mark]
		return member(e.text[name.from:name.to:name.to], i)
	})
}

func (e *event) member(buf, name []byte, i int) (next int, err error) {
	switch string(name) {
	case "rawPath":
		e.rawPath, next, err = e.string(buf, i)
	case "rawQueryString":
		e.rawQuery, next, err = e.string(buf, i)
	case "headers":
		e.headers = e.headers[:0]
		next, err = e.object(buf, i, func(name []byte, i int) (int, error) { return e.header(buf, name, i) })
	case "cookies":
		e.cookies = e.cookies[:0]
		next, err = list(buf, i, '[', ']', func(i int) (int, error) {
			cookie, next, err := e.string(buf, i)
			e.cookies = append(e.cookies, cookie)
			return next, err
		})
	case "requestContext":
		e.host, e.method, e.sourceIP, e.path = span{}, span{}, span{}, span{}
		next, err = e.object(buf, i, func(name []byte, i int) (int, error) { return e.context(buf, name, i) })
	case "body":
		e.body = nil
		if isNull(buf, i) {
			return i + len("null"), nil
		}
		if i >= len(buf) || buf[i] != '"' {
			return 0, errSyntax
		}
		var to int
		if to, next, err = unescape(buf, i+1); err == nil {
			e.body = buf[i+1 : to : to]
		}
	case "isBase64Encoded":
		next, err = skipValue(buf, i)
		if err == nil {
			e.base64 = string(buf[i:next]) == "true"
		}
	default:
		next, err = skipValue(buf, i)
	}
	return next, err
}

// context reads a member of the request context.
func (e *event) context(buf, name []byte, i int) (next int, err error) {
	switch string(name) {
	case "domainName":
		e.host, next, err = e.string(buf, i)
		return next, err
	case "http":
		e.method, e.sourceIP, e.path = span{}, span{}, span{}
		return e.object(buf, i, func(name []byte, i int) (next int, err error) {
			switch string(name) {
			case "method":
				e.method, next, err = e.string(buf, i)
			case "sourceIp":
				e.sourceIP, next, err = e.string(buf, i)
			case "path":
				e.path, next, err = e.string(buf, i)
			default:
				next, err = skipValue(buf, i)
			}
			return next, err
		})
	}
	return skipValue(buf, i)
}

// header keeps one header. A name that comes twice, in whatever case, keeps its last value.
func (e *event) header(buf, name []byte, i int) (int, error) {
	canonical(name)
	kept := span{len(e.text), len(e.text) + len(name)}
	e.text = append(e.text, name...)
	value, next, err := e.string(buf, i)
	if err != nil {
		return 0, err
	}
	for k := range e.headers {
		if f := &e.headers[k]; string(e.text[f.name.from:f.name.to]) == string(e.text[kept.from:kept.to]) {
			f.value = value
			return next, nil
		}
	}
	e.headers = append(e.headers, field{kept, value})
	return next, nil
}

// string gathers the string at i and returns the offset behind it. A null is an empty string.
func (e *event) string(buf []byte, i int) (span, int, error) {
	from := len(e.text)
	if isNull(buf, i) {
		return span{from, from}, i + len("null"), nil
	}
	if i >= len(buf) || buf[i] != '"' {
		return span{}, 0, errSyntax
	}
	next, err := skipString(buf, i)
	if err != nil {
		return span{}, 0, err
	}
	e.text = append(e.text, buf[i+1:next]...)
	to, _, err := unescape(e.text, from) // up to the closing quote, which came along
	if err != nil {
		return span{}, 0, err
	}
	e.text = e.text[:to]
	return span{from, to}, next, nil
}

// canonical turns a header's name, which Lambda gives in lower case, into the form that
// http.CanonicalHeaderKey has, where it stands. A text that is no name stays as it is.
func canonical(name []byte) {
	for _, c := range name {
		if !isToken(c) {
			return
		}
	}
	upper := true
	for i, c := range name {
		switch {
		case upper && 'a' <= c && c <= 'z':
			name[i] = c - ('a' - 'A')
		case !upper && 'A' <= c && c <= 'Z':
			name[i] = c + ('a' - 'A')
		}
		upper = c == '-'
	}
}

// isToken reports whether c may stand in a header's name (RFC 9110, 5.6.2).
func isToken(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return false
}
