package record

import (
	"io"
	"log/slog"
	"testing"
)

func event() *Event {
	n := int64(123456)
	return &Event{
		EventID: "01M8NNZQ3TWRB5D2HFC576FXJT", CreatedAt: 1796024032378, RequestID: "01M8NNZQ3TWRB5D2HFC576FXJT",
		SessionID: "session-13", SessionKey: "scoped-e85c901c5602f8acae9edf4595dc9d5c", SessionSource: "header:x-session-id",
		UserPath: "/bench", APISurface: "openai-chat-completions", RequestedModel: "gpt-4o-mini", ModelName: "gpt-4o-mini",
		Provider: "mock", KeyID: "1", BillingModel: "pay_as_you_go", DecisionReason: "affinity",
		SwitchCount: &n, Attempts: []Attempt{{Provider: "mock", KeyID: "1", Model: "gpt-4o-mini", Status: 200, LatencyMillis: 91}},
		InputTokens: &n, CachedInputTokens: &n, CacheWriteTokens: &n, OutputTokens: &n, ReasoningTokens: &n, UsageQuality: UsageExact,
		InputCostNanoUSD: &n, OutputCostNanoUSD: &n, CostNanoUSD: &n, ResponseStatus: 200, Outcome: OutcomeOK, TTFTMillis: &n, LatencyMillis: 91, Affinity: "pinned",
	}
}

// The one line that a request leaves in the log. Compare with benchstat:
// go test -bench Log -count 10 ./internal/record | benchstat -
func BenchmarkLogLine(b *testing.B) {
	logger := slog.New(slog.NewJSONHandler(io.Discard, nil))
	e := event()
	b.ReportAllocs()
	for b.Loop() {
		logger.LogAttrs(b.Context(), slog.LevelInfo, "request", slog.Any("event", e))
	}
}
