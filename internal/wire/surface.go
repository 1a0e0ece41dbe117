package wire

// Surface is the API shape of a request and of its answer.
type Surface string

// The surfaces that switchboard speaks.
const (
	Chat       Surface = "openai-chat-completions"
	Responses  Surface = "openai-responses"
	Messages   Surface = "anthropic-messages"
	Embeddings Surface = "openai-embeddings"
)

// Counterpart is the surface that requests of s can be translated to, and answers back from;
// false: there is none. Responses hold state at their provider, embeddings are of one model.
func (s Surface) Counterpart() (Surface, bool) {
	switch s {
	case Chat:
		return Messages, true
	case Messages:
		return Chat, true
	}
	return "", false
}

// Operation is one thing a client can ask for on a surface. Its Path is what is appended
// to a provider's base URL, which ends in the version segment.
type Operation struct {
	Surface Surface
	Path    string // "/chat/completions"
	// Billed is false for operations that produce no tokens (count_tokens): they take
	// no pin, cost nothing and cannot be streamed.
	Billed bool
}

// Operations maps the data plane's POST paths to what they ask for.
func Operations() map[string]Operation {
	return map[string]Operation{
		"/v1/chat/completions":      {Chat, "/chat/completions", true},
		"/v1/responses":             {Responses, "/responses", true},
		"/v1/messages":              {Messages, "/messages", true},
		"/v1/messages/count_tokens": {Messages, "/messages/count_tokens", false},
		"/v1/embeddings":            {Embeddings, "/embeddings", true},
	}
}
