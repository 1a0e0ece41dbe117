package provider

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/sse"
	"switchboard/internal/wire"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestClassify(t *testing.T) {
	body := func(kind, code, message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, code)
	}
	ant := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_1"}`, kind, message)
	}
	tests := []struct {
		name   string
		status int
		body   string
		want   health.Class
	}{
		{"S-ERR-01 a", 400, body("invalid_request_error", "context_length_exceeded", "maximum context length is 8192 tokens"), health.Request},
		{"S-ERR-01 b", 400, `{"error":{"message":"filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, health.Request},
		{"S-ERR-01 d", 404, body("invalid_request_error", "model_not_found", "The model `m-oai` does not exist"), health.ModelNotFound},
		{"S-ERR-01 d anthropic", 404, ant("not_found_error", "model: m-ant"), health.ModelNotFound},
		{"S-ERR-01 e 422", 422, `{"detail":[{"loc":["body"],"msg":"x"}]}`, health.Request},
		{"S-ERR-01 e 413", 413, ant("request_too_large", "too large"), health.Request},
		{"anthropic prompt too long", 400, ant("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), health.Request},
		{"400 without body", 400, "", health.Request},
		{"409", 409, body("", "", "conflict"), health.Request},
		{"405", 405, "", health.Request},

		{"S-ERR-02 429", 429, body("tokens", "rate_limit_exceeded", "Rate limit reached"), health.RateLimited},
		{"S-ERR-02 429 points to billing", 429, body("requests", "rate_limit_exceeded", "Rate limit reached. Visit https://x/account/billing to add a payment method."), health.RateLimited},
		{"S-ERR-02 429 empty", 429, "", health.RateLimited},
		{"S-ERR-02 429 html", 429, "<html>slow down</html>", health.RateLimited},
		{"S-ERR-02 500", 500, "", health.ServerError},
		{"S-ERR-02 502 html", 502, "<html>Bad gateway</html>", health.ServerError},
		{"S-ERR-02 503", 503, body("server_error", "", "unavailable"), health.ServerError},
		{"S-ERR-02 503 overloaded", 503, ant("overloaded_error", "busy"), health.Overloaded},
		{"S-ERR-02 504", 504, "", health.ServerError},
		{"S-ERR-02 524", 524, "", health.ServerError},
		{"S-ERR-02 529", 529, ant("overloaded_error", "Overloaded"), health.Overloaded},
		{"S-ERR-02 529 empty", 529, "", health.Overloaded},
		{"S-ERR-02 408", 408, "", health.ServerError},
		{"S-ERR-02 402", 402, `{"error":{"message":"Insufficient credits","code":402}}`, health.NoCredit},
		{"S-ERR-02 402 empty", 402, "", health.NoCredit},
		{"S-ERR-02 403", 403, ant("permission_error", "not allowed"), health.Unauthorized},
		{"S-ERR-02 403 html", 403, "<html>Forbidden</html>", health.Unauthorized},
		{"S-ERR-02 400 usage limit", 400, ant("invalid_request_error", "You have reached your specified API usage limits."), health.NoCredit},
		{"S-ERR-02 400 credit", 400, ant("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), health.NoCredit},
		{"S-ERR-02 429 quota", 429, body("insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."), health.NoCredit},
		{"S-ERR-02 429 quota by message", 429, body("", "", "You exceeded your current quota"), health.NoCredit},
		{"429 quota of google per minute", 429, `[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","retryDelay":"34s"}]}}]`, health.RateLimited},
		{"403 billing", 403, body("", "billing_hard_limit_reached", "Billing hard limit has been reached"), health.NoCredit},
		{"403 spending limit", 403, body("", "", "You reached your monthly spending limit"), health.NoCredit},
		{"401 balance", 401, `{"type":"error","error":{"type":"CreditsError","message":"Insufficient balance."}}`, health.NoCredit},
		{"429 subscription", 429, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":100}}`, health.NoCredit},

		{"S-KEY-01 401", 401, body("invalid_request_error", "invalid_api_key", "Incorrect API key provided"), health.Unauthorized},
		{"S-KEY-01 401 anthropic", 401, ant("authentication_error", "invalid x-api-key"), health.Unauthorized},
		{"S-KEY-01 401 empty", 401, "", health.Unauthorized},
		{"403 flagged", 403, `{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["x"]}}}`, health.Request},
		{"403 model", 403, body("invalid_request_error", "model_not_found", "Project does not have access to model"), health.ModelNotFound},

		{"404 no body", 404, "", health.ModelNotFound},
		{"404 html", 404, "<html>404</html>", health.ModelNotFound},
		{"404 ollama", 404, `{"error":"model \"x\" not found, try pulling it first"}`, health.ModelNotFound},
		{"404 vllm", 404, `{"object":"error","message":"The model x does not exist.","type":"NotFoundError","code":404}`, health.ModelNotFound},
		{"S-REQ-04 404 response", 404, body("invalid_request_error", "previous_response_not_found", "Previous response with id 'resp_1' not found."), health.Request},
		{"404 file", 404, ant("not_found_error", "File not found"), health.Request},
		{"400 model", 400, body("invalid_request_error", "model_not_found", "x"), health.ModelNotFound},

		{"S-SEC-01 307", 307, "", health.ServerError},
		{"304", 304, "", health.ServerError},
		{"cut body", 429, `{"error":{"type":"insufficient_quota","message":"You exc`, health.NoCredit},
		{"escaped", 400, `{"error":{"message":"credit balance is too\u0020low"}}`, health.NoCredit},
		{"a client's words, quoted", 400, body("invalid_request_error", "", `field "insufficient_quota" is not 'usage limit'`), health.Request},
		{"a client's words, in a field", 400, `{"error":{"message":"bad value: usage limit","type":"invalid_request_error","param":"x"}}`, health.Request},
		{"a client's words, 404", 404, ant("not_found_error", "File 'model' not found"), health.Request},
		{"403 account", 403, body("", "", "Your account was flagged"), health.Unauthorized},
		{"words of the request", 400, body("invalid_request_error", "context_length_exceeded", "usage limit"), health.Request},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Classify(tt.status, http.Header{}, []byte(tt.body), noon); got.Class != tt.want {
				t.Errorf("Classify(%d, %s) = %s, want %s", tt.status, tt.body, got.Class, tt.want)
			}
		})
	}
}

