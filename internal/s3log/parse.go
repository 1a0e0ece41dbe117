package s3log

import (
	"switchboard/internal/record"
)

// verdict is what was found at the start of a text.
type verdict int

const (
	event verdict = iota
	short         // the beginning of something: the text ends too early
	other         // nothing that parse understands: encoding/json may
	none          // no event
)

const (
	batchEvents = 256
	batchBytes  = 1 << 20
	knownInts   = 11 // numbers of an event that may be unknown
	maxAttempts = 16
	maxNames    = 32

	// maxTime is the first created_at that is no time any more: the year 10000.
	maxTime = 253_402_300_800_000
)

// batch holds events and the memory of what they point to. Their texts are there when it
// is sealed; all is valid until reset.
type batch struct {
	events   []record.Event
	ints     []int64
	attempts []record.Attempt
	names    []string
	text     []byte // of all events: one allocation for all their strings
	places   []place
}

// place is a text between two offsets, and whose it is.
type place struct {
	to         *string
	start, end int
}

func newBatch() *batch {
	return &batch{
		events:   make([]record.Event, 0, batchEvents),
		ints:     make([]int64, 0, batchEvents*knownInts),
		attempts: make([]record.Attempt, 0, batchEvents),
	}
}

func (b *batch) full() bool { return len(b.events) == batchEvents || len(b.text) >= batchBytes }

// seal gives the events their texts. Nothing may be added after it.
func (b *batch) seal() {
	text := string(b.text)
	for _, p := range b.places {
		*p.to = text[p.start:p.end]
	}
	clear(b.places)
	b.text, b.places = b.text[:0], b.places[:0]
}

func (b *batch) reset() {
	clear(b.events) // lets the texts go
	clear(b.attempts)
	clear(b.names)
	clear(b.places)
	b.events, b.ints, b.attempts, b.names = b.events[:0], b.ints[:0], b.attempts[:0], b.names[:0]
	b.text, b.places = b.text[:0], b.places[:0]
}

// add takes an event that has its texts.
func (b *batch) add(e *record.Event) {
	b.events = append(b.events, *e)
	b.text = append(b.text, e.SessionID...) // counts: it may be large
}

// parse adds the event at the start of text, n bytes long. It knows only what our recorders
// write, and is as strict as encoding/json there; all else is other. What it takes,
// encoding/json reads the same.
func (b *batch) parse(text []byte) (n int, got verdict) {
	b.room()
	c := cursor{text: text}
	b.events = append(b.events, record.Event{})
	e := &b.events[len(b.events)-1]
	ints, attempts, names, used, places := len(b.ints), len(b.attempts), len(b.names), len(b.text), len(b.places)
	c.need('{')
	seen := uint64(0)
	for c.more('}', seen == 0) {
		start, end := c.quoted()
		c.need(':')
		c.space()
		field := b.field(&c, e, c.text[start:end])
		if field == 0 || seen&field != 0 { // encoding/json merges the values of a key that is there twice
			c.fail(other)
		}
		seen |= field
	}
	if seen&fieldEventID == 0 || e.CreatedAt <= 0 || e.CreatedAt >= maxTime {
		c.fail(other)
	}
	if c.bad != event {
		b.events = b.events[:len(b.events)-1]
		b.ints, b.attempts, b.names = b.ints[:ints], b.attempts[:attempts], b.names[:names]
		b.text, b.places = b.text[:used], b.places[:places]
		return 0, c.bad
	}
	return c.pos, event
}

// room makes sure that no slice moves while a record is parsed: places point into them.
func (b *batch) room() {
	if cap(b.attempts)-len(b.attempts) < maxAttempts {
		b.attempts = make([]record.Attempt, 0, batchEvents)
	}
	if cap(b.names)-len(b.names) < maxNames {
		b.names = make([]string, 0, 4*maxNames)
	}
}

const fieldEventID = 1

