package translate

import (
	"net/http"
	"strings"

	"switchboard/internal/wire"
)

// tooLong begins the message by which Anthropic's clients know that a prompt must be made
// shorter; contextCode is the code by which OpenAI's do.
const (
	tooLong     = "prompt is too long"
	contextCode = "context_length_exceeded"
)

// Error translates an error body. One that says nothing gets the words of its status.
func Error(from, to wire.Surface, status int, body []byte) []byte {
	var d document
	var root value
	if d.parse(body) {
		root = d.root()
	}
	return wire.ErrorBody(to, complaint(to, status, root))
}

// complaint reads what an error body or error event says.
func complaint(to wire.Surface, status int, root value) *wire.Error {
	object := root.get("error")
	e := &wire.Error{Status: status, Message: string(object.get("message").text()), Type: string(object.get("type").text())}
	if !object.isObject() {
		e.Message, e.Type = string(object.text()), ""
	}
	if e.Message == "" {
		e.Message = string(root.get("message").text())
	}
	if e.Message == "" {
		e.Message = "The provider answered " + strings.TrimSpace(http.StatusText(status)) + "."
	}
	code := string(object.get("code").text())
	isTooLong := code == contextCode || strings.HasPrefix(e.Message, tooLong)
	if to == wire.Messages {
		if isTooLong && !strings.HasPrefix(e.Message, tooLong) {
			e.Message = tooLong + ": " + e.Message
		}
		return e
	}
	switch {
	case isTooLong:
		e.Code = contextCode
	case e.Type == "rate_limit_error":
		e.Code = "rate_limit_exceeded"
	case e.Type == "not_found_error" && strings.HasPrefix(e.Message, "model"):
		e.Code = "model_not_found"
	default:
		e.Code = e.Type // Anthropic's one word is both
	}
	return e
}

// streamError is an error event in the client's shape.
func streamError(to wire.Surface, root value) []byte {
	e := complaint(to, 0, root)
	e.Status = statusOf(e.Type)
	return wire.StreamError(to, e)
}

// statusOf is the status that a type of error stands for where there was none.
func statusOf(kind string) int {
	switch kind {
	case "overloaded_error", "overloaded":
		return 529
	case "rate_limit_error", "rate_limit_exceeded", "tokens", "requests":
		return http.StatusTooManyRequests
	case "invalid_request_error":
		return http.StatusBadRequest
	case "timeout_error":
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}
