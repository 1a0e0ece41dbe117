package translate

import "bytes"

// toChat is a stream of chat completion chunks out of the events of a message.
type toChat struct {
	head   []byte // of every chunk, up to its choices
	usage  usage
	stop   string
	blocks []chatBlock // open ones
	calls  int

	thought  []byte // the thinking block under way, without its end
	sign     []byte
	thoughts []byte // the blocks before it
}

// chatBlock is a content block that is open.
type chatBlock struct {
	index int64
	call  int  // position among the tool calls; -1: none
	asked bool // arguments have been written
}

// maxThoughts is how many bytes of thinking are kept to be sent whole, with their signatures.
const maxThoughts = 4 << 20

func (s *Stream) messagesEvent(name []byte, root value) {
	kind := name
	if t := root.get("type"); t.isText() {
		kind = t.text()
	}
	c := &s.chat
	switch string(kind) {
	case "message_start":
		message := root.get("message")
		c.usage.messages(message.get("usage"))
		if c.head == nil {
			s.chatHead(message)
			s.chunk(func() { s.json(`"role":"assistant","content":""`) })
		}
	case "content_block_start":
		index, _ := count(root.get("index"))
		s.blockStart(index, root.get("content_block"))
	case "content_block_delta":
		index, _ := count(root.get("index"))
		s.blockDelta(index, root.get("delta"))
	case "content_block_stop":
		index, _ := count(root.get("index"))
		s.blockStop(index)
	case "message_delta":
		c.usage.messages(root.get("usage"))
		if stop := root.at("delta", "stop_reason"); stop.isText() {
			c.stop = string(stop.text())
		}
	case "message_stop":
		s.endChat()
	case "ping":
		s.ping()
	case "error":
		s.fail(root)
	default:
		if root.get("error").isObject() {
			s.fail(root)
		}
	}
}

// chatHead makes what all chunks begin with.
func (s *Stream) chatHead(message value) {
	w := answer{o: s.o}
	w.open('{')
	w.id(message, "chatcmpl-")
	w.word("object", "chat.completion.chunk")
	w.count("created", s.o.Created)
	w.model(message)
	if tier := tierForChat(s.chat.usage.tier); tier != "" {
		w.word("service_tier", tier)
	}
	s.chat.head = append([]byte("data: "), w.b...)
}

// open begins a chunk whose delta is to be written.
func (s *Stream) openChunk() {
	if s.chat.head == nil {
		s.chatHead(value{})
	}
	s.b = append(s.b, s.chat.head...)
	s.b = append(s.b, `,"choices":[{"index":0,"delta":{`...)
}

func (s *Stream) shutChunk() {
	s.b = append(s.b, "},\"logprobs\":null,\"finish_reason\":null}]}\n\n"...)
}

func (s *Stream) chunk(delta func()) {
	s.openChunk()
	delta()
	s.shutChunk()
}

// fragment is a chunk with a piece of text.
func (s *Stream) fragment(member string, text value) {
	if len(text.inner()) == 0 {
		return
	}
	s.openChunk()
	s.key(member)
	s.value(text)
	s.shutChunk()
}

func (s *Stream) blockStart(index int64, block value) {
	c := &s.chat
	b := chatBlock{index: index, call: -1}
	switch kind := block.get("type"); {
	case kind.is("text"):
		s.fragment("content", block.get("text"))
	case kind.is("thinking"):
		c.thought, c.sign = append(c.thought[:0], block.get("thinking").inner()...), append(c.sign[:0], block.get("signature").inner()...)
		s.fragment("reasoning_content", block.get("thinking"))
	case kind.is("redacted_thinking"):
		w := buf{c.thoughts}
		w.thoughtHead("redacted_thinking", &s.chat)
		w.key("data")
		w.inner(block.get("data").inner())
		w.shut('}')
		c.thoughts = w.b
	case kind.is("tool_use"):
		b.call = c.calls
		c.calls++
		s.openChunk()
		s.json(`"tool_calls":[{"index":`)
		s.b = appendInt(s.b, b.call)
		s.copied("id", block.get("id"))
		s.json(`"type":"function","function":{`)
		s.copied("name", block.get("name"))
		s.key("arguments")
		if input := block.get("input"); input.isObject() && input.d.nodes[input.i].next > input.i+1 {
			s.quote(input.raw())
			b.asked = true
		} else {
			s.json(`""`)
		}
		s.b = append(s.b, "}}]"...)
		s.shutChunk()
	}
	c.blocks = append(c.blocks, b)
}

