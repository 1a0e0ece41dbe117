package translate

import (
	"strconv"

	"switchboard/internal/wire"
)

// toMessages is a stream of a message's events out of chat completion chunks.
type toMessages struct {
	begun  bool
	usage  usage
	finish string
	refuse bool
	next   int   // index of the next content block
	now    *lane // whose block is open
	lanes  []*lane
}

// lane is what becomes one content block. A block is closed before the next one begins, while
// the pieces of parallel calls may come mixed: those of a call that cannot begin yet wait.
type lane struct {
	kind   laneKind
	tool   int64 // index of the call
	id     []byte
	name   []byte // as written, without quotes
	text   []byte // of a call: its arguments so far; of others: what waits. As written
	index  int
	opened bool
	closed bool
}

type laneKind byte

const (
	laneText laneKind = iota
	laneThinking
	laneCall
)

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

// begin opens an event, to which members can be added.
func (s *Stream) begin(kind string) {
	s.b = append(append(s.b, "event: "...), kind...)
	s.b = append(s.b, "\ndata: {"...)
	s.word("type", kind)
}

func (s *Stream) end() { s.b = append(s.b, "}\n\n"...) }

func (s *Stream) chatChunk(root value) {
	m := &s.messages
	switch failure := root.get("error"); {
	case failure.isObject(), failure.isText(), root.get("object").is("error"), root.get("type").is("error"):
		s.fail(root)
		return
	}
	if tier := root.get("service_tier"); tier.isText() {
		m.usage.tier = string(tier.text())
	}
	m.usage.chat(root.get("usage"))
	for _, choice := range root.get("choices").elements() {
		if n, ok := count(choice.get("index")); ok && n > 0 {
			continue // only one was asked for
		}
		s.messageStart(root)
		delta := choice.get("delta")
		if !delta.isObject() {
			delta = choice.get("message") // some send the whole at once
		}
		s.chatDelta(delta)
		if finish := choice.get("finish_reason"); finish.isText() && !finish.is("error") && len(finish.inner()) > 0 {
			m.finish = string(finish.text())
			s.closeLanes()
		}
	}
}

func (s *Stream) messageStart(root value) {
	m := &s.messages
	if m.begun {
		return
	}
	m.begun = true
	s.begin("message_start")
	s.json(`"message":{`)
	w := answer{buf: s.buf, o: s.o}
	w.id(root, "msg_")
	w.json(`"type":"message","role":"assistant"`)
	w.model(root)
	w.json(`"content":[],"stop_reason":null,"stop_sequence":null`)
	m.usage.asMessages(&w.buf)
	w.shut('}')
	s.buf = w.buf
	s.end()
}

func (s *Stream) chatDelta(delta value) {
	if text := reasoningText(delta); len(text.inner()) > 0 {
		s.plain(laneThinking, text.inner())
	}
	s.signature(delta)
	if text := delta.get("content"); len(text.inner()) > 0 {
		s.plain(laneText, text.inner())
	}
	for _, part := range delta.get("content").elements() {
		if text := part.get("text"); len(text.inner()) > 0 {
			s.plain(laneText, text.inner())
		}
	}
	if text := delta.get("refusal"); len(text.inner()) > 0 {
		s.messages.refuse = true
		s.plain(laneText, text.inner())
	}
	for _, call := range delta.get("tool_calls").elements() {
		s.callDelta(call)
	}
}

// signature passes on what signs the thinking, from servers that have it.
func (s *Stream) signature(delta value) {
	m := &s.messages
	for _, list := range []value{delta.get("thinking_blocks"), delta.get("reasoning_details")} {
		for _, b := range list.elements() {
			if sign := b.get("signature"); len(sign.inner()) > 0 && m.now != nil && m.now.kind == laneThinking {
				s.blockDeltaEvent(m.now, "signature_delta", "signature", sign.inner())
			}
		}
	}
}

// plain takes a piece of text or thinking.
func (s *Stream) plain(kind laneKind, text []byte) {
	m := &s.messages
	switch {
	case m.now != nil && m.now.kind == kind:
	case m.now == nil || m.now.kind != laneCall || m.now.whole():
		s.openLane(&lane{kind: kind})
	default: // a call is under way: it waits behind it
		last := m.lanes[len(m.lanes)-1]
		if last.kind != kind || last.opened {
			last = s.newLane(kind)
		}
		last.text = append(last.text, text...)
		return
	}
	s.laneDelta(m.now, text)
}

func (s *Stream) newLane(kind laneKind) *lane {
	l := &lane{kind: kind, tool: -1}
	s.messages.lanes = append(s.messages.lanes, l)
	return l
}

