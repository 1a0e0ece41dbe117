// Package wire reads a request body once, keeps its bytes, finds the fields that routing
// needs, splices edits into it, and writes errors in the caller's surface.
package wire

import "net/http"

// Decode finds the routing fields of a body that has already been read. It checks that the
// whole body is one JSON object with balanced structure, and refuses (as *Error, 400)
// malformed JSON, duplicates of top-level members that route (also when a key is written
// with escapes or the duplicate is equal), a missing or non-string model and a non-boolean
// stream. The contents of other members are the provider's business.
func Decode(op Operation, query string, header http.Header, body []byte) (*Request, error) {
	panic("todo")
}

// Edit is a change of a body: replace Span with With. An empty span inserts.
type Edit struct {
	Span
	With []byte
}

// Body is a body for upstream as slices of the original and of the edits; nothing is copied.
type Body struct {
	parts [][]byte
	n     int64
}

// Splice applies edits, which must be ascending and must not overlap.
func Splice(body []byte, edits ...Edit) Body { panic("todo") }

// Edits returns the changes that a call needs: the model's new name when it differs, and
// stream_options.include_usage when askUsage (DESIGN 7). It allocates nothing when there
// is nothing to change.
func (r *Request) Edits(model string, askUsage bool) []Edit { panic("todo") }

// WriteError writes e in the surface's shape: {"error":{message,type,code,param}} for the
// OpenAI surfaces, {"type":"error","error":{type,message}} for Anthropic's, with details
// where there are any. It sets Content-Type, Retry-After and the status.
func WriteError(w http.ResponseWriter, surface Surface, e *Error) { panic("todo") }

// StreamError is e as one in-band event of the surface's stream, for an answer whose
// status has already been sent.
func StreamError(surface Surface, e *Error) []byte { panic("todo") }