func (s *Stream) blockDelta(index int64, delta value) {
	c := &s.chat
	switch kind := delta.get("type"); {
	case kind.is("text_delta"):
		s.fragment("content", delta.get("text"))
	case kind.is("thinking_delta"):
		text := delta.get("thinking")
		if len(c.thought) < maxThoughts {
			c.thought = append(c.thought, text.inner()...)
		}
		s.fragment("reasoning_content", text)
	case kind.is("signature_delta"):
		c.sign = append(c.sign, delta.get("signature").inner()...)
	case kind.is("input_json_delta"):
		for i := range c.blocks {
			b := &c.blocks[i]
			if b.index == index && b.call >= 0 && len(delta.get("partial_json").inner()) > 0 {
				b.asked = true
				s.arguments(b.call, delta.get("partial_json").raw())
			}
		}
	}
}

// arguments is a chunk with a piece of a call's arguments, a JSON string as it is written.
func (s *Stream) arguments(call int, text []byte) {
	s.openChunk()
	s.json(`"tool_calls":[{"index":`)
	s.b = appendInt(s.b, call)
	s.json(`"function":{"arguments":`)
	s.b = append(s.b, text...)
	s.b = append(s.b, "}}]"...)
	s.shutChunk()
}

func (s *Stream) blockStop(index int64) {
	c := &s.chat
	for i, b := range c.blocks {
		if b.index != index {
			continue
		}
		if b.call >= 0 && !b.asked {
			s.arguments(b.call, []byte(`"{}"`)) // a call without arguments
		}
		c.blocks = append(c.blocks[:i], c.blocks[i+1:]...)
		break
	}
	if len(c.sign) == 0 || len(c.thoughts)+len(c.thought) > maxThoughts {
		return
	}
	w := buf{c.thoughts}
	w.thoughtHead("thinking", c)
	w.key("thinking")
	w.inner(c.thought)
	w.key("signature")
	w.inner(c.sign)
	w.shut('}')
	c.thoughts, c.thought, c.sign = w.b, c.thought[:0], c.sign[:0]
}

// thoughtHead begins a thinking block. Clients that put deltas together by themselves want an
// index in the elements of a list.
func (w *buf) thoughtHead(kind string, c *toChat) {
	if len(w.b) == 0 {
		w.b = append(w.b, '[')
	}
	w.open('{')
	w.key("index")
	w.b = appendInt(w.b, bytes.Count(c.thoughts, []byte(`{"index":`)))
	w.word("type", kind)
}

// endChat writes what ends a stream of chunks. The finish reason is held until the provider
// has said that the message is whole. The thinking with its signatures comes in one piece:
// of what comes in several, clients keep the last.
func (s *Stream) endChat() {
	c := &s.chat
	if len(c.thoughts) > 0 {
		s.openChunk()
		s.key("thinking_blocks")
		s.b = append(append(s.b, c.thoughts...), ']')
		s.shutChunk()
	}
	if c.stop == "" && c.calls > 0 {
		c.stop = "tool_use"
	}
	if c.head == nil {
		s.chatHead(value{})
	}
	s.b = append(append(s.b, c.head...), `,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
	s.b = append(append(s.b, finishReason(c.stop)...), "\"}]}\n\n"...)
	if s.o.Usage && c.usage.known {
		s.b = append(append(s.b, c.head...), `,"choices":[]`...)
		c.usage.asChat(&s.buf)
		s.b = append(s.b, "}\n\n"...)
	}
	s.b = append(s.b, "data: [DONE]\n\n"...)
	s.ended = true
}
