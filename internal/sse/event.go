package sse

import "bytes"

var byteOrderMark = []byte("\xef\xbb\xbf")

// lineEnd remembers where the next LF and CR of a text are, so that looking for line ends
// is linear in the text whichever of them it uses.
type lineEnd struct{ lf, cr int }

// from returns the offset of the first LF or CR of b at or after pos, or len(b).
func (n *lineEnd) from(b []byte, pos int) int {
	if n.lf < pos {
		n.lf = indexFrom(b, pos, '\n')
	}
	if n.cr < pos {
		n.cr = indexFrom(b, pos, '\r')
	}
	return min(n.lf, n.cr)
}

func indexFrom(b []byte, pos int, c byte) int {
	if i := bytes.IndexByte(b[pos:], c); i >= 0 {
		return pos + i
	}
	return len(b)
}

// parse reads the lines of one event.
func (s *Scanner) parse(raw []byte) Event {
	if !s.started {
		raw = bytes.TrimPrefix(raw, byteOrderMark)
	}
	var e Event
	comments, dataLines := 0, 0
	others := false
	next := lineEnd{lf: -1, cr: -1}
	for pos := 0; pos < len(raw); {
		at := next.from(raw, pos)
		line := raw[pos:at]
		pos = at + 1
		if len(line) == 0 {
			continue // the blank line, or the LF of a CRLF
		}
		if line[0] == ':' {
			comments++
			continue
		}
		others = true
		switch field, value := split(line); string(field) {
		case "data":
			dataLines++
			switch dataLines {
			case 1:
				e.Data = value
			case 2:
				s.join = append(append(s.join[:0], e.Data...), '\n')
				s.join = append(s.join, value...)
				e.Data = s.join
			default:
				s.join = append(append(s.join, '\n'), value...)
				e.Data = s.join
			}
		case "event":
			e.Name = value
		}
	}
	e.Comment = comments > 0 && !others
	return e
}

// split cuts a line at its colon and takes one space off the value.
func split(line []byte) (field, value []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return line, line[len(line):]
	}
	field, value = line[:colon], line[colon+1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return field, value
}

// hold keeps the beginning of an event that goes on in the next chunk. size counts part.
func (s *Scanner) hold(part []byte) {
	if len(part) == 0 {
		return
	}
	if s.size <= s.limit() {
		s.held = append(s.held, part...)
		return
	}
	s.keepEnds(part)
}

// keepEnds brings an event that is larger than MaxEvent down to its head and tail.
func (s *Scanner) keepEnds(part []byte) {
	if len(s.head) < headKept {
		// Nothing has been cut off yet: held is the event up to part.
		n := min(headKept, len(s.held))
		s.head = append(s.head[:0], s.held[:n]...)
		s.head = append(s.head, part[:min(headKept-n, len(part))]...)
	}
	if len(part) >= tailKept {
		s.held = append(s.held[:0], part[len(part)-tailKept:]...)
		return
	}
	if keep := tailKept - len(part); len(s.held) > 2*tailKept {
		// Moved only now and then: a small chunk does not cost a copy of the tail.
		n := copy(s.held, s.held[len(s.held)-keep:])
		s.held = s.held[:n]
	}
	s.held = append(s.held, part...)
}

// large reports an event of more than MaxEvent bytes, the last of which are given.
func (s *Scanner) large(last []byte) Event {
	s.keepEnds(last)
	head := s.head
	if i := bytes.LastIndexAny(head, "\r\n"); i >= 0 {
		head = head[:i]
	} else {
		head = nil // no whole line
	}
	named := s.parse(head)
	return Event{
		Name:    named.Name,
		TooLong: true,
		Tail:    s.held[max(0, len(s.held)-tailKept):],
	}
}