// callDelta takes a piece of a tool call.
func (s *Stream) callDelta(call value) {
	m := &s.messages
	l := s.laneOf(call)
	if l == nil || l.closed {
		return
	}
	function := call.get("function")
	if name := function.get("name").inner(); len(l.name) == 0 {
		l.name = append(l.name, name...)
	}
	before := len(l.text)
	if arguments := function.get("arguments"); arguments.isObject() {
		l.text = appendEscaped(l.text, arguments.raw())
	} else {
		l.text = append(l.text, arguments.inner()...)
	}
	switch {
	case m.now == l:
		s.laneDelta(l, l.text[before:])
	case len(l.name) > 0 && l == s.waiting() && (m.now == nil || m.now.kind != laneCall || m.now.whole()):
		s.openLane(l)
	}
}

// waiting is the first lane that has not begun.
func (s *Stream) waiting() *lane {
	for _, l := range s.messages.lanes {
		if !l.opened {
			return l
		}
	}
	return nil
}

// laneOf finds the call that a piece belongs to, by its index; of servers that leave it out,
// or give every call the same, by the id.
func (s *Stream) laneOf(call value) *lane {
	m := &s.messages
	index, numbered := count(call.get("index"))
	id := call.get("id").inner()
	for i := len(m.lanes) - 1; i >= 0; i-- {
		l := m.lanes[i]
		if l.kind != laneCall || numbered && l.tool != index {
			continue
		}
		if len(id) == 0 || len(l.id) == 0 || string(id) == string(l.id) {
			if len(l.id) == 0 {
				l.id = append(l.id, id...)
			}
			return l
		}
		if numbered {
			break
		}
	}
	l := s.newLane(laneCall)
	l.id = append(l.id, id...)
	if numbered {
		l.tool = index
	}
	return l
}

// whole tells whether a call's arguments are a whole JSON object, so that it can be closed.
func (l *lane) whole() bool {
	quoted := append(append([]byte{'"'}, l.text...), '"')
	text, ok := wire.String(quoted, wire.Span{Start: 0, End: len(quoted)})
	var d document
	return ok && d.parse([]byte(text)) && d.root().isObject()
}

func (s *Stream) openLane(l *lane) {
	m := &s.messages
	s.closeNow()
	m.now, l.opened, l.index = l, true, m.next
	m.next++
	s.begin("content_block_start")
	s.count("index", int64(l.index))
	switch l.kind {
	case laneText:
		s.json(`"content_block":{"type":"text","text":""}`)
	case laneThinking:
		s.json(`"content_block":{"type":"thinking","thinking":"","signature":""}`)
	case laneCall:
		s.json(`"content_block":{"type":"tool_use"`)
		s.key("id")
		if len(l.id) > 0 {
			s.inner(cleanID(l.id))
		} else {
			s.inner([]byte("call_"), appendInt(nil, l.index))
		}
		s.key("name")
		s.inner(l.name)
		s.json(`"input":{}}`)
	}
	s.end()
	if len(l.text) > 0 {
		s.laneDelta(l, l.text)
	}
}

func (s *Stream) laneDelta(l *lane, text []byte) {
	if len(text) == 0 {
		return
	}
	switch l.kind {
	case laneText:
		s.blockDeltaEvent(l, "text_delta", "text", text)
	case laneThinking:
		s.blockDeltaEvent(l, "thinking_delta", "thinking", text)
	case laneCall:
		s.blockDeltaEvent(l, "input_json_delta", "partial_json", text)
	}
}

func (s *Stream) blockDeltaEvent(l *lane, kind, member string, text []byte) {
	s.begin("content_block_delta")
	s.count("index", int64(l.index))
	s.key("delta")
	s.open('{')
	s.word("type", kind)
	s.key(member)
	s.inner(text)
	s.shut('}')
	s.end()
}

func (s *Stream) closeNow() {
	if l := s.messages.now; l != nil {
		s.begin("content_block_stop")
		s.count("index", int64(l.index))
		s.end()
		l.closed = true
		s.messages.now = nil
	}
}

// closeLanes ends the open block and writes those that still wait.
func (s *Stream) closeLanes() {
	s.closeNow()
	for _, l := range s.messages.lanes {
		if !l.opened && (l.kind != laneCall || len(l.name) > 0) {
			s.openLane(l)
			s.closeNow()
		}
	}
}

// endMessage writes what ends a message.
func (s *Stream) endMessage() {
	m := &s.messages
	s.messageStart(value{})
	s.closeLanes()
	called := false
	for _, l := range m.lanes {
		called = called || l.kind == laneCall && l.opened
	}
	s.begin("message_delta")
	s.json(`"delta":{`)
	s.word("stop_reason", stopReason(m.finish, called, m.refuse))
	s.json(`"stop_sequence":null}`)
	m.usage.asMessages(&s.buf)
	s.end()
	s.begin("message_stop")
	s.end()
	s.ended = true
}
