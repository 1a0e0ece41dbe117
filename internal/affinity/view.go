package affinity

import "time"

// View is a pin as operators see it, in JSON: the columns of DESIGN 6, without the key's print.
type View struct {
	SessionID           string    `json:"session_id"` // as the client gave it
	UserPath            string    `json:"user_path"`
	SessionKey          string    `json:"session_key"`
	ModelName           string    `json:"model_name"` // requested model
	Provider            string    `json:"provider_identity"`
	KeyID               string    `json:"key_id"`
	TargetModel         string    `json:"target_model"`
	APISurface          string    `json:"api_surface"`
	IsActive            bool      `json:"is_active"` // false: a claim that has not served yet
	Epoch               int64     `json:"epoch"`
	AssignedAt          time.Time `json:"assigned_at"`
	LastUsedAt          time.Time `json:"last_used_at"`
	ExpiresAt           time.Time `json:"expires_at"`
	TotalRequests       int64     `json:"total_requests"`
	TotalInputTokens    int64     `json:"total_input_tokens"`
	TotalOutputTokens   int64     `json:"total_output_tokens"`
	TotalCachedTokens   int64     `json:"total_cached_tokens"`
	TotalCostNanoUSD    int64     `json:"total_cost_nano_usd"`
	SwitchCount         int64     `json:"switch_count"`
	SwitchCostNanoUSD   int64     `json:"switch_cost_nano_usd"`
	LastSwitchRequestID string    `json:"last_switch_request_id"`
}

// View is the pin for operators.
func (p *Pin) View() View {
	return View{
		SessionID: p.ClientSessionID, UserPath: p.UserPath, SessionKey: p.SessionKey, ModelName: p.Ref.Model,
		Provider: p.Provider, KeyID: p.KeyID, TargetModel: p.Target.Model, APISurface: p.Surface,
		IsActive: p.Served, Epoch: p.Epoch,
		AssignedAt: p.AssignedAt.UTC(), LastUsedAt: p.LastUsedAt.UTC(), ExpiresAt: p.ExpiresAt.UTC(),
		TotalRequests: p.Requests, TotalInputTokens: p.InputTokens, TotalOutputTokens: p.OutputTokens,
		TotalCachedTokens: p.CachedTokens, TotalCostNanoUSD: p.CostNanoUSD,
		SwitchCount: p.SwitchCount, SwitchCostNanoUSD: p.SwitchCostNanoUSD, LastSwitchRequestID: p.LastSwitchRequestID,
	}
}
