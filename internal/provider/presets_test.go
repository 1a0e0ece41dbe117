package provider

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/health"
	"switchboard/internal/sse"
	"switchboard/internal/wire"
)

// What errors mean at each vendor: the bodies are as they write them.
func TestClassesOfEveryVendor(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type row struct {
		vendor string
		status int
		header string
		body   string
		want   health.Class
		retry  time.Duration
	}
	tests := []row{
		{"gemini", 429, "", `[{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}]`, health.RateLimited, 0},
		{"gemini", 429, "", `[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}]`, health.RateLimited, 34 * time.Second},
		{"gemini", 503, "", `[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]`, health.Overloaded, 0},
		{"gemini", 400, "", `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, health.Unauthorized, 0},
		{"gemini", 400, "", `[{"error":{"code":400,"message":"Invalid value: 'api key not valid'","status":"INVALID_ARGUMENT"}}]`, health.Request, 0},
		{"gemini", 404, "", `[{"error":{"code":404,"message":"models/x is not found for API version v1main","status":"NOT_FOUND"}}]`, health.ModelNotFound, 0},
		{"groq", 429, "Retry-After: 7", `{"error":{"message":"Rate limit reached for model x on tokens per minute (TPM): Limit 6000, Used 5000. Need more tokens? Upgrade today at https://console.groq.com/settings/billing","type":"tokens","code":"rate_limit_exceeded"}}`, health.RateLimited, 7 * time.Second},
		{"groq", 429, "X-Ratelimit-Reset-Tokens: 2m59.5s", `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, health.RateLimited, 179500 * time.Millisecond},
		{"groq", 413, "", `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}`, health.RateLimited, time.Second},
		{"groq", 413, "", `{"error":{"message":"Request Entity Too Large","type":"invalid_request_error","code":"request_too_large"}}`, health.Request, 0},
		{"groq", 498, "", `{"error":{"message":"Flex tier capacity exceeded","type":"capacity_exceeded"}}`, health.Overloaded, 0},
		{"groq", 503, "", `{"error":{"message":"x is currently over capacity","type":"internal_server_error"}}`, health.Overloaded, 0},
		{"groq", 400, "", `{"error":{"message":"The model x has been decommissioned","type":"invalid_request_error","code":"model_decommissioned"}}`, health.ModelNotFound, 0},
		{"groq", 400, "", `{"error":{"message":"Organization has been restricted","code":"organization_restricted"}}`, health.Unauthorized, 0},
		{"xai", 400, "", `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***56."}`, health.Unauthorized, 0},
		{"xai", 403, "", `{"code":"The caller does not have permission","error":"Your newly created team doesn't have any credits yet."}`, health.NoCredit, 0},
		{"xai", 403, "", `{"code":"The caller does not have permission","error":"Your API key is blocked."}`, health.Unauthorized, 0},
		{"deepseek", 402, "", `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, health.NoCredit, 0},
		{"deepseek", 422, "", `{"error":{"message":"Invalid parameters","type":"invalid_request_error"}}`, health.Request, 0},
		{"deepseek", 503, "", `{"error":{"message":"Service is too busy"}}`, health.Overloaded, 0},
		{"deepseek", 503, "Retry-After: 12", `busy`, health.Overloaded, 12 * time.Second},
		{"mistral", 422, "", `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}`, health.Request, 0},
		{"mistral", 422, "", `{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error.missing"}]}`, health.Request, 0},
		{"mistral", 429, "", `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}`, health.Overloaded, 0},
		{"mistral", 429, "", `{"message":"Requests rate limit exceeded"}`, health.RateLimited, 0},
		{"mistral", 401, "", `{"detail":"Unauthorized"}`, health.Unauthorized, 0},
		{"mistral", 400, "", `{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}`, health.ModelNotFound, 0},
		{"together", 402, "", `{"error":{"message":"spending limit"}}`, health.NoCredit, 0},
		{"together", 403, "", `{"error":{"message":"Input token count + max_tokens parameter must be less than the context length","type":"invalid_request_error"}}`, health.Request, 0},
		{"together", 403, "", `{"error":{"message":"forbidden"}}`, health.Unauthorized, 0},
		{"together", 429, "", `{"error":{"message":"Credit limit exceeded, please add credit","type":"credit_limit","param":null,"code":null}}`, health.NoCredit, 0},
		{"together", 503, "", `{"error":{"message":"The server is overloaded or not ready yet.","type":"service_unavailable"}}`, health.Overloaded, 0},
		{"fireworks", 412, "", `{"error":{"message":"Account x is suspended, possibly due to reaching the monthly spending limit","code":"FAILED_PRECONDITION"}}`, health.NoCredit, 0},
		{"fireworks", 412, "", `{"error":{"message":"the LoRA failed to load"}}`, health.ModelNotFound, 0},
		{"cerebras", 429, "", `{"message":"We're experiencing high traffic right now! Please try again soon.","type":"too_many_requests_error","param":"queue","code":"queue_exceeded"}`, health.Overloaded, 0},
		{"cerebras", 429, "X-Ratelimit-Remaining-Tokens-Minute: 0|X-Ratelimit-Reset-Tokens-Minute: 11.38|X-Ratelimit-Remaining-Requests-Day: 9|X-Ratelimit-Reset-Requests-Day: 33011.3", `{"message":"Tokens per minute limit exceeded - too many tokens processed.","type":"too_many_tokens_error","param":"quota","code":"token_quota_exceeded"}`, health.RateLimited, 11380 * time.Millisecond},
		{"cerebras", 429, "X-Ratelimit-Remaining-Tokens-Minute: 40|X-Ratelimit-Reset-Tokens-Minute: 11|X-Ratelimit-Remaining-Requests-Day: 9|X-Ratelimit-Reset-Requests-Day: 33011.3", `{"message":"Tokens per minute limit exceeded","code":"token_quota_exceeded"}`, health.RateLimited, 11 * time.Second},
		{"cerebras", 429, "X-Ratelimit-Remaining-Requests-Day: 0|X-Ratelimit-Reset-Requests-Day: 33011", `{"message":"Requests per day limit exceeded","code":"request_quota_exceeded"}`, health.RateLimited, 33011 * time.Second},
		{"openrouter", 402, "", `{"error":{"code":402,"message":"Insufficient credits. Add more using https://openrouter.ai/credits"}}`, health.NoCredit, 0},
		{"openrouter", 402, "Retry-After: 3", `{"error":{"code":402,"message":"In-flight budget exhausted","metadata":{"limit_source":"openrouter_in_flight_budget"}}}`, health.RateLimited, 3 * time.Second},
		{"openrouter", 403, "", `{"error":{"code":403,"message":"Your input was flagged for violence","metadata":{"reasons":["violence"],"flagged_input":"x"}}}`, health.Request, 0},
		{"openrouter", 403, "", `{"error":{"code":403,"message":"Key limit exceeded (total limit)."}}`, health.NoCredit, 0},
		{"openrouter", 429, "", `{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min","metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1767323075000"},"provider_name":null}}}`, health.RateLimited, 30 * time.Second},
		{"openrouter", 502, "", `{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"{\"error\":{}}","provider_name":"X"}}}`, health.Overloaded, 0},
		{"openrouter", 503, "", `{"error":{"code":503,"message":"No instances available"}}`, health.Overloaded, 0},
		{"openrouter", 404, "", `{"error":{"code":404,"message":"No endpoints found for x"}}`, health.ModelNotFound, 0},
		{"openrouter", 400, "", `{"error":{"code":400,"message":"x is not a valid model ID"}}`, health.ModelNotFound, 0},
		{"openrouter", 408, "", `{"error":{"code":408,"message":"timed out"}}`, health.ServerError, 0},
		{"azure", 429, "Retry-After-Ms: 1500|Retry-After: 2", `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current pricing tier. Please retry after 2 seconds."}}`, health.RateLimited, 1500 * time.Millisecond},
		{"azure", 400, "", `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, health.Request, 0},
		{"azure", 404, "", `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, health.ModelNotFound, 0},
		{"azure", 404, "", `{"error":{"code":"404","message":"Resource not found"}}`, health.ModelNotFound, 0},
		{"azure", 401, "", `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, health.Unauthorized, 0},
		{"bedrock", 429, "X-Amzn-Errortype: ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/", `{"message":"Too many tokens, please wait before trying again."}`, health.RateLimited, 0},
		{"bedrock", 400, "X-Amzn-Errortype: ThrottlingException", `{"message":"Too many requests"}`, health.RateLimited, 0},
		{"bedrock", 429, "X-Amzn-Errortype: ModelNotReadyException", `{"message":"not ready"}`, health.Overloaded, 0},
		{"bedrock", 400, "X-Amzn-Errortype: ServiceQuotaExceededException", `{"message":"quota"}`, health.RateLimited, time.Minute},
		{"bedrock", 503, "X-Amzn-Errortype: ServiceUnavailableException", `{"message":"busy"}`, health.Overloaded, 0},
		{"bedrock", 424, "X-Amzn-Errortype: ModelErrorException", `{"message":"the model failed"}`, health.ServerError, 0},
		{"bedrock", 400, "X-Amzn-Errortype: ValidationException", `{"message":"The provided model identifier is invalid."}`, health.ModelNotFound, 0},
		{"bedrock", 400, "X-Amzn-Errortype: ValidationException", `{"message":"messages: at least one is required"}`, health.Request, 0},
		{"bedrock", 403, "X-Amzn-Errortype: AccessDeniedException", `{"message":"You don't have access to the model with the specified model ID."}`, health.ModelNotFound, 0},
		{"bedrock", 403, "X-Amzn-Errortype: AccessDeniedException", `{"message":"Authentication failed: API Key is not valid"}`, health.Unauthorized, 0},
		{"ollama", 404, "", `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, health.ModelNotFound, 0},
		{"ollama", 503, "", `{"error":{"message":"server busy, please try again. maximum pending requests exceeded"}}`, health.Overloaded, 0},
		{"vllm", 404, "", `{"object":"error","message":"The model x does not exist.","type":"NotFoundError","param":null,"code":404}`, health.ModelNotFound, 0},
		{"vllm", 400, "", `{"error":{"message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}}`, health.Request, 0},
		{"lmstudio", 400, "", `{"error":{"message":"No models loaded. Please load a model in the developer page.","type":"invalid_request_error"}}`, health.ModelNotFound, 0},
	}
	for _, v := range Vendors() { // what means the same everywhere
		tests = append(tests,
			row{v.Type, 429, "Retry-After: 9", `{"error":{"message":"slow down"}}`, health.RateLimited, 9 * time.Second},
			row{v.Type, 429, "", `{"error":{"message":"x","code":"insufficient_quota"}}`, health.NoCredit, 0},
			row{v.Type, 402, "", `{"error":{"message":"pay"}}`, health.NoCredit, 0},
			row{v.Type, 401, "", `{"error":{"message":"no"}}`, health.Unauthorized, 0},
			row{v.Type, 529, "", `{}`, health.Overloaded, 0},
			row{v.Type, 500, "", `{"error":{"message":"oops"}}`, health.ServerError, 0},
			row{v.Type, 400, "", `{"error":{"message":"bad","type":"invalid_request_error"}}`, health.Request, 0},
			row{v.Type, 400, "", `{"error":{"message":"too long","code":"context_length_exceeded"}}`, health.Request, 0},
			row{v.Type, 404, "", `{"error":{"message":"x","code":"model_not_found"}}`, health.ModelNotFound, 0},
		)
	}
	for _, tt := range tests {
		v, _ := VendorOf(tt.vendor)
		h := http.Header{}
		for line := range strings.SplitSeq(tt.header, "|") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				h.Set(name, value)
			}
		}
		if got := v.Classify(tt.status, h, []byte(tt.body), now); got.Class != tt.want || got.RetryAfter != tt.retry {
			t.Errorf("%s: Classify(%d, %s, %s) = %v, want %v %v", tt.vendor, tt.status, tt.header, tt.body, got, tt.want, tt.retry)
		}
	}
}

