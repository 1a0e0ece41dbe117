package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// openAIError is the error of the OpenAI surfaces.
type openAIError struct {
	Message string   `json:"message"`
	Type    string   `json:"type"`
	Code    *string  `json:"code"`
	Param   *string  `json:"param"`
	Details []Detail `json:"details,omitempty"`
}

// anthropicError is the error of Anthropic's surface.
type anthropicError struct {
	Type    string   `json:"type"`
	Message string   `json:"message"`
	Details []Detail `json:"details,omitempty"`
}

// WriteError writes e in the surface's shape: {"error":{message,type,code,param}} for the
// OpenAI surfaces, {"type":"error","error":{type,message}} for Anthropic's, with details
// where there are any. It sets Content-Type, Retry-After and the status.
func WriteError(w http.ResponseWriter, surface Surface, e *Error) {
	body := errorBody(surface, e)
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if e.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.Itoa(e.RetryAfter)}
	}
	w.WriteHeader(e.Status)
	w.Write(body) //nolint:errcheck // the client may be gone; there is nobody else to tell
}

// StreamError is e as one in-band event of the surface's stream, for an answer whose
// status has already been sent.
func StreamError(surface Surface, e *Error) []byte {
	switch surface {
	case Messages:
		return append(append([]byte("event: error\ndata: "), errorBody(surface, e)...), "\n\n"...)
	case Responses:
		// The shape of the Responses API's error event: no nested object.
		body := encode(struct {
			Type     string  `json:"type"`
			Code     *string `json:"code"`
			Message  string  `json:"message"`
			Param    *string `json:"param"`
			Sequence int     `json:"sequence_number"`
		}{"error", optional(e.Code), e.Message, optional(e.Param), 0})
		return append(append([]byte("event: error\ndata: "), body...), "\n\n"...)
	default:
		return append(append([]byte("data: "), errorBody(surface, e)...), "\n\n"...)
	}
}

func errorBody(surface Surface, e *Error) []byte {
	if surface == Messages {
		return encode(struct {
			Type  string         `json:"type"`
			Error anthropicError `json:"error"`
		}{"error", anthropicError{anthropicType(e), e.Message, e.Details}})
	}
	return encode(struct {
		Error openAIError `json:"error"`
	}{openAIError{e.Message, openAIType(e), optional(e.Code), optional(e.Param), e.Details}})
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// anthropicType is the name that Anthropic's clients know for a status.
func anthropicType(e *Error) string {
	switch e.Status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	}
	if e.Status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "api_error"
}

// openAIType is the name that OpenAI's clients know.
func openAIType(e *Error) string {
	switch e.Type {
	case "not_found_error", "request_too_large":
		return "invalid_request_error"
	}
	return e.Type
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil { // only strings and numbers are in it
		return []byte(`{"error":{"message":"internal error","type":"api_error","code":null,"param":null}}`)
	}
	return body
}
