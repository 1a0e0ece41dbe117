package wire

import (
	"errors"
	"io"
	"sync"
)

// Edit is a change of a body: replace Span with With. An empty span inserts.
type Edit struct {
	Span
	With []byte
}

// Body is a body for upstream as slices of the original and of the edits; nothing is copied.
type Body struct {
	whole []byte   // the body when there are no edits, so that it needs no slice of slices
	parts [][]byte // else its parts in order, none of them empty
	n     int64
}

// Splice applies edits, which must be ascending and must not overlap.
func Splice(body []byte, edits ...Edit) Body {
	if len(edits) == 0 {
		return Body{whole: body, n: int64(len(body))}
	}
	b := Body{parts: make([][]byte, 0, 2*len(edits)+1)}
	at := 0
	for _, e := range edits {
		b.add(body[at:e.Start])
		b.add(e.With)
		at = e.End
	}
	b.add(body[at:])
	return b
}

func (b *Body) add(part []byte) {
	if len(part) > 0 {
		b.parts = append(b.parts, part)
		b.n += int64(len(part))
	}
}

// Len is the body's length in bytes.
func (b Body) Len() int64 { return b.n }

// NewReader returns a reader from the start of the body; each call is independent of the
// others. After Close nothing reads the body's memory any more, not even a call that was
// under way on another goroutine: Close waits for it.
func (b Body) NewReader() io.ReadCloser { return &bodyReader{parts: b.parts, now: b.whole} }

// bodyReader reads a Body. The lock is for transports that close a body while another of
// their goroutines still reads it.
type bodyReader struct {
	mu     sync.Mutex
	parts  [][]byte // those after now
	now    []byte
	closed bool
}

var _ io.WriterTo = (*bodyReader)(nil)

var errBodyClosed = errors.New("wire: read of a closed body")

// next makes now the next bytes to read; false at the end.
func (r *bodyReader) next() bool {
	for len(r.now) == 0 {
		if len(r.parts) == 0 {
			return false
		}
		r.now, r.parts = r.parts[0], r.parts[1:]
	}
	return true
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errBodyClosed
	}
	if !r.next() {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && r.next() {
		copied := copy(p[n:], r.now)
		n += copied
		r.now = r.now[copied:]
	}
	return n, nil
}

// WriteTo writes what is left, one Write for each part.
func (r *bodyReader) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errBodyClosed
	}
	var total int64
	for r.next() {
		n, err := w.Write(r.now)
		total += int64(n)
		r.now = r.now[n:]
		if err != nil {
			return total, err
		}
		if len(r.now) > 0 {
			return total, io.ErrShortWrite
		}
	}
	return total, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.now, r.parts = true, nil, nil
	return nil
}

// Edits returns the changes that a call needs: the model's new name when it differs, and
// stream_options.include_usage when askUsage (DESIGN 7). It allocates nothing when there
// is nothing to change.
func (r *Request) Edits(model string, askUsage bool) []Edit {
	var both [2]Edit
	n := 0
	if model != r.Fields.Model {
		both[n] = Edit{r.Fields.ModelSpan, AppendQuoted(make([]byte, 0, len(model)+2), model)}
		n++
	}
	if askUsage && r.Surface == Chat && r.Fields.Stream && !r.Fields.IncludeUsage {
		if ask, ok := r.askUsage(); ok {
			both[n] = ask
			n++
		}
	}
	if n == 0 {
		return nil
	}
	if n == 2 && both[0].Start > both[1].Start {
		both[0], both[1] = both[1], both[0]
	}
	edits := make([]Edit, n)
	copy(edits, both[:n])
	return edits
}

// askUsage is the edit that sets stream_options.include_usage. false: stream_options is of a
// type that the provider will refuse, which is his to say.
func (r *Request) askUsage() (Edit, bool) {
	f := &r.Fields
	switch {
	case !f.StreamOptions.Found():
		member := `"stream_options":{"include_usage":true}`
		if !f.Empty {
			member += ","
		}
		return Edit{Span{f.FirstMember, f.FirstMember}, []byte(member)}, true
	case f.IncludeUsageSpan.Found():
		value := string(f.IncludeUsageSpan.Of(r.Body))
		return Edit{f.IncludeUsageSpan, []byte("true")}, value == "false" || value == "null"
	case r.Body[f.StreamOptions.Start] == 'n':
		return Edit{f.StreamOptions, []byte(`{"include_usage":true}`)}, true
	case r.Body[f.StreamOptions.Start] != '{':
		return Edit{}, false
	}
	at := f.StreamOptions.Start + 1
	member := `"include_usage":true`
	if r.Body[skipSpace(r.Body, at)] != '}' {
		member += ","
	}
	return Edit{Span{at, at}, []byte(member)}, true
}
