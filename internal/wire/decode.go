package wire

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Decode finds the routing fields of a body that has already been read. It checks that the
// whole body is one JSON object with balanced structure, and refuses (as *Error, 400)
// malformed JSON, duplicates of top-level members that route (also when a key is written
// with escapes or the duplicate is equal), a missing or non-string model and a non-boolean
// stream. The contents of other members are the provider's business.
func Decode(op Operation, query string, header http.Header, body []byte) (*Request, error) {
	start := skipSpace(body, 0)
	if err := checkStart(body, start); err != nil {
		return nil, err
	}
	d := decoder{body: body, request: &Request{Operation: op, Query: query, Header: header, Body: body}}
	f := &d.request.Fields
	f.FirstMember, f.Empty = start+1, true
	end, bad := scanObject(body, start, d.member)
	if d.err != nil {
		return nil, d.err
	}
	if bad != nil {
		return nil, malformed(bad)
	}
	if end = skipSpace(body, end); end < len(body) {
		return nil, malformed(&fault{end, "something follows the object"})
	}
	if !f.ModelSpan.Found() {
		return nil, refuse("missing_field", "model", `The request body has no "model"; it must name one.`)
	}
	return d.request, nil
}

func checkStart(body []byte, start int) error {
	switch {
	case start == len(body):
		return malformed(&fault{start, "the body is empty; it must be a JSON object"})
	case strings.HasPrefix(string(body[start:min(start+3, len(body))]), "\ufeff"):
		return malformed(&fault{start, "a byte order mark stands before the object"})
	case body[start] != '{':
		return malformed(&fault{start, "the body must be a JSON object"})
	}
	return nil
}

// member names a top-level member that routes, in the order of the set's bits.
type member uint

const (
	none member = iota
	model
	stream
	streamOptions
	metadata
	sessionID
	litellmSessionID
	promptCacheKey
	conversation
	previousResponseID
	messages
	input
	system
	instructions
	tools
	serviceTier
)

// memberOf recognises a decoded key. Keys in another case are other keys.
func memberOf(key []byte) member {
	switch string(key) {
	case "model":
		return model
	case "stream":
		return stream
	case "stream_options":
		return streamOptions
	case "metadata":
		return metadata
	case "session_id":
		return sessionID
	case "litellm_session_id":
		return litellmSessionID
	case "prompt_cache_key":
		return promptCacheKey
	case "conversation":
		return conversation
	case "previous_response_id":
		return previousResponseID
	case "messages":
		return messages
	case "input":
		return input
	case "system":
		return system
	case "instructions":
		return instructions
	case "tools":
		return tools
	case "service_tier":
		return serviceTier
	}
	return none
}

// maxModel is how long a model's name may be, in bytes: it is a key of the pin, and stands
// in every event.
const maxModel = 512

// longestEscaped is the most bytes a routing key can take when every letter is an escape.
const longestEscaped = 6 * len("previous_response_id")

// decoder collects the routing fields of one body.
type decoder struct {
	body    []byte
	request *Request
	seen    uint // bits of the members that were found
	err     error
}

// member takes one top-level member; false stops the scan, with the reason in err.
func (d *decoder) member(key, value Span) bool {
	d.request.Fields.Empty = false
	which, err := d.recognise(key)
	if err == nil && which != none {
		if bit := uint(1) << which; d.seen&bit == 0 {
			d.seen |= bit
			err = d.take(which, value)
		} else {
			err = d.duplicate(key, "")
		}
	}
	d.err = err
	return err == nil
}

func (d *decoder) recognise(key Span) (member, error) {
	inside := d.body[key.Start+1 : key.End-1]
	escaped := false
	for i, c := range inside {
		if c < ' ' {
			return none, malformed(&fault{key.Start + 1 + i, "a control character stands in the name of a member"})
		}
		escaped = escaped || c == '\\'
	}
	if !escaped {
		return memberOf(inside), nil
	}
	var few [longestEscaped]byte
	decoded, ok := appendText(few[:0], inside)
	if !ok {
		return none, malformed(&fault{key.Start, "the name of a member has an unknown escape"})
	}
	return memberOf(decoded), nil
}

