package functionurl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// maxPrelude is the most that status, headers and cookies of a streamed response may take.
const maxPrelude = 64 << 10

var (
	errPrelude  = errors.New("malformed prelude")
	errAnswer   = errors.New("malformed response")
	errTooLarge = fmt.Errorf("response payload size exceeded maximum allowed payload size (%d bytes)", responseLimit)
)

// separator is what stands between a prelude and the body.
func separator() []byte { return []byte("\x00\x00\x00\x00\x00\x00\x00\x00") }

// answer is what a response says before its body.
type answer struct {
	status  int
	headers [][2]string // canonical name, value
	cookies []string
}

// message is the JSON of a prelude, or of a buffered response with its body.
type message struct {
	StatusCode      json.RawMessage            `json:"statusCode"`
	Headers         map[string]json.RawMessage `json:"headers"`
	Cookies         []string                   `json:"cookies"`
	Body            *string                    `json:"body"`
	IsBase64Encoded bool                       `json:"isBase64Encoded"`
}

// parsePrelude reads what comes before the separator. Errors wrap errPrelude.
func parsePrelude(data []byte) (answer, error) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return answer{}, fmt.Errorf("%w: %w", errPrelude, err)
	}
	if !isObject(data) {
		return answer{}, fmt.Errorf("%w: not an object", errPrelude)
	}
	a, err := m.answer("application/octet-stream")
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errPrelude, err)
	}
	return a, nil
}

// parseBuffered reads a response that has come whole. A JSON object with a statusCode is the
// response's description; anything else is its body, as it is. Errors wrap errAnswer.
func parseBuffered(data []byte, kind string) (answer, []byte, error) {
	if !json.Valid(data) {
		return plain(kind), data, nil
	}
	var m message
	err := json.Unmarshal(data, &m)
	if m.StatusCode == nil || !isObject(data) {
		return plain("application/json"), data, nil
	}
	if err != nil {
		return answer{}, nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	a, err := m.answer("application/json")
	if err != nil {
		return answer{}, nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	switch {
	case m.Body == nil:
		return a, nil, nil
	case !m.IsBase64Encoded:
		return a, []byte(*m.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(*m.Body)
	if err != nil {
		return answer{}, nil, fmt.Errorf("%w: body: %w", errAnswer, err)
	}
	return a, body, nil
}

func isObject(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
}

// plain is the answer of a runtime that says nothing but its content type.
func plain(kind string) answer {
	return answer{status: http.StatusOK, headers: [][2]string{{"Content-Type", or(kind, "application/octet-stream")}}}
}

// answer checks m: what net/http would mend or drop in silence is an error. A response without
// a content type gets the given one, as the front on AWS does.
func (m message) answer(kind string) (answer, error) {
	a := answer{status: http.StatusOK, headers: make([][2]string, 0, len(m.Headers)+1)}
	if m.StatusCode != nil {
		status, err := strconv.Atoi(strings.Trim(string(m.StatusCode), `"`))
		if err != nil || status < 200 || status > 599 {
			return answer{}, fmt.Errorf("statusCode %s", m.StatusCode)
		}
		a.status = status
	}
	typed := false
	for name, raw := range m.Headers {
		value, err := headerValue(raw)
		if err != nil || !isToken(name) || !isFieldText(value) {
			return answer{}, fmt.Errorf("header %q", name)
		}
		switch name = http.CanonicalHeaderKey(name); name {
		case "Connection", "Content-Length", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
			continue // about a connection that the client does not see
		case "Content-Type":
			typed = true
		}
		a.headers = append(a.headers, [2]string{name, value})
	}
	for _, cookie := range m.Cookies {
		if !isFieldText(cookie) {
			return answer{}, errors.New("cookie with a control character")
		}
		a.cookies = append(a.cookies, cookie)
	}
	if !typed && a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		a.headers = append(a.headers, [2]string{"Content-Type", kind})
	}
	return a, nil
}

// headerValue is a string, or a number or boolean as it is written.
func headerValue(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) > 0 && raw[0] == '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case len(raw) > 0 && (raw[0] == '{' || raw[0] == '['), string(raw) == "null":
		return "", errors.New("not a text")
	}
	return string(raw), nil
}

// write puts a into a response's header.
func (a answer) write(h http.Header) {
	for _, field := range a.headers {
		h[field[0]] = append(h[field[0]], field[1])
	}
	if len(a.cookies) > 0 {
		h["Set-Cookie"] = append(h["Set-Cookie"], a.cookies...)
	}
}

// isToken says whether s can be a header's name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// isFieldText says whether s can be a header's value: no control characters but tab.
func isFieldText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
