package proxy

import (
	"testing"

	"switchboard/internal/wire"
)

func TestErrorAnswer(t *testing.T) {
	tests := []struct {
		name    string
		surface wire.Surface
		data    string
		want    string
	}{
		{"chat", wire.Chat, `{"error":{"message":"m","code":1}}`, `{"error":{"message":"m","code":1}}`},
		{"chunk", wire.Chat, `{"id":"g","error":{"message":"m"},"choices":[]}`, `{"error":{"message":"m"}}`},
		{"event", wire.Responses, `{"type":"error","code":"c","message":"m","param":null}`, `{"error":{"message":"m","type":"invalid_request_error","code":"c","param":null}}`},
		{"failed response", wire.Responses, `{"type":"response.failed","response":{"error":{"code":"c","message":"m"}}}`, `{"error":{"code":"c","message":"m"}}`},
		{"messages", wire.Messages, `{"type":"error","error":{"type":"t","message":"m"}}`, `{"type":"error","error":{"type":"t","message":"m"}}`},
		{"text", wire.Chat, `boom`, ``},
		{"nothing said", wire.Chat, `{}`, ``},
		{"error as text", wire.Chat, `{"error":"boom"}`, ``},
	}
	for _, tt := range tests {
		if got := string(errorAnswer(tt.surface, []byte(tt.data), 400)); got != tt.want {
			t.Errorf("%s: errorAnswer(%s) = %s, want %s", tt.name, tt.data, got, tt.want)
		}
	}
}
