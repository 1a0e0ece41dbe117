package translate

import "strconv"

// buf is JSON under construction. It puts the commas itself: what begins behind anything but
// an opening bracket or a colon is another member or element.
type buf struct{ b []byte }

func (w *buf) comma() {
	if n := len(w.b); n > 0 {
		switch w.b[n-1] {
		case '{', '[', ':':
		default:
			w.b = append(w.b, ',')
		}
	}
}

// key begins a member. The name is one of ours, with nothing to escape.
func (w *buf) key(name string) {
	w.comma()
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

// open begins an object or array.
func (w *buf) open(bracket byte) {
	w.comma()
	w.b = append(w.b, bracket)
}

// shut ends what open began.
func (w *buf) shut(bracket byte) { w.b = append(w.b, bracket) }

// json writes a value that is JSON already.
func (w *buf) json(text string) {
	w.comma()
	w.b = append(w.b, text...)
}

// value copies a value as it is written; null for one that is absent.
func (w *buf) value(v value) {
	w.comma()
	if !v.found() {
		w.b = append(w.b, "null"...)
	}
	w.b = append(w.b, v.raw()...)
}

// inner writes a string out of parts that are escaped already.
func (w *buf) inner(parts ...[]byte) {
	w.comma()
	w.b = append(w.b, '"')
	for _, p := range parts {
		w.b = append(w.b, p...)
	}
	w.b = append(w.b, '"')
}

// quote writes bytes as a string.
func (w *buf) quote(text []byte) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = appendEscaped(w.b, text)
	w.b = append(w.b, '"')
}

func (w *buf) number(n int64) {
	w.comma()
	w.b = strconv.AppendInt(w.b, n, 10)
}

// word is a member whose value is one of our own words.
func (w *buf) word(name, text string) {
	w.key(name)
	w.b = append(append(append(w.b, '"'), text...), '"')
}

// copied is a member copied from v, if it is there and not null.
func (w *buf) copied(name string, v value) {
	if !v.empty() {
		w.key(name)
		w.value(v)
	}
}

// appendEscaped appends bytes as the inside of a JSON string. What is not ASCII stays.
func appendEscaped(dst, text []byte) []byte {
	from := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(dst, text[from:]...)
}
