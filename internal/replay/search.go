package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// maxDepth bounds the levels of JSON around an event. Each log that wraps a line adds two
// or three: Lambda's JSON format in the output of `aws logs filter-log-events` makes nine.
const maxDepth = 12

// search looks for undelivered events where a log line of ours has them, and nowhere else.
// Clients put text of their choice into our lines, as session ids and models, and a text
// that looks like an event must not become one: a line of ours is never searched in its
// values, and text is parsed only from where no value of ours can begin.
type search struct {
	line   int
	found  []found
	broken error
}

// text searches what is not JSON as a whole: lines, each with JSON behind a prefix.
func (s *search) text(text []byte, depth int) {
	for line := range bytes.Lines(text) {
		s.textLine(line, depth)
	}
}

// textLine searches JSON values, one after the other, that may have text between them.
func (s *search) textLine(line []byte, depth int) {
	if depth == 0 {
		s.fail(line, errors.New("wrapped too deep"))
		return
	}
	for {
		at := bytes.IndexAny(line, `{"`)
		if at < 0 {
			return
		}
		prefix, rest := line[:at], line[at:]
		var err error
		if rest[0] == '{' {
			rest, err = s.object(rest, depth)
		} else if indented(prefix) {
			rest, err = s.member(rest, depth)
		} else {
			err = errors.New("it begins in the middle of a text")
		}
		if err != nil {
			s.fail(line, err)
			return
		}
		line = rest
	}
}

// indented says whether text is what stands before a string in printed JSON. A line that
// was split may begin at any quote of a client's text, but never at an indented one: what
// is before a quote in our JSON is a backslash.
func indented(text []byte) bool {
	return len(text) > 0 && len(bytes.Trim(text, " \t,[")) == 0
}

// object searches the JSON object that text begins with and returns what follows it.
func (s *search) object(text []byte, depth int) (rest []byte, err error) {
	value, rest, err := cutValue(text)
	if err == nil {
		s.value(value, depth-1)
	}
	return rest, err
}

// member searches a string of printed JSON, or the member of an object that it names.
func (s *search) member(text []byte, depth int) (rest []byte, err error) {
	value, rest, err := cutValue(text)
	if err != nil {
		return nil, err
	}
	tail := bytes.TrimLeft(rest, " \t")
	if len(tail) == 0 || tail[0] != ':' {
		s.value(value, depth-1)
		return rest, nil
	}
	of, rest, err := cutValue(tail[1:])
	if err != nil {
		if !bytes.Contains(text, []byte(marker)) {
			return nil, nil // "events": [
		}
		return nil, err
	}
	s.value(fmt.Appendf(nil, "{%s:%s}", value, of), depth-1)
	return rest, nil
}

// cutValue splits text after the JSON value that it begins with.
func cutValue(text []byte) (value json.RawMessage, rest []byte, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&value); err != nil {
		return nil, nil, err
	}
	return value, text[decoder.InputOffset():], nil
}

// envelope is what may be around an event: our own log line, and what logs make of a line.
type envelope struct {
	Event   json.RawMessage `json:"undelivered_event"`
	Routing json.RawMessage `json:"routing_event"` // where the message is the marker

	Msg     json.RawMessage `json:"msg"`
	Message json.RawMessage `json:"message"`  // Lambda's JSON format, filter-log-events
	Record  json.RawMessage `json:"record"`   // Lambda's telemetry
	Log     json.RawMessage `json:"log"`      // containers
	Events  json.RawMessage `json:"events"`   // filter-log-events as a whole
	Results json.RawMessage `json:"results"`  // Logs Insights
	Field   json.RawMessage `json:"field"`    // one of its columns …
	Value   json.RawMessage `json:"value"`    // … and what is in it
	AtText  json.RawMessage `json:"@message"` // the same, as an export
}

// value searches one JSON value.
func (s *search) value(value json.RawMessage, depth int) {
	switch {
	case !bytes.Contains(value, []byte(marker)):
	case depth <= 0:
		s.fail(value, errors.New("wrapped too deep"))
	case value[0] == '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			s.fail(value, err)
			return
		}
		s.text([]byte(text), depth)
	case value[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			s.fail(value, err)
		}
		for _, one := range list {
			s.value(one, depth-1)
		}
	case value[0] == '{':
		s.envelope(value, depth)
	}
}

func (s *search) envelope(object json.RawMessage, depth int) {
	var e envelope
	if err := json.Unmarshal(object, &e); err != nil {
		s.fail(object, err)
		return
	}
	const message = `"` + marker + `"`
	switch {
	case e.Event != nil:
		s.event(e.Event)
	case e.Routing != nil && (string(e.Msg) == message || string(e.Message) == message):
		s.event(e.Routing)
	case e.Msg != nil: // a line of ours that holds none: its values are not searched
	default:
		if e.Field != nil && string(e.Field) != `"@message"` {
			e.Value = nil
		}
		for _, inner := range []json.RawMessage{e.Message, e.Record, e.Log, e.Events, e.Results, e.Value, e.AtText} {
			s.value(inner, depth-1)
		}
	}
}

func (s *search) event(object json.RawMessage) {
	event, err := read(object, s.line)
	if err != nil {
		s.broken = err
		return
	}
	s.found = append(s.found, found{event: event})
}

// fail keeps why text could not be searched, if it may hold an event.
func (s *search) fail(text []byte, err error) {
	if bytes.Contains(text, []byte(marker)) {
		s.broken = err
	}
}
