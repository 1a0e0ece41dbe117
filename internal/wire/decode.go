package wire

import (
	"bytes"
	"fmt"
	"net/http"
)

// Decode finds the routing fields of a body that has already been read. It checks that the
// whole body is one JSON object with balanced structure, and refuses (as *Error, 400)
// malformed JSON, duplicates of top-level members that route (also when a key is written
// with escapes or the duplicate is equal), a missing or non-string model and a non-boolean
// stream. The contents of other members are the provider's business.
func Decode(op Operation, query string, header http.Header, body []byte) (*Request, error) {
	r := &Request{Operation: op, Query: query, Header: header, Body: body}
	d := decoder{body: body, fields: &r.Fields}
	start := skipSpace(body, 0)
	if start >= len(body) || body[start] != '{' {
		return nil, badJSON(start, "a JSON object is expected")
	}
	r.Fields.FirstMember = start + 1
	r.Fields.Empty = true
	end, ok := members(body, start, d.member)
	if d.err != nil {
		return nil, d.err
	}
	if !ok {
		return nil, badJSON(end, "it is malformed or ends early")
	}
	if rest := skipSpace(body, end); rest != len(body) {
		return nil, badJSON(rest, "something follows the object")
	}
	if !d.seen.has(fieldModel) {
		return nil, badField("missing_field", "model", "model is required: the name of a model as a string.")
	}
	return r, nil
}

// field is a top-level member that routing reads.
type field uint8

const (
	fieldNone field = iota
	fieldModel
	fieldStream
	fieldStreamOptions
	fieldMetadata
	fieldSessionID
	fieldLitellmSessionID
	fieldPromptCacheKey
	fieldConversation
	fieldPreviousResponse
	fieldMessages
	fieldInput
	fieldSystem
	fieldInstructions
	fieldTools
	fieldServiceTier
)

type fieldSet uint32

func (s fieldSet) has(f field) bool { return s&(1<<f) != 0 }

func fieldOf(key []byte) field {
	switch string(key) {
	case "model":
		return fieldModel
	case "stream":
		return fieldStream
	case "stream_options":
		return fieldStreamOptions
	case "metadata":
		return fieldMetadata
	case "session_id":
		return fieldSessionID
	case "litellm_session_id":
		return fieldLitellmSessionID
	case "prompt_cache_key":
		return fieldPromptCacheKey
	case "conversation":
		return fieldConversation
	case "previous_response_id":
		return fieldPreviousResponse
	case "messages":
		return fieldMessages
	case "input":
		return fieldInput
	case "system":
		return fieldSystem
	case "instructions":
		return fieldInstructions
	case "tools":
		return fieldTools
	case "service_tier":
		return fieldServiceTier
	}
	return fieldNone
}

type decoder struct {
	body   []byte
	fields *Fields
	seen   fieldSet
	err    *Error
}

// keyOf returns a key without its quotes and escapes.
func keyOf(body []byte, key Span) []byte {
	raw := body[key.Start+1 : key.End-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	decoded, _ := String(body, key)
	return []byte(decoded)
}

// member takes one top-level member; false ends the reading with d.err.
func (d *decoder) member(key, value Span) bool {
	d.fields.Empty = false
	name := keyOf(d.body, key)
	which := fieldOf(name)
	if which == fieldNone {
		return true
	}
	if d.seen.has(which) {
		return d.fail(duplicate(string(name), key.Start))
	}
	d.seen |= 1 << which
	switch which {
	case fieldModel:
		return d.model(value)
	case fieldStream:
		return d.stream(value)
	case fieldStreamOptions:
		return d.streamOptions(value)
	case fieldMetadata:
		return d.inner(value, "metadata.user_id", "user_id", &d.fields.MetadataUserID)
	case fieldConversation:
		return d.conversation(value)
	case fieldSessionID:
		d.fields.SessionID, _ = String(d.body, value)
	case fieldLitellmSessionID:
		d.fields.LitellmSessionID, _ = String(d.body, value)
	case fieldPromptCacheKey:
		d.fields.PromptCacheKey, _ = String(d.body, value)
	case fieldPreviousResponse:
		d.fields.PreviousResponse, _ = String(d.body, value)
	case fieldMessages:
		d.fields.Messages = value
	case fieldInput:
		d.fields.Input = value
	case fieldSystem:
		d.fields.System = value
	case fieldInstructions:
		d.fields.Instructions = value
	case fieldTools:
		d.fields.Tools = value
	}
	return true
}

func (d *decoder) fail(e *Error) bool {
	d.err = e
	return false
}

func (d *decoder) model(value Span) bool {
	model, ok := String(d.body, value)
	if !ok || model == "" {
		return d.fail(badField("invalid_field", "model", "model must be the name of a model as a string."))
	}
	d.fields.Model, d.fields.ModelSpan = model, value
	return true
}

func (d *decoder) stream(value Span) bool {
	switch string(value.Of(d.body)) {
	case "true":
		d.fields.Stream = true
	case "false", "null":
	default:
		return d.fail(badField("invalid_field", "stream", "stream must be true or false."))
	}
	return true
}

func (d *decoder) streamOptions(value Span) bool {
	d.fields.StreamOptions = value
	if d.body[value.Start] != '{' {
		return true
	}
	return d.object(value, "stream_options.include_usage", "include_usage", func(inner Span) {
		d.fields.IncludeUsageSpan = inner
		d.fields.IncludeUsage = string(inner.Of(d.body)) == "true"
	})
}

// conversation reads both spellings: the id itself, or an object with it.
func (d *decoder) conversation(value Span) bool {
	d.fields.Conversation, _ = String(d.body, value)
	return d.inner(value, "conversation.id", "id", &d.fields.ConversationID)
}

// inner reads one string member of an object; another kind of value reads as absent.
func (d *decoder) inner(value Span, path, name string, to *string) bool {
	if d.body[value.Start] != '{' {
		return true
	}
	return d.object(value, path, name, func(inner Span) { *to, _ = String(d.body, inner) })
}

// object finds the member name of an object and refuses a second one.
func (d *decoder) object(value Span, path, name string, take func(Span)) bool {
	found := false
	ok := Members(d.body, value, func(key, inner Span) bool {
		if string(keyOf(d.body, key)) != name {
			return true
		}
		if found {
			return d.fail(duplicate(path, key.Start))
		}
		found = true
		take(inner)
		return true
	})
	if !ok {
		return d.fail(badJSON(value.Start, "it is malformed"))
	}
	return d.err == nil
}

func duplicate(name string, at int) *Error {
	return badField("duplicate_field", name, fmt.Sprintf("%s stands twice in the body (again at byte %d); the gateway and the provider might read different ones.", name, at))
}

func badField(code, param, message string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: code, Param: param, Message: message}
}

func badJSON(at int, what string) *Error {
	return &Error{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_json",
		Message: fmt.Sprintf("The body is not a JSON object: %s (byte %d).", what, at),
	}
}
