// Package translate turns requests, answers, streams and errors of one chat surface into
// those of another, the same input always into the same bytes.
package translate

import (
	"bytes"
	"errors"
	"net/http"
	"slices"

	"switchboard/internal/wire"
)

// DefaultMaxTokens is the max_tokens of a request to Anthropic whose client set none: there
// the field is required. With thinking, which counts too, it is thinkingRoom more.
const DefaultMaxTokens = 8192

const thinkingRoom = 24576

// Options is what a translation of a request depends on beside the request.
type Options struct {
	Model     string // the provider's name of the model; empty: the request's
	MaxTokens int    // for Anthropic, when the client set none; 0: DefaultMaxTokens
	Cache     Cache
	// Extended: the OpenAI-shaped provider takes what others have added to that shape:
	// cache_control on parts, reasoning_content and thinking_blocks on assistant messages.
	// OpenAI itself refuses members that it does not know.
	Extended bool
	// ShortMaxTokens: the OpenAI-shaped provider calls the limit max_tokens; OpenAI itself
	// calls it max_completion_tokens.
	ShortMaxTokens bool
	AskUsage       bool // stream_options.include_usage goes with a streamed chat completion
}

// Cache says where cache_control markers are added to a request for Anthropic that brings
// none of its own. Four are allowed.
type Cache struct {
	Tools  bool // behind the last tool
	System bool // behind the last system block
	Turns  int  // behind that many of the last user turns
}

// DefaultCache marks what stays as it is from turn to turn, and the last two user turns: the
// one before the last is where the turn before has written its entry.
func DefaultCache() Cache { return Cache{Tools: true, System: true, Turns: 2} }

// Can tells whether requests can be translated from one surface to the other.
func Can(from, to wire.Surface) bool {
	counterpart, ok := from.Counterpart()
	return ok && counterpart == to
}

// Request translates a request's body. dropped names the fields that were left out because
// nothing of the answer depends on them, each once, in the order of the request. The error
// is a *wire.Error, 400, that names the field which has no counterpart and matters.
func Request(from, to wire.Surface, body []byte, o Options) (out []byte, dropped []string, err error) {
	if !Can(from, to) {
		return nil, nil, refusal("", "There is no translation from "+string(from)+" to "+string(to)+".")
	}
	r := &request{o: o}
	if !r.doc.parse(body) || !r.doc.root().isObject() {
		return nil, nil, refusal("", "The request body is not valid JSON.")
	}
	r.b = make([]byte, 0, len(body)+len(body)/4+512)
	if to == wire.Messages {
		r.chatToMessages(r.doc.root())
	} else {
		r.messagesToChat(r.doc.root())
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	return r.b, r.dropped, nil
}

var errNoAnswer = errors.New("translate: not an answer of the surface")

// Reply is what the translation of an answer depends on beside the answer.
type Reply struct {
	Model   string // named where the answer names none
	Created int64  // epoch seconds, for shapes that have it
	// Usage: the client of a chat stream asked for the chunk with usage.
	Usage bool
}

// Answer translates a whole answer, the body of a success, from the provider's surface to
// the client's. It fails when the body is no such answer.
func Answer(from, to wire.Surface, body []byte, o Reply) ([]byte, error) {
	var d document
	if !Can(to, from) || !d.parse(body) || !d.root().isObject() {
		return nil, errNoAnswer
	}
	w := &answer{o: o}
	w.b = make([]byte, 0, len(body)+len(body)/4+512)
	ok := false
	if to == wire.Chat {
		ok = w.messagesToChat(d.root())
	} else {
		ok = w.chatToMessages(d.root())
	}
	if !ok {
		return nil, errNoAnswer
	}
	return w.b, nil
}

// request is a translation of a request under way.
type request struct {
	buf
	doc     document
	o       Options
	dropped []string
	err     *wire.Error

	message, part int    // under way, for the names of fields
	role          string // of the output's message under way; empty: none
	others        int    // of a user message under way: where its first block that is no tool result begins; 0: none
	rest          []byte // blocks of it that wait for the results before them
	turns         []int  // where the last blocks of user messages end, before their brace
	mark          bool   // cache markers are added
	images        []byte // parts that tool messages cannot hold, for the user message behind them
}

// maxDropped is how many names there are room for in a header.
const maxDropped = 24

// drop names a field that is left out.
func (r *request) drop(name string) {
	if len(r.dropped) < maxDropped && !slices.Contains(r.dropped, name) {
		r.dropped = append(r.dropped, name)
	}
}

// refuse remembers the first reason why there is no translation.
func (r *request) refuse(param, why string) {
	if r.err == nil {
		r.err = refusal(param, param+": "+why)
	}
}

func refusal(param, message string) *wire.Error {
	return &wire.Error{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "untranslatable", Param: param, Message: message,
	}
}

// model writes the member that names the model.
func (r *request) model(v value) {
	r.key("model")
	if r.o.Model != "" {
		r.quote([]byte(r.o.Model))
		return
	}
	r.value(v)
}

// blank tells whether a string, as it is written, is nothing but white space.
func blank(inner []byte) bool {
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case isSpace(c):
		case c == '\\' && i+1 < len(inner) && bytes.IndexByte([]byte("ntr"), inner[i+1]) >= 0:
			i++
		default:
			return false
		}
	}
	return true
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
