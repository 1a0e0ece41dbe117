package emulator

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Stream is a delivery stream to a bucket.
type Stream struct {
	Name        string
	Bucket      string
	Prefix      string // with !{timestamp:…} and !{firehose:random-string}; else yyyy/MM/dd/HH/ is appended
	ErrorPrefix string
	SizeMB      int           // MiB that make an object; default 5
	Interval    time.Duration // after which a smaller one is made; default 5 min, below 0: at once
	GZIP        bool
	Extension   string // of the object names; default ".gz" with GZIP, else none
}

// stream buffers records as Firehose does: an object is written when SizeMB have come, or
// Interval after the first record of it. Nothing is put between records.
type stream struct {
	Stream
	now    func() time.Time
	put    func(bucket, key, encoding string, data []byte) error
	logger *slog.Logger

	wake    chan struct{}     // there is a first record, or enough
	flushes chan chan<- error // deliver what is there and say how it went
	closing chan chan<- error
	done    chan struct{} // the goroutine has ended

	mu     sync.Mutex
	buffer buffer
	closed bool
}

// buffer is what has not been delivered.
type buffer struct {
	data    []byte
	records int
	oldest  time.Time // by the stream's clock, for names
	since   time.Time // by the timers' clock
	held    bool      // a delivery failed: the next is an interval away, however full it is
}

func startStream(o Options, config Stream, put func(bucket, key, encoding string, data []byte) error) *stream {
	s := &stream{
		Stream: config, now: o.Now, put: put, logger: o.Logger,
		wake: make(chan struct{}, 1), flushes: make(chan chan<- error), closing: make(chan chan<- error), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// add takes records over.
func (s *stream) add(records ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.buffer.records == 0
	if first {
		s.buffer.oldest, s.buffer.since = s.now(), time.Now()
	}
	for _, r := range records {
		s.buffer.data = append(s.buffer.data, r...)
	}
	s.buffer.records += len(records)
	if s.closed {
		s.buffer = s.deliver(s.buffer)
		return
	}
	if first || s.full() {
		select {
		case s.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

func (s *stream) full() bool { return len(s.buffer.data) >= s.SizeMB<<20 }

// run delivers until it is told to close.
func (s *stream) run() {
	defer close(s.done)
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	for {
		if wait, any := s.untilDue(); !any {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-s.wake:
		case <-timer.C:
			s.flush() //nolint:errcheck // logged there; what failed is kept
		case answer := <-s.flushes:
			answer <- s.flush()
		case answer := <-s.closing:
			answer <- s.flush()
			return
		}
	}
}

// untilDue is how long what is buffered may stay; any says whether there is something.
func (s *stream) untilDue() (wait time.Duration, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.buffer.records == 0:
		return 0, false
	case s.buffer.held:
		return max(0, max(s.Interval, time.Second)-time.Since(s.buffer.since)), true
	case s.full():
		return 0, true
	}
	return max(0, s.Interval-time.Since(s.buffer.since)), true
}

// flush delivers what is buffered. What cannot be delivered stays, for another interval.
func (s *stream) flush() error {
	s.mu.Lock()
	taken := s.buffer
	s.buffer = buffer{}
	s.mu.Unlock()
	left := s.deliver(taken)
	if left.records == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left.since, left.held = time.Now(), true
	left.data = append(left.data, s.buffer.data...)
	left.records += s.buffer.records
	s.buffer = left
	return fmt.Errorf("emulator: stream %s: %d records are not delivered", s.Name, left.records)
}

// deliver writes one object and returns what it could not.
func (s *stream) deliver(b buffer) (left buffer) {
	if b.records == 0 {
		return buffer{}
	}
	key, data, err := s.object(b)
	if err == nil {
		err = s.put(s.Bucket, key, "", data)
	}
	if err != nil {
		s.logger.LogAttrs(context.Background(), slog.LevelError, "events are not delivered", slog.String("stream", s.Name), slog.Int("records", b.records), slog.Any("error", err))
		return b
	}
	return buffer{}
}

func (s *stream) object(b buffer) (key string, data []byte, err error) {
	prefix, err := expandPrefix(s.Prefix, b.oldest, "")
	if err != nil {
		return "", nil, err
	}
	key = prefix + s.Name + "-1-" + b.oldest.UTC().Format("2006-01-02-15-04-05") + "-" + newUUID() + s.Extension
	if !s.GZIP {
		return key, b.data, nil
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err = w.Write(b.data)
	if err = cmp.Or(err, w.Close()); err != nil {
		return "", nil, err
	}
	return key, zipped.Bytes(), nil
}

// ask has the goroutine flush, by way of requests, and waits.
func (s *stream) ask(requests chan chan<- error) error {
	answer := make(chan error, 1)
	select {
	case requests <- answer:
		return <-answer
	case <-s.done:
		return nil
	}
}

func (s *stream) close() error {
	s.ask(s.closing) //nolint:errcheck // what it could not deliver is tried once more below
	<-s.done
	s.mu.Lock()
	s.closed = true // what came meanwhile goes out here, what comes later in add
	s.mu.Unlock()
	return s.flush()
}