func (d *decoder) take(which member, value Span) (err error) {
	f := &d.request.Fields
	switch which {
	case model:
		return d.model(value)
	case stream:
		return d.stream(value)
	case streamOptions:
		f.StreamOptions = value
		return d.one(value, "stream_options", "include_usage", func(v Span) error {
			f.IncludeUsageSpan, f.IncludeUsage = v, string(v.Of(d.body)) == "true"
			return nil
		})
	case metadata:
		return d.one(value, "metadata", "user_id", func(v Span) error {
			return d.text(&f.MetadataUserID, v, "metadata.user_id")
		})
	case conversation:
		if err := d.text(&f.Conversation, value, "conversation"); err != nil {
			return err
		}
		return d.one(value, "conversation", "id", func(v Span) error {
			return d.text(&f.ConversationID, v, "conversation.id")
		})
	case sessionID:
		return d.text(&f.SessionID, value, "session_id")
	case litellmSessionID:
		return d.text(&f.LitellmSessionID, value, "litellm_session_id")
	case promptCacheKey:
		return d.text(&f.PromptCacheKey, value, "prompt_cache_key")
	case previousResponseID:
		return d.text(&f.PreviousResponse, value, "previous_response_id")
	case messages:
		f.Messages = value
	case input:
		f.Input = value
	case system:
		f.System = value
	case instructions:
		f.Instructions = value
	case tools:
		f.Tools = value
	}
	return nil
}

func (d *decoder) model(value Span) error {
	f := &d.request.Fields
	if d.body[value.Start] != '"' {
		return refuse("invalid_field", "model", fmt.Sprintf(`"model" must be a non-empty string (byte %d).`, value.Start))
	}
	if err := d.text(&f.Model, value, "model"); err != nil {
		return err
	}
	if f.Model == "" {
		return refuse("invalid_field", "model", fmt.Sprintf(`"model" must be a non-empty string (byte %d).`, value.Start))
	}
	if len(f.Model) > maxModel {
		return refuse("invalid_field", "model", fmt.Sprintf(`"model" is longer than %d bytes.`, maxModel))
	}
	if !utf8.ValidString(f.Model) {
		return refuse("invalid_field", "model", fmt.Sprintf(`"model" is not valid UTF-8 (byte %d).`, value.Start))
	}
	f.ModelSpan = value
	return nil
}

func (d *decoder) stream(value Span) error {
	switch string(value.Of(d.body)) {
	case "true":
		d.request.Fields.Stream = true
	case "false", "null":
	default:
		return refuse("invalid_field", "stream", fmt.Sprintf(`"stream" must be true or false (byte %d).`, value.Start))
	}
	return nil
}

// one hands the member called name of an object to take, and refuses a second one. What is
// not an object has no such member.
func (d *decoder) one(object Span, parent, name string, take func(Span) error) error {
	if d.body[object.Start] != '{' {
		return nil
	}
	var err error
	found := false
	_, bad := scanObject(d.body[:object.End], object.Start, func(key, value Span) bool {
		if !Is(d.body, key, name) {
			return true
		}
		if found {
			err = d.duplicate(key, parent)
			return false
		}
		found = true
		err = take(value)
		return err == nil
	})
	if err == nil && bad != nil {
		return malformed(bad)
	}
	return err
}

// text decodes a string member; a value of another type leaves into alone.
func (d *decoder) text(into *string, value Span, name string) error {
	if d.body[value.Start] != '"' {
		return nil
	}
	text, ok := String(d.body, value)
	if ok {
		for _, c := range d.body[value.Start:value.End] {
			ok = ok && c >= ' '
		}
	}
	if !ok {
		return malformed(&fault{value.Start, fmt.Sprintf("the string %q has an unknown escape or a control character", name)})
	}
	*into = text
	return nil
}

func (d *decoder) duplicate(key Span, parent string) error {
	name, _ := String(d.body, key)
	if parent != "" {
		name = parent + "." + name
	}
	return refuse("duplicate_field", name, fmt.Sprintf(
		"The request body has %q twice (second at byte %d); send it once.", name, key.Start))
}

func malformed(bad *fault) *Error {
	return refuse("invalid_json", "", fmt.Sprintf("The request body is not valid JSON: %s (byte %d).", bad.what, bad.at))
}

func refuse(code, param, message string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: code, Param: param, Message: message}
}
