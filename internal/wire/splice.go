package wire

import (
	"bytes"
	"encoding/json"
	"io"
)

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
func Splice(body []byte, edits ...Edit) Body {
	if len(edits) == 0 {
		return Body{parts: [][]byte{body}, n: int64(len(body))}
	}
	parts := make([][]byte, 0, 2*len(edits)+1)
	from, n := 0, 0
	for _, e := range edits {
		parts = append(parts, body[from:e.Start], e.With)
		n += e.Start - from + len(e.With)
		from = e.End
	}
	return Body{parts: append(parts, body[from:]), n: int64(n + len(body) - from)}
}

// Len is the body's length in bytes.
func (b Body) Len() int64 { return b.n }

// NewReader reads the body from its beginning; each reader is independent of others.
func (b Body) NewReader() io.ReadCloser {
	if len(b.parts) == 1 {
		return &reader{Reader: *bytes.NewReader(b.parts[0])}
	}
	readers := make([]io.Reader, len(b.parts))
	for i, part := range b.parts {
		readers[i] = bytes.NewReader(part)
	}
	return io.NopCloser(io.MultiReader(readers...)) // keeps WriterTo
}

// reader is a bytes.Reader that can be closed.
type reader struct{ bytes.Reader }

func (*reader) Close() error { return nil }

// Edits returns the changes that a call needs: the model's new name when it differs, and
// stream_options.include_usage when askUsage (DESIGN 7). It allocates nothing when there
// is nothing to change.
func (r *Request) Edits(model string, askUsage bool) []Edit {
	var edits []Edit
	if model != r.Fields.Model {
		name, _ := json.Marshal(model) //nolint:errchkjson // a string always encodes
		edits = append(edits, Edit{r.Fields.ModelSpan, name})
	}
	if !askUsage || r.Surface != Chat || !r.Fields.Stream || r.Fields.IncludeUsage {
		return edits
	}
	ask := r.askUsage()
	if len(edits) > 0 && ask.Start < edits[0].Start {
		return []Edit{ask, edits[0]}
	}
	return append(edits, ask)
}

// askUsage is the edit that asks upstream for usage, wherever the client left room for it.
func (r *Request) askUsage() Edit {
	options := r.Fields.StreamOptions
	switch {
	case r.Fields.IncludeUsageSpan.Found():
		return Edit{r.Fields.IncludeUsageSpan, []byte("true")}
	case !options.Found():
		at := r.Fields.FirstMember
		return Edit{Span{at, at}, []byte(`"stream_options":{"include_usage":true},`)}
	case r.Body[options.Start] != '{':
		return Edit{options, []byte(`{"include_usage":true}`)}
	}
	at := options.Start + 1
	if r.Body[skipSpace(r.Body, at)] == '}' {
		return Edit{Span{at, at}, []byte(`"include_usage":true`)}
	}
	return Edit{Span{at, at}, []byte(`"include_usage":true,`)}
}
