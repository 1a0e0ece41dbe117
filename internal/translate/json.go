package translate

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"

	"switchboard/internal/wire"
)

// node is one value of a document, in the order in which values begin. A member's key is a
// node before its value's.
type node struct {
	start, end int32 // in the source
	next       int32 // the node behind this one and all within it
}

// document is a JSON text whose values have been found and checked once, so that reading
// it in any order scans nothing twice. Its bytes are copied as they are: numbers, escapes
// and objects that nobody here knows come out as they came in.
type document struct {
	src   []byte
	nodes []node
}

// value is one node of a document. The zero value is absent.
type value struct {
	d *document
	i int32
}

const maxDepth = 1000 // of nesting; deeper is no conversation

// parse reads src, which must be one JSON value. It keeps the memory of d.nodes.
func (d *document) parse(src []byte) bool {
	d.src, d.nodes = src, d.nodes[:0]
	if len(src) > math.MaxInt32-1 {
		return false
	}
	i, ok := d.value(wire.Space(src, 0), 0)
	return ok && wire.Space(src, i) == len(src)
}

func (d *document) root() value { return value{d, 0} }

// value takes the value at i and returns the offset behind it.
func (d *document) value(i, depth int) (int, bool) {
	if i >= len(d.src) || depth > maxDepth {
		return i, false
	}
	at := len(d.nodes)
	d.nodes = append(d.nodes, node{start: int32(i)})
	ok := false
	switch d.src[i] {
	case '"':
		i, ok = d.text(i)
	case '{':
		i, ok = d.container(i, depth, '}')
	case '[':
		i, ok = d.container(i, depth, ']')
	case 't':
		i, ok = d.literal(i, "true")
	case 'f':
		i, ok = d.literal(i, "false")
	case 'n':
		i, ok = d.literal(i, "null")
	default:
		i, ok = d.number(i)
	}
	d.nodes[at].end, d.nodes[at].next = int32(i), int32(len(d.nodes))
	return i, ok
}

func (d *document) container(i, depth int, closing byte) (int, bool) {
	i = wire.Space(d.src, i+1)
	if i < len(d.src) && d.src[i] == closing {
		return i + 1, true
	}
	for ; ; i = wire.Space(d.src, i+1) {
		var ok bool
		if closing == '}' {
			if i, ok = d.key(i); !ok {
				return i, false
			}
		}
		if i, ok = d.value(i, depth+1); !ok {
			return i, false
		}
		i = wire.Space(d.src, i)
		switch {
		case i >= len(d.src):
			return i, false
		case d.src[i] == closing:
			return i + 1, true
		case d.src[i] != ',':
			return i, false
		}
	}
}

// key takes a member's name and colon.
func (d *document) key(i int) (int, bool) {
	if i >= len(d.src) || d.src[i] != '"' {
		return i, false
	}
	end, ok := d.text(i)
	if !ok {
		return i, false
	}
	d.nodes = append(d.nodes, node{int32(i), int32(end), int32(len(d.nodes) + 1)})
	i = wire.Space(d.src, end)
	if i >= len(d.src) || d.src[i] != ':' {
		return i, false
	}
	return wire.Space(d.src, i+1), true
}

const (
	ones = 0x0101010101010101
	high = ones << 7
)

// text takes a string: no control characters, no escapes that JSON does not know.
func (d *document) text(i int) (int, bool) {
	b := d.src
	for i++; ; i++ {
		for i+8 <= len(b) { // eight bytes at a time while none of them is special
			w := binary.LittleEndian.Uint64(b[i:])
			quote, escape := w^(ones*'"'), w^(ones*'\\')
			if ((quote-ones)&^quote|(escape-ones)&^escape|(w-ones*' ')&^w)&high != 0 {
				break
			}
			i += 8
		}
		switch {
		case i >= len(b) || b[i] < ' ':
			return i, false
		case b[i] == '"':
			return i + 1, true
		case b[i] != '\\':
			continue
		}
		i++
		if i >= len(b) {
			return i, false
		}
		switch b[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			if i+4 >= len(b) || !isHex(b[i+1]) || !isHex(b[i+2]) || !isHex(b[i+3]) || !isHex(b[i+4]) {
				return i, false
			}
			i += 4
		default:
			return i, false
		}
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (d *document) literal(i int, word string) (int, bool) {
	end := i + len(word)
	return end, end <= len(d.src) && string(d.src[i:end]) == word
}

func (d *document) number(i int) (int, bool) {
	span, ok := wire.Value(d.src, i)
	return span.End, ok
}

func (v value) found() bool { return v.d != nil }

// raw is the value as it is written.
func (v value) raw() []byte {
	if v.d == nil {
		return nil
	}
	n := v.d.nodes[v.i]
	return v.d.src[n.start:n.end]
}

// kind is the first byte of the value: '"', '{', '[', 't', 'f', 'n', or of a number; 0
// when it is absent.
func (v value) kind() byte {
	if v.d == nil {
		return 0
	}
	return v.d.src[v.d.nodes[v.i].start]
}

// empty tells whether there is no value, or null.
func (v value) empty() bool { return v.d == nil || v.kind() == 'n' }

func (v value) isText() bool   { return v.kind() == '"' }
func (v value) isObject() bool { return v.kind() == '{' }
func (v value) isArray() bool  { return v.kind() == '[' }
func (v value) isTrue() bool   { return v.kind() == 't' }

func (v value) isNumber() bool {
	k := v.kind()
	return k == '-' || '0' <= k && k <= '9'
}

// inner is a string's bytes between its quotes, with their escapes; nil for other values.
func (v value) inner() []byte {
	if !v.isText() {
		return nil
	}
	n := v.d.nodes[v.i]
	return v.d.src[n.start+1 : n.end-1]
}

// text is a string's decoded bytes, which may be the document's own; nil for other values.
func (v value) text() []byte {
	inner := v.inner()
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	n := v.d.nodes[v.i]
	decoded, _ := wire.AppendString(nil, v.d.src, wire.Span{Start: int(n.start), End: int(n.end)})
	return decoded
}

// is tells whether the value is that string.
func (v value) is(text string) bool { return v.isText() && string(v.text()) == text }

// members yields the members of an object by their decoded names; of another value none.
func (v value) members() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		if !v.isObject() {
			return
		}
		for i := v.i + 1; i < v.d.nodes[v.i].next; i = v.d.nodes[i+1].next {
			if !yield(string(value{v.d, i}.text()), value{v.d, i + 1}) {
				return
			}
		}
	}
}

// elements yields the elements of an array; of another value none.
func (v value) elements() iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		if !v.isArray() {
			return
		}
		n := 0
		for i := v.i + 1; i < v.d.nodes[v.i].next; i = v.d.nodes[i].next {
			if !yield(n, value{v.d, i}) {
				return
			}
			n++
		}
	}
}

// get is a member of an object; the last one where there are several of the name.
func (v value) get(name string) (found value) {
	if !v.isObject() {
		return value{}
	}
	for i := v.i + 1; i < v.d.nodes[v.i].next; i = v.d.nodes[i+1].next {
		if (value{v.d, i}).is(name) {
			found = value{v.d, i + 1}
		}
	}
	return found
}

// at is a member of a member.
func (v value) at(names ...string) value {
	for _, name := range names {
		v = v.get(name)
	}
	return v
}

// size is how many elements an array has.
func (v value) size() (n int) {
	for range v.elements() {
		n++
	}
	return n
}