// Where each vendor puts usage in a stream, and what it counts.
func TestUsageOfEveryVendor(t *testing.T) {
	chunk := func(members string) string {
		return `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` + members + `}`
	}
	tests := []struct {
		vendor string
		events []string
		want   Usage
	}{
		{"groq", []string{chunk(`"x_groq":{"id":"req_1","usage":{"queue_time":0.07,"prompt_tokens":23,"completion_tokens":19,"total_tokens":42,"prompt_tokens_details":{"cached_tokens":11}}}`)}, Usage{Input: 23, CachedInput: 11, Output: 19}},
		{"groq", []string{chunk(`"x_groq":{"usage":{"prompt_tokens":1,"completion_tokens":1}}`), `{"choices":[],"usage":{"prompt_tokens":23,"completion_tokens":19}}`}, Usage{Input: 23, Output: 19}},
		{"mistral", []string{chunk(`"usage":{"prompt_tokens":5,"completion_tokens":6,"total_tokens":11}`)}, Usage{Input: 5, Output: 6}},
		{"xai", []string{
			`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`,
			chunk(`"usage":{"prompt_tokens":5,"completion_tokens":6,"total_tokens":31,"completion_tokens_details":{"reasoning_tokens":20},"cost_in_usd_ticks":37756000}`),
		}, Usage{Input: 5, Output: 26, Reasoning: 20, Reported: Charge{Known: true, Total: 3775600}}},
		{"gemini", []string{chunk(`"usage":{"prompt_tokens":20,"completion_tokens":198,"total_tokens":623}`)}, Usage{Input: 20, Output: 603, Reasoning: 405}},
		{"gemini", []string{chunk(`"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}`)}, Usage{Input: 20, Output: 5}},
		{"openai", []string{chunk(`"usage":{"prompt_tokens":20,"completion_tokens":198,"total_tokens":623,"cost":0.1}`)}, Usage{Input: 20, Output: 198}},
		{"deepseek", []string{chunk(`` + `"usage":{"prompt_tokens":20,"prompt_cache_hit_tokens":16,"prompt_cache_miss_tokens":4,"completion_tokens":5,"total_tokens":25}`)}, Usage{Input: 20, CachedInput: 16, Output: 5}},
		{"openrouter", []string{chunk(`"usage":null`), `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.00014,"is_byok":false,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":50},"cost_details":{"upstream_inference_cost":null,"upstream_inference_prompt_cost":0.0001,"upstream_inference_completions_cost":0.00004}}}`}, Usage{Input: 194, CachedInput: 100, CacheWrite: 50, Output: 2, Reported: Charge{Known: true, Total: 140000, Split: true, Parts: Cost{100000, 40000}}}},
		{"openrouter", []string{chunk(`"usage":{"prompt_tokens":1,"completion_tokens":2,"cost":0.95,"is_byok":true,"cost_details":{"upstream_inference_cost":19}}`)}, Usage{Input: 1, Output: 2, Reported: Charge{Known: true, Total: 19_950_000_000}}},
		{"openrouter", []string{chunk(`"usage":{"prompt_tokens":1,"completion_tokens":2,"cost":0,"is_byok":true}`)}, Usage{Input: 1, Output: 2}},
		{"openrouter", []string{chunk(`"usage":{"prompt_tokens":1,"completion_tokens":2,"cost":0}`)}, Usage{Input: 1, Output: 2, Reported: Charge{Known: true}}},
		{"openrouter", []string{chunk(`"usage":{"prompt_tokens":1,"completion_tokens":2,"cost":"free"}`)}, Usage{Input: 1, Output: 2}},
		{"vllm", []string{`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`, chunk(`"usage":{"prompt_tokens":5,"completion_tokens":2}`)}, Usage{Input: 5, Output: 2}},
	}
	for _, tt := range tests {
		v, _ := VendorOf(tt.vendor)
		s := v.NewStream(wire.Chat)
		for _, data := range tt.events {
			if mark := s.Read(sse.Event{Data: []byte(data)}); mark&Error != 0 {
				t.Errorf("%s: %s is an error", tt.vendor, data)
			}
		}
		s.Read(sse.Event{Data: []byte("[DONE]")})
		tt.want.Quality = usageExact
		if diff := cmp.Diff(tt.want, s.Usage()); diff != "" {
			t.Errorf("%s: Usage after %q (-want +got):\n%s", tt.vendor, tt.events, diff)
		}
		// The same usage in an answer that is not streamed.
		last := tt.events[len(tt.events)-1]
		got, _ := v.ReadAnswer(wire.Chat, []byte(last), true)
		if tt.vendor == "groq" {
			continue // its plain answers have it where all have
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: ReadAnswer(%s) (-want +got):\n%s", tt.vendor, last, diff)
		}
	}
}

