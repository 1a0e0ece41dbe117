package proxy

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/translate"
	"switchboard/internal/wire"
)

// maxTranslated is the largest answer in bytes that is translated: it must be had whole.
const maxTranslated = 32 << 20

// anthropicVersion is the version of Anthropic's API that translations speak.
const anthropicVersion = "2023-06-01"

// translation is what stands between a client and a provider of another surface. A nil
// translation changes nothing.
type translation struct {
	from, to wire.Surface // the provider's, the client's
	dropped  []string     // fields of the request that were left out
	reply    translate.Reply
	stream   *translate.Stream
}

// translated is the request as the provider's surface has it. Everything that follows takes
// it for the client's own. The error is for the client: it asks for what the provider's
// surface does not have.
func translated(r *wire.Request, to Target, now int64) (*wire.Request, *translation, *wire.Error) {
	p := to.Provider
	o := translate.Options{
		Model: to.Model.Upstream, MaxTokens: p.TranslatedMaxTokens, AskUsage: p.StreamOptions,
		ShortMaxTokens: p.ShortMaxTokens(), Extended: p.ExtendedChat(),
	}
	if p.CacheMarkers {
		o.Cache = translate.DefaultCache()
	}
	body, dropped, err := translate.Request(r.Surface, to.As, r.Body, o)
	if err != nil {
		return nil, nil, asRefusal(err)
	}
	operation := wire.Operation{Surface: to.As, Path: "/chat/completions", Billed: r.Billed}
	if to.As == wire.Messages {
		operation.Path = "/messages"
	}
	made, err := wire.Decode(operation, "", translatedHeader(r.Header, to.As), body)
	if err != nil {
		return nil, nil, asRefusal(err)
	}
	t := &translation{from: to.As, to: r.Surface, dropped: dropped, reply: translate.Reply{
		Model: to.Model.Upstream, Created: now, Usage: r.Fields.IncludeUsage,
	}}
	t.stream = translate.NewStream(t.from, t.to, t.reply)
	return made, t, nil
}

// withEdits puts more edits among those of a body.
func withEdits(edits, more []wire.Edit) []wire.Edit {
	if len(more) == 0 {
		return edits
	}
	edits = append(edits, more...)
	slices.SortFunc(edits, func(a, b wire.Edit) int { return a.Start - b.Start })
	return edits
}

func asRefusal(err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	return &wire.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "The request cannot be translated.", Cause: err}
}

// translatedHeader is what of the client's headers means something to the other vendor.
func translatedHeader(from http.Header, to wire.Surface) http.Header {
	header := http.Header{}
	for _, name := range []string{"Accept", "User-Agent", "Idempotency-Key"} {
		if values := from[name]; len(values) > 0 {
			header[name] = values
		}
	}
	if to == wire.Messages {
		header["Anthropic-Version"] = []string{anthropicVersion}
	}
	return header
}

// String is what a client is told of it: chat->messages; dropped=a,b.
func (t *translation) String() string {
	if t == nil {
		return ""
	}
	said := string(t.to) + "->" + string(t.from)
	if len(t.dropped) > 0 {
		said += "; dropped=" + strings.Join(t.dropped, ",")
	}
	return said
}

// client is the surface of an answer's client.
func (a *Answer) clientSurface() wire.Surface {
	if a.translation != nil {
		return a.translation.to
	}
	return a.surface
}

// Translated says from which surface to which the request was translated and what was left
// out; empty when it was not.
func (a *Answer) Translated() string { return a.translation.String() }

// feed is what of a stream's bytes the client gets.
func (t *translation) feed(chunk []byte) []byte {
	if t == nil {
		return chunk
	}
	return t.stream.Feed(chunk)
}

// close is what the client still gets when the stream has ended.
func (t *translation) close() []byte {
	if t == nil {
		return nil
	}
	return t.stream.Close()
}

// broken tells whether the client has been told that the stream cannot be translated.
func (t *translation) broken() bool { return t != nil && t.stream.Broken() }

// body is an error body in the client's shape.
func (t *translation) body(status int, body []byte) []byte {
	if t == nil || body == nil {
		return body
	}
	return translate.Error(t.from, t.to, status, body)
}

// untranslated is a success that cannot be passed on: of a kind that nobody expects, or larger
// than can be kept.
func (a *Answer) untranslated(why string) *Failure {
	return &Failure{
		Failure: provider.Failure{Class: health.ServerError}, Status: a.response.StatusCode,
		Cause: errors.New("not to be translated: " + why), Translated: a.Translated(),
	}
}

// translateWhole puts the client's answer in the place of the provider's.
func (a *Answer) translateWhole() *Failure {
	switch {
	case a.translation == nil:
		return nil
	case !a.plain:
		return a.untranslated("compressed in an unknown way")
	case !a.eof:
		return a.untranslated("too large")
	}
	answer, err := translate.Answer(a.surface, a.translation.to, a.held, a.translation.reply)
	if err != nil {
		return a.untranslated(err.Error())
	}
	a.held = slices.Clip(answer)
	return nil
}
