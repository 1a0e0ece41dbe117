package provider

import (
	"net/http"
	"strings"
	"time"

	"switchboard/internal/health"
)

// Failure is what an upstream answer means.
type Failure struct {
	Class      health.Class
	RetryAfter time.Duration // 0: not said
}

// Classify is Vendor.Classify of a vendor that means what everybody means.
func Classify(status int, header http.Header, body []byte, now time.Time) Failure {
	return new(Vendor).Classify(status, header, body, now)
}

// class is the meaning of a status with what the body says about it (DESIGN 5).
func (e *complaint) class(status int) health.Class {
	switch {
	case status == http.StatusPaymentRequired:
		return health.NoCredit
	case status < 400 || status > 599:
		return health.ServerError // redirects are not followed, the rest is no answer
	case status >= 500:
		if status == 529 || e.overloaded() {
			return health.Overloaded
		}
		return health.ServerError
	case e.noCredit(status):
		return health.NoCredit
	}
	switch status {
	case http.StatusTooManyRequests:
		if e.overloaded() {
			return health.Overloaded
		}
		return health.RateLimited
	case http.StatusUnauthorized:
		return health.Unauthorized
	case http.StatusForbidden:
		switch {
		case e.is("content_filter", "content_policy_violation") || e.says("input was flagged", "content was flagged", "prompt was flagged"):
			return health.Request
		case e.is("model_not_found"):
			return health.ModelNotFound
		}
		return health.Unauthorized
	case http.StatusNotFound:
		if e.missingModel() || !e.shaped {
			return health.ModelNotFound
		}
		return health.Request
	case http.StatusBadRequest:
		if e.is("model_not_found", "model_decommissioned") || e.says("model not exist", "not a valid model id") {
			return health.ModelNotFound
		}
		return health.Request
	case http.StatusRequestTimeout:
		return health.ServerError
	}
	return health.Request
}

func (e *complaint) overloaded() bool {
	return e.is("overloaded_error", "overloaded", "engine_overloaded_error", "engine_overloaded")
}

// missingModel reads a 404: a model is missing, rather than a file or a response.
func (e *complaint) missingModel() bool {
	if e.is("model_not_found") {
		return true
	}
	if e.is("previous_response_not_found") || e.says("previous response", "response with id") {
		return false
	}
	head := e.begins()
	return head.says("model", "no endpoints found")
}

// noCredit tells whether a 4xx means that the account has no money or quota left, which
// waiting a minute does not mend. A bare "billing" does not: ordinary rate limits point to
// the billing page.
func (e *complaint) noCredit(status int) bool {
	if e.is("context_length_exceeded", "content_filter", "string_above_max_length") {
		return false
	}
	if e.is("insufficient_quota", "exceeded_current_quota_error", "insufficient_credits",
		"insufficient_balance", "creditserror", "credit_balance_too_low", "billing_error",
		"billing_hard_limit_reached", "billing_not_active", "account_deactivated",
		"usage_limit_reached", "usage_limit_exceeded", "usage_not_included",
		"spend_limit_exceeded", "spending_limit_reached", "payment_required") {
		return true
	}
	said := *e
	if status == http.StatusBadRequest || status == http.StatusUnprocessableEntity {
		if e.param {
			return false
		}
		said = e.begins()
	}
	if said.says("credit balance is too low", "usage limit", "billing hard limit", "billing_hard_limit",
		"spending limit", "spend limit", "insufficient balance", "insufficient credit",
		"insufficient quota", "insufficient funds", "insufficient_quota", "out of credits",
		"not enough credit", "billing is not active", "budget has been exceeded") {
		return true
	}
	if said.says("exceeded your current quota") {
		// Google says so of a limit per minute too, and then when to come back.
		return e.retry == 0
	}
	return status == http.StatusForbidden && e.says("quota exceeded", "quota has been exceeded")
}

// inBand is what an error event means: there was no status, so its type stands for one.
func (e *complaint) inBand(v *Vendor) (Failure, int) {
	status := e.statusOfType()
	m := v.meaning(e, status)
	class := e.class(status)
	if m != nil {
		class = m.Class
	}
	switch class {
	case health.NoCredit, health.RateLimited:
		status = http.StatusTooManyRequests
	case health.Unauthorized:
		status = http.StatusBadGateway // our credentials, not the client's
	case health.ModelNotFound:
		status = http.StatusNotFound
	case health.Overloaded:
		status = 529
	}
	f := Failure{Class: class}
	if class != health.Request {
		f.RetryAfter = e.retry
		if f.RetryAfter == 0 && m != nil {
			f.RetryAfter = m.Retry
		}
	}
	return f, status
}

func (e *complaint) statusOfType() int {
	switch {
	case e.noCredit(http.StatusBadRequest):
		return http.StatusTooManyRequests
	case e.overloaded():
		return 529
	case e.is("rate_limit_error", "rate_limit_exceeded", "rate_limited", "too_many_requests",
		"resource_exhausted", "tokens", "requests"):
		return http.StatusTooManyRequests
	case e.number == http.StatusRequestTimeout:
		return http.StatusGatewayTimeout
	case e.number != 0:
		return e.number
	case e.is("authentication_error", "invalid_api_key", "invalid_authentication"):
		return http.StatusUnauthorized
	case e.is("permission_error", "permission_denied"):
		return http.StatusForbidden
	case e.is("not_found_error", "not_found", "model_not_found"):
		return http.StatusNotFound
	case e.is("request_too_large"):
		return http.StatusRequestEntityTooLarge
	case e.is("timeout_error"):
		return http.StatusGatewayTimeout
	case e.is("server_error", "api_error", "internal_server_error", "internal_error"):
		return http.StatusBadGateway
	case e.is("context_length_exceeded", "content_filter", "content_policy_violation"),
		strings.HasPrefix(e.kind, "invalid_"), strings.HasPrefix(e.code, "invalid_"),
		strings.HasPrefix(e.code, "image_"):
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}