// Error events that only some vendors have.
func TestErrorEventsOfVendors(t *testing.T) {
	tests := []struct {
		vendor, data string
		class        health.Class
		status       int
	}{
		{"groq", `{"choices":[],"x_groq":{"id":"req_1","error":"over capacity"}}`, health.ServerError, 502},
		{"gemini", `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, health.Overloaded, 529},
		{"gemini", `[{"error":{"code":429,"message":"exhausted","status":"RESOURCE_EXHAUSTED"}}]`, health.RateLimited, 429},
		{"openrouter", `{"id":"gen-1","object":"chat.completion.chunk","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`, health.Overloaded, 529},
		{"openai", `{"error":{"code":502,"message":"x"}}`, health.ServerError, 502},
		{"mistral", `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}`, health.Overloaded, 529},
	}
	for _, tt := range tests {
		v, _ := VendorOf(tt.vendor)
		s := v.NewStream(wire.Chat)
		if mark := s.Read(sse.Event{Data: []byte(tt.data)}); mark&Error == 0 {
			t.Errorf("%s: %s is no error", tt.vendor, tt.data)
			continue
		}
		if f, status := s.Failure(); f.Class != tt.class || status != tt.status {
			t.Errorf("%s: Failure after %s = %v, %d, want %v, %d", tt.vendor, tt.data, f, status, tt.class, tt.status)
		}
	}
	openai, _ := VendorOf("openai")
	s := openai.NewStream(wire.Chat)
	if mark := s.Read(sse.Event{Data: []byte(`[{"error":{"code":503}}]`)}); mark != 0 {
		t.Errorf("an array at openai is %v, want nothing", mark)
	}
}

func TestErrorBody(t *testing.T) {
	tests := []struct{ vendor, body, want string }{
		{"gemini", " [{\"error\":{\"code\":400}}\n]\n", `{"error":{"code":400}}`},
		{"gemini", `{"error":{}}`, ""},
		{"gemini", `[{"error":{}},{"error":{}}]`, ""},
		{"gemini", `[1]`, ""},
		{"gemini", `[]`, ""},
		{"gemini", `[{"error":`, ""},
		{"gemini", ``, ""},
		{"openai", `[{"error":{"code":400}}]`, ""},
		{"openai", `{"message":"x"}`, ""},
		{"mistral", `{"message":"x","type":"y"}`, `{"error":{"message":"x","type":"y"}}`},
		{"mistral", `{"detail":[{"msg":"x"}]}`, `{"error":{"detail":[{"msg":"x"}]}}`},
		{"mistral", `{"error":{"message":"x"}}`, ""},
		{"mistral", `{"error":null,"message":"x"}`, ""},
		{"mistral", `{"message":"x`, ""},
		{"mistral", `{"message":"x"x}`, ""},
		{"mistral", `oops`, ""},
		{"xai", `{"code":"Bad \"thing\"","error":"No \\ way"}`, `{"error":{"message":"No \\ way","type":"invalid_request_error","code":"Bad \"thing\""}}`},
		{"xai", `{"error":"No"}`, `{"error":{"message":"No","type":"invalid_request_error","code":null}}`},
	}
	for _, tt := range tests {
		want := tt.want
		if want == "" {
			want = tt.body
		}
		v, _ := VendorOf(tt.vendor)
		if got := string(v.ErrorBody([]byte(tt.body))); got != want {
			t.Errorf("%s: ErrorBody(%s) = %s, want %s", tt.vendor, tt.body, got, want)
		}
	}
}
