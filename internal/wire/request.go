package wire

import "net/http"

// Span is a half-open range of byte offsets into a body. The zero Span means absent.
type Span struct{ Start, End int }

// Found tells whether the span was present.
func (s Span) Found() bool { return s.End > s.Start }

// Of returns the bytes of the span in body, sharing its memory.
func (s Span) Of(body []byte) []byte { return body[s.Start:s.End] }

// Request is one decoded data-plane request. It is immutable: edits for upstream are made
// by Splice on a copy of the slices, never in Body.
type Request struct {
	Operation
	Query  string // raw query without '?', passed upstream unchanged
	Header http.Header
	Body   []byte
	Fields Fields
}

// Fields are the top-level members of the body that routing needs. String members are
// unescaped; a member of another JSON type than it should have reads as absent here,
// except model and stream, which Decode refuses.
type Fields struct {
	Model     string
	ModelSpan Span // the value with its quotes
	Stream    bool

	StreamOptions    Span // the whole value
	IncludeUsage     bool // stream_options.include_usage is true
	IncludeUsageSpan Span // its value, when present
	FirstMember      int  // offset just after the opening brace, where a member can be added
	Empty            bool // the object has no members
	MetadataUserID   string
	SessionID        string
	LitellmSessionID string
	PromptCacheKey   string
	Conversation     string // conversation, when it is a string
	ConversationID   string // conversation.id, when it is an object
	PreviousResponse string
	// Values that the automatic session detection reads; whole values.
	System, Instructions, Tools, Messages, Input Span
}
