package wire

// Error is what a client is told: a status it can act on and a message in its surface's
// shape. Cause is for the log alone and never reaches a client.
type Error struct {
	Status     int    // HTTP status
	Type       string // "invalid_request_error", "authentication_error", "rate_limit_error", "api_error", …
	Code       string // machine readable, "model_not_found"; may be empty
	Param      string // the field at fault; may be empty
	Message    string
	RetryAfter int // seconds; 0 sends no Retry-After
	Details    []Detail
	Cause      error
}

// Detail is why one provider could not serve the request.
type Detail struct {
	Provider     string `json:"provider"`
	KeyID        string `json:"key_id,omitempty"`
	Model        string `json:"model,omitempty"`
	Reason       string `json:"reason"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Cause }