// field reads the value of one field. It returns a bit of its own for each, 0 for a field
// that it does not know.
func (b *batch) field(c *cursor, e *record.Event, key []byte) uint64 {
	switch string(key) {
	case "event_id":
		if b.string(c, &e.EventID) == 0 {
			c.fail(other)
		}
		return fieldEventID
	case "created_at":
		e.CreatedAt = c.int()
		return 1 << 1
	case "request_id":
		b.string(c, &e.RequestID)
		return 1 << 2
	case "session_id":
		b.string(c, &e.SessionID)
		return 1 << 3
	case "session_key":
		b.string(c, &e.SessionKey)
		return 1 << 4
	case "session_source":
		b.string(c, &e.SessionSource)
		return 1 << 5
	case "user_path":
		b.string(c, &e.UserPath)
		return 1 << 6
	case "api_surface":
		b.string(c, &e.APISurface)
		return 1 << 7
	case "requested_model":
		b.string(c, &e.RequestedModel)
		return 1 << 8
	case "model_name":
		b.string(c, &e.ModelName)
		return 1 << 9
	case "provider_identity":
		b.string(c, &e.Provider)
		return 1 << 10
	case "key_id":
		b.string(c, &e.KeyID)
		return 1 << 11
	case "billing_model":
		b.string(c, &e.BillingModel)
		return 1 << 12
	case "decision_reason":
		b.string(c, &e.DecisionReason)
		return 1 << 13
	case "usage_quality":
		b.string(c, &e.UsageQuality)
		return 1 << 14
	case "outcome":
		b.string(c, &e.Outcome)
		return 1 << 15
	case "affinity":
		b.string(c, &e.Affinity)
		return 1 << 16
	case "switched":
		e.Switched = c.bool()
		return 1 << 17
	case "stream":
		e.Stream = c.bool()
		return 1 << 18
	case "response_status":
		e.ResponseStatus = int(c.int())
		return 1 << 19
	case "latency_ms":
		e.LatencyMillis = c.int()
		return 1 << 20
	case "attempts":
		b.attemptList(c, e)
		return 1 << 21
	case "degraded_providers":
		b.nameList(c, e)
		return 1 << 22
	}
	return b.knownField(c, e, key)
}

// knownField is field for numbers that may be unknown.
func (b *batch) knownField(c *cursor, e *record.Event, key []byte) uint64 {
	switch string(key) {
	case "switch_count":
		e.SwitchCount = b.known(c)
		return 1 << 32
	case "switch_cost_nano_usd":
		e.SwitchCostNanoUSD = b.known(c)
		return 1 << 33
	case "input_tokens":
		e.InputTokens = b.known(c)
		return 1 << 34
	case "cached_input_tokens":
		e.CachedInputTokens = b.known(c)
		return 1 << 35
	case "cache_write_tokens":
		e.CacheWriteTokens = b.known(c)
		return 1 << 36
	case "output_tokens":
		e.OutputTokens = b.known(c)
		return 1 << 37
	case "reasoning_tokens":
		e.ReasoningTokens = b.known(c)
		return 1 << 38
	case "input_cost_nano_usd":
		e.InputCostNanoUSD = b.known(c)
		return 1 << 39
	case "output_cost_nano_usd":
		e.OutputCostNanoUSD = b.known(c)
		return 1 << 40
	case "cost_nano_usd":
		e.CostNanoUSD = b.known(c)
		return 1 << 41
	case "ttft_ms":
		e.TTFTMillis = b.known(c)
		return 1 << 42
	}
	return 0
}

// string reads a text and returns its length.
func (b *batch) string(c *cursor, to *string) int {
	start, end := c.quoted()
	if start == end {
		return 0
	}
	from := len(b.text)
	b.text = append(b.text, c.text[start:end]...)
	b.places = append(b.places, place{to, from, len(b.text)})
	return end - start
}

func (b *batch) known(c *cursor) *int64 {
	b.ints = append(b.ints, c.int())
	return &b.ints[len(b.ints)-1]
}

func (b *batch) nameList(c *cursor, e *record.Event) {
	c.need('[')
	first := len(b.names)
	for c.more(']', len(b.names) == first) {
		if len(b.names)-first == maxNames {
			c.fail(other)
			return
		}
		b.names = append(b.names, "")
		b.string(c, &b.names[len(b.names)-1])
	}
	e.DegradedProviders = b.names[first:len(b.names):len(b.names)]
}

func (b *batch) attemptList(c *cursor, e *record.Event) {
	c.need('[')
	first := len(b.attempts)
	for c.more(']', len(b.attempts) == first) {
		if len(b.attempts)-first == maxAttempts {
			c.fail(other)
			return
		}
		b.attempts = append(b.attempts, record.Attempt{})
		b.attempt(c, &b.attempts[len(b.attempts)-1])
	}
	e.Attempts = b.attempts[first:len(b.attempts):len(b.attempts)]
}

func (b *batch) attempt(c *cursor, a *record.Attempt) {
	c.need('{')
	for seen := uint64(0); c.more('}', seen == 0); {
		start, end := c.quoted()
		c.need(':')
		c.space()
		field := uint64(0)
		switch string(c.text[start:end]) {
		case "provider":
			b.string(c, &a.Provider)
			field = 1 << 0
		case "key_id":
			b.string(c, &a.KeyID)
			field = 1 << 1
		case "model":
			b.string(c, &a.Model)
			field = 1 << 2
		case "status":
			a.Status = int(c.int())
			field = 1 << 3
		case "error":
			b.string(c, &a.Error)
			field = 1 << 4
		case "latency_ms":
			a.LatencyMillis = c.int()
			field = 1 << 5
		case "surface":
			b.string(c, &a.Surface)
			field = 1 << 6
		}
		if field == 0 || seen&field != 0 {
			c.fail(other)
		}
		seen |= field
	}
}