func TestClassifyRetryAfter(t *testing.T) {
	type h map[string]string
	tests := []struct {
		name   string
		status int
		header h
		body   string
		want   time.Duration
	}{
		{"none", 429, h{}, "", 0},
		{"seconds", 429, h{"Retry-After": "7"}, "", 7 * time.Second},
		{"fraction", 429, h{"Retry-After": " 1.5 "}, "", 1500 * time.Millisecond},
		{"zero", 429, h{"Retry-After": "0"}, "", 0},
		{"negative", 429, h{"Retry-After": "-5"}, "", 0},
		{"nonsense", 429, h{"Retry-After": "soon"}, "", 0},
		{"not finite", 429, h{"Retry-After": "NaN"}, "", 0},
		{"huge", 429, h{"Retry-After": "1e300"}, "", 24 * time.Hour},
		{"date", 429, h{"Retry-After": "Sun, 01 Mar 2026 12:01:00 GMT"}, "", time.Minute},
		{"past date", 429, h{"Retry-After": "Sun, 01 Mar 2026 11:00:00 GMT"}, "", 0},
		{"far date", 429, h{"Retry-After": "Sun, 01 Mar 2027 11:00:00 GMT"}, "", 24 * time.Hour},
		{"milliseconds first", 429, h{"Retry-After-Ms": "250", "Retry-After": "1"}, "", 250 * time.Millisecond},
		{"503", 503, h{"Retry-After": "3"}, "", 3 * time.Second},
		{"529", 529, h{"Retry-After": "3"}, "", 3 * time.Second},
		{"request's fault", 400, h{"Retry-After": "3"}, "", 0},
		{"reset requests", 429, h{"X-Ratelimit-Reset-Requests": "1s", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Tokens": "6m0s", "X-Ratelimit-Remaining-Tokens": "100"}, "", time.Second},
		{"reset tokens", 429, h{"X-Ratelimit-Reset-Requests": "1s", "X-Ratelimit-Remaining-Requests": "5", "X-Ratelimit-Reset-Tokens": "6m0s", "X-Ratelimit-Remaining-Tokens": "0"}, "", 6 * time.Minute},
		{"reset, nothing said of remaining", 429, h{"X-Ratelimit-Reset-Requests": "120ms", "X-Ratelimit-Reset-Tokens": "2"}, "", 2 * time.Second},
		{"Retry-After before reset", 429, h{"Retry-After": "9", "X-Ratelimit-Reset-Tokens": "6m0s"}, "", 9 * time.Second},
		{"reset is not for 503", 503, h{"X-Ratelimit-Reset-Tokens": "6m0s"}, "", 0},
		{"anthropic", 429, h{"Anthropic-Ratelimit-Requests-Reset": "2026-03-01T12:00:30Z", "Anthropic-Ratelimit-Requests-Remaining": "0"}, "", 30 * time.Second},
		{"anthropic past", 429, h{"Anthropic-Ratelimit-Tokens-Reset": "2026-03-01T11:00:30Z"}, "", 0},
		{"epoch", 429, h{"Anthropic-Ratelimit-Unified-Reset": fmt.Sprint(noon.Unix() + 90)}, "", 90 * time.Second},
		{"epoch ms", 429, h{"X-Ratelimit-Reset": fmt.Sprint(noon.UnixMilli() + 1500), "X-Ratelimit-Remaining": "0"}, "", 1500 * time.Millisecond},
		{"google", 429, h{}, `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"x":1},{"retryDelay":"34.5s"}]}}]`, 34500 * time.Millisecond},
		{"subscription", 429, h{}, `{"error":{"type":"usage_limit_reached","resets_in_seconds":100}}`, 100 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{}
			for k, v := range tt.header {
				header.Set(k, v)
			}
			if got := Classify(tt.status, header, []byte(tt.body), noon); got.RetryAfter != tt.want {
				t.Errorf("Classify(%d, %v).RetryAfter = %v, want %v", tt.status, tt.header, got.RetryAfter, tt.want)
			}
		})
	}
}

// S-AFF-07: errors inside a 200 stream.
func TestAFF07InBandFailure(t *testing.T) {
	tests := []struct {
		surface wire.Surface
		data    string
		class   health.Class
		status  int
	}{
		{wire.Messages, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, health.Overloaded, 529},
		{wire.Messages, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, health.RateLimited, 429},
		{wire.Messages, `{"type":"error","error":{"type":"invalid_request_error","message":"x"}}`, health.Request, 400},
		{wire.Messages, `{"type":"error","error":{"type":"authentication_error","message":"x"}}`, health.Unauthorized, 502},
		{wire.Messages, `{"type":"error","error":{"type":"permission_error","message":"x"}}`, health.Unauthorized, 502},
		{wire.Messages, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, health.ModelNotFound, 404},
		{wire.Messages, `{"type":"error","error":{"type":"not_found_error","message":"no such file"}}`, health.Request, 404},
		{wire.Messages, `{"type":"error","error":{"type":"api_error","message":"x"}}`, health.ServerError, 502},
		{wire.Messages, `{"type":"error","error":{"type":"request_too_large","message":"x"}}`, health.Request, 413},
		{wire.Messages, `{"type":"error","error":{"type":"billing_error","message":"x"}}`, health.NoCredit, 429},
		{wire.Messages, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, health.NoCredit, 429},
		{wire.Chat, `{"error":{"message":"x","type":"server_error","code":null}}`, health.ServerError, 502},
		{wire.Chat, `{"error":{"message":"x","code":429}}`, health.RateLimited, 429},
		{wire.Chat, `{"error":{"message":"x","code":"429"}}`, health.RateLimited, 429},
		{wire.Chat, `{"error":{"message":"x","code":502}}`, health.ServerError, 502},
		{wire.Chat, `{"error":{"message":"x","code":503}}`, health.ServerError, 503},
		{wire.Chat, `{"error":{"message":"x","code":401}}`, health.Unauthorized, 502},
		{wire.Chat, `{"error":{"message":"x","code":402}}`, health.NoCredit, 429},
		{wire.Chat, `{"error":{"message":"x","code":408}}`, health.ServerError, 504},
		{wire.Chat, `{"error":{"message":"x","code":400}}`, health.Request, 400},
		{wire.Chat, `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`, health.NoCredit, 429},
		{wire.Chat, `{"error":{"message":"x","code":"rate_limit_exceeded","type":"requests"}}`, health.RateLimited, 429},
		{wire.Chat, `{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}`, health.Request, 400},
		{wire.Chat, `{"error":{"message":"x","code":"content_filter"}}`, health.Request, 400},
		{wire.Chat, `{"error":{"message":"x","code":"model_not_found"}}`, health.ModelNotFound, 404},
		{wire.Chat, `{"error":"oops"}`, health.ServerError, 502},
		{wire.Chat, `{"object":"error","message":"x","type":"BadRequestError","code":400}`, health.Request, 400},
		{wire.Responses, `{"type":"error","code":"server_error","message":"x","param":null}`, health.ServerError, 502},
		{wire.Responses, `{"type":"error","code":"rate_limit_exceeded","message":"x"}`, health.RateLimited, 429},
		{wire.Responses, `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_prompt","message":"x"}}`, health.Request, 400},
		{wire.Responses, `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"x"},"usage":null}}`, health.ServerError, 502},
		{wire.Responses, `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}}`, health.RateLimited, 429},
		{wire.Responses, `{"type":"response.failed","response":{"status":"failed","error":null}}`, health.ServerError, 502},
	}
	for _, tt := range tests {
		t.Run(tt.data, func(t *testing.T) {
			s := NewStream(tt.surface)
			if m := s.Read(sse.Event{Data: []byte(tt.data)}); m&Error == 0 {
				t.Fatalf("Read(%s) = %b, want Error", tt.data, m)
			}
			if f, status := s.Failure(); f.Class != tt.class || status != tt.status {
				t.Errorf("Failure() = %s, %d, want %s, %d", f.Class, status, tt.class, tt.status)
			}
		})
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(429, `[{"error":{"code":429,"details":[{"retryDelay":"3s"}]}}]`, "7")
	f.Add(404, `{"error":{"response":{"error":"x"`, "Sun, 01 Mar 2026 12:01:00 GMT")
	f.Fuzz(func(t *testing.T, status int, body, retry string) {
		got := Classify(status, http.Header{"Retry-After": {retry}, "X-Ratelimit-Reset": {retry}}, []byte(body), noon)
		if got.RetryAfter < 0 || got.RetryAfter > longestRetry {
			t.Errorf("RetryAfter = %v, want 0 to %v", got.RetryAfter, longestRetry)
		}
		if got.Class == health.OK || got.Class == "" {
			t.Errorf("Class = %q for status %d", got.Class, status)
		}
	})
}
