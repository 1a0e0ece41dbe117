package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// openAIError and anthropicError are the two shapes in which clients expect an error.
type openAIError struct {
	Error struct {
		Message string   `json:"message"`
		Type    string   `json:"type"`
		Code    *string  `json:"code"`
		Param   *string  `json:"param"`
		Details []Detail `json:"details,omitempty"`
	} `json:"error"`
}

type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string   `json:"type"`
		Message string   `json:"message"`
		Details []Detail `json:"details,omitempty"`
	} `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}

// responsesError is the error event of a Responses stream. Its sequence number is required
// but not known here, where the stream's own events are only relayed: it is 0.
type responsesError struct {
	Type           string  `json:"type"`
	Code           *string `json:"code"`
	Message        string  `json:"message"`
	Param          *string `json:"param"`
	SequenceNumber int     `json:"sequence_number"`
}

// WriteError writes e in the surface's shape: {"error":{message,type,code,param}} for the
// OpenAI surfaces and for no surface, {"type":"error","error":{type,message}} for
// Anthropic's, with details where there are any. It sets Content-Type, Content-Length,
// Retry-After and the status; Anthropic's shape repeats an X-Request-Id that is set already.
func WriteError(w http.ResponseWriter, surface Surface, e *Error) {
	h := w.Header()
	body := append(errorJSON(surface, e, h.Get("X-Request-Id")), '\n')
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	w.WriteHeader(status(e))
	w.Write(body) //nolint:errcheck // a client that is gone cannot be told
}

// ErrorBody is e as the body of an error answer in the surface's shape.
func ErrorBody(surface Surface, e *Error) []byte { return errorJSON(surface, e, "") }

// StreamError is e as one in-band event of the surface's stream, for an answer whose
// status has already been sent. No end marker follows: the answer is not complete.
func StreamError(surface Surface, e *Error) []byte {
	var event []byte
	switch surface {
	case Messages:
		event = append(append(event, "event: error\ndata: "...), errorJSON(surface, e, "")...)
	case Responses:
		event = append(append(event, "event: error\ndata: "...), encode(responsesError{
			Type: "error", Code: orNull(firstOf(e.Code, openAIType(e))), Message: e.Message, Param: orNull(e.Param),
		})...)
	default:
		event = append(append(event, "data: "...), errorJSON(surface, e, "")...)
	}
	return append(event, "\n\n"...)
}

func errorJSON(surface Surface, e *Error, requestID string) []byte {
	if surface == Messages {
		out := anthropicError{Type: "error", RequestID: requestID}
		out.Error.Type, out.Error.Message, out.Error.Details = anthropicType(e), e.Message, e.Details
		return encode(out)
	}
	var out openAIError
	out.Error.Message, out.Error.Type, out.Error.Details = e.Message, openAIType(e), e.Details
	out.Error.Code, out.Error.Param = orNull(e.Code), orNull(e.Param)
	return encode(out)
}

// encode cannot fail: the shapes hold texts and numbers only.
func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":{"message":"internal error","type":"api_error","code":null,"param":null}}`)
	}
	return out
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// status guards against an error without one, which net/http would panic on.
func status(e *Error) int {
	if e.Status < 400 || e.Status > 999 {
		return http.StatusInternalServerError
	}
	return e.Status
}

func openAIType(e *Error) string {
	switch {
	case e.Type == "not_found_error", e.Type == "request_too_large":
		return "invalid_request_error" // what OpenAI's clients know it as
	case e.Type != "":
		return e.Type
	case status(e) < 500:
		return "invalid_request_error"
	}
	return "api_error"
}

// anthropicType is the name that Anthropic gives to such an error: the status decides
// where Anthropic ties one to it, because clients retry by type.
func anthropicType(e *Error) string {
	switch e.Status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	switch e.Type {
	case "authentication_error", "billing_error", "permission_error", "not_found_error", "request_too_large",
		"rate_limit_error", "overloaded_error", "timeout_error", "invalid_request_error", "api_error":
		return e.Type
	}
	if status(e) < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}
