package wire

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteErrorShapes(t *testing.T) {
	plain := &Error{Status: 404, Type: "not_found_error", Code: "model_not_found", Param: "model", Message: "no <m> \"x\"\n"}
	limited := &Error{
		Status: 429, Type: "rate_limit_error", Message: "later", RetryAfter: 7, Cause: errors.New("secret"),
		Details: []Detail{{Provider: "a", KeyID: "1", Model: "m", Reason: "rate_limit", RetryAfterMS: 7000}, {Provider: "b", Reason: "overloaded"}},
	}
	const openAIPlain = `{"error":{"message":"no \u003cm\u003e \"x\"\n","type":"invalid_request_error","code":"model_not_found","param":"model"}}`
	const details = `[{"provider":"a","key_id":"1","model":"m","reason":"rate_limit","retry_after_ms":7000},{"provider":"b","reason":"overloaded"}]`
	const openAILimited = `{"error":{"message":"later","type":"rate_limit_error","code":null,"param":null,"details":` + details + `}}`
	for _, c := range []struct {
		surface Surface
		e       *Error
		want    string
	}{
		{Chat, plain, openAIPlain},
		{Responses, plain, openAIPlain},
		{Embeddings, plain, openAIPlain},
		{"", plain, openAIPlain},
		{Messages, plain, `{"type":"error","error":{"type":"not_found_error","message":"no \u003cm\u003e \"x\"\n"},"request_id":"r1"}`},
		{Chat, limited, openAILimited},
		{Messages, limited, `{"type":"error","error":{"type":"rate_limit_error","message":"later","details":` + details + `},"request_id":"r1"}`},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("X-Request-Id", "r1")
		WriteError(w, c.surface, c.e)
		if got := strings.TrimSuffix(w.Body.String(), "\n"); got != c.want || w.Code != c.e.Status {
			t.Errorf("WriteError(%q) = %d %s, want %d %s", c.surface, w.Code, got, c.e.Status, c.want)
		}
		want := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(w.Body.Len())}, "X-Request-Id": {"r1"}}
		if c.e.RetryAfter > 0 {
			want["Retry-After"] = []string{strconv.Itoa(c.e.RetryAfter)}
		}
		if diff := cmp.Diff(want, w.Header()); diff != "" {
			t.Errorf("WriteError(%q) headers (-want +got):\n%s", c.surface, diff)
		}
	}
}

func TestWriteErrorWithoutStatus(t *testing.T) {
	w := httptest.NewRecorder()
	WriteError(w, Chat, &Error{Message: "x"})
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"type":"api_error"`) {
		t.Errorf("WriteError = %d %s, want 500 api_error", w.Code, w.Body)
	}
}

func TestAnthropicTypes(t *testing.T) {
	for _, c := range []struct {
		status     int
		kind, want string
	}{
		{400, "invalid_request_error", "invalid_request_error"},
		{401, "authentication_error", "authentication_error"},
		{401, "invalid_request_error", "authentication_error"},
		{402, "api_error", "billing_error"},
		{403, "permission_error", "permission_error"},
		{404, "invalid_request_error", "not_found_error"},
		{405, "method_not_allowed", "invalid_request_error"},
		{413, "invalid_request_error", "request_too_large"},
		{422, "", "invalid_request_error"},
		{429, "rate_limit_error", "rate_limit_error"},
		{500, "server_error", "api_error"},
		{502, "api_error", "api_error"},
		{502, "bad_gateway", "api_error"},
		{503, "api_error", "overloaded_error"},
		{504, "api_error", "timeout_error"},
		{529, "api_error", "overloaded_error"},
	} {
		if got := anthropicType(&Error{Status: c.status, Type: c.kind}); got != c.want {
			t.Errorf("anthropicType(%d, %q) = %q, want %q", c.status, c.kind, got, c.want)
		}
	}
}

func TestStreamErrorShapes(t *testing.T) {
	e := &Error{Status: 502, Type: "api_error", Code: "upstream_cut", Message: "cut\r\n\u2028<"}
	const message = `"message":"cut\r\n\u2028\u003c"`
	for surface, want := range map[Surface]string{
		Chat:       "data: {\"error\":{" + message + ",\"type\":\"api_error\",\"code\":\"upstream_cut\",\"param\":null}}\n\n",
		Embeddings: "data: {\"error\":{" + message + ",\"type\":\"api_error\",\"code\":\"upstream_cut\",\"param\":null}}\n\n",
		Responses:  "event: error\ndata: {\"type\":\"error\",\"code\":\"upstream_cut\"," + message + ",\"param\":null,\"sequence_number\":0}\n\n",
		Messages:   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"," + message + "}}\n\n",
	} {
		if got := string(StreamError(surface, e)); got != want {
			t.Errorf("StreamError(%q) = %q, want %q", surface, got, want)
		}
	}
}

// TestStreamErrorIsOneEvent holds for any text: no byte of it may end the event early.
func TestStreamErrorIsOneEvent(t *testing.T) {
	for _, text := range []string{"", "a\n\ndata: [DONE]\n\n", "\r\r", "\x00\x7f\u0085\u2029", "bad\xff", `"}`} {
		for _, surface := range []Surface{Chat, Responses, Messages, Embeddings} {
			event := string(StreamError(surface, &Error{Status: 500, Code: text, Param: text, Message: text, Details: []Detail{{Provider: text}}}))
			data, ok := strings.CutSuffix(event[strings.Index(event, "data: ")+len("data: "):], "\n\n")
			if !ok || strings.ContainsAny(data, "\r\n\x00") || !json.Valid([]byte(data)) {
				t.Errorf("StreamError(%q, %q) = %q, want one event of JSON", surface, text, event)
			}
		}
	}
}
