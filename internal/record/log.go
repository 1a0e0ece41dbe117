package record

import "log/slog"

// LogValue lets the event be the one line that a request leaves in the log. It holds what
// the event's JSON holds, in the same order: an event that could not be delivered is put
// back from there.
func (e *Event) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 40)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	number := func(key string, value *int64) {
		if value != nil {
			attrs = append(attrs, slog.Int64(key, *value))
		}
	}
	attrs = append(attrs, slog.String("event_id", e.EventID), slog.Int64("created_at", e.CreatedAt), slog.String("request_id", e.RequestID))
	text("session_id", e.SessionID)
	text("session_key", e.SessionKey)
	text("session_source", e.SessionSource)
	text("user_path", e.UserPath)
	text("api_surface", e.APISurface)
	text("requested_model", e.RequestedModel)
	text("model_name", e.ModelName)
	text("provider_identity", e.Provider)
	text("key_id", e.KeyID)
	text("billing_model", e.BillingModel)
	text("decision_reason", e.DecisionReason)
	attrs = append(attrs, slog.Bool("switched", e.Switched))
	number("switch_count", e.SwitchCount)
	number("switch_cost_nano_usd", e.SwitchCostNanoUSD)
	if len(e.Attempts) > 0 {
		attrs = append(attrs, slog.Any("attempts", e.Attempts))
	}
	if len(e.DegradedProviders) > 0 {
		attrs = append(attrs, slog.Any("degraded_providers", e.DegradedProviders))
	}
	attrs = append(attrs, slog.Bool("stream", e.Stream))
	number("input_tokens", e.InputTokens)
	number("cached_input_tokens", e.CachedInputTokens)
	number("cache_write_tokens", e.CacheWriteTokens)
	number("output_tokens", e.OutputTokens)
	number("reasoning_tokens", e.ReasoningTokens)
	attrs = append(attrs, slog.String("usage_quality", e.UsageQuality))
	number("input_cost_nano_usd", e.InputCostNanoUSD)
	number("output_cost_nano_usd", e.OutputCostNanoUSD)
	number("cost_nano_usd", e.CostNanoUSD)
	attrs = append(attrs, slog.Int("response_status", e.ResponseStatus), slog.String("outcome", e.Outcome))
	number("ttft_ms", e.TTFTMillis)
	attrs = append(attrs, slog.Int64("latency_ms", e.LatencyMillis), slog.String("affinity", e.Affinity))
	return slog.GroupValue(attrs...)
}
