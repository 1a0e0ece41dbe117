// Package replay finds the routing events that could not be delivered in the logs they were
// written to.
package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"switchboard/internal/record"
)

// Event is an event that a log line holds whole.
type Event struct {
	record.Event
	// JSON is the event as it was logged, on one line and without a newline at its end.
	// Fields that this version does not know are in it.
	JSON []byte
	// Line is the number of the line, from 1.
	Line int
}

// LineError is a line that speaks of an undelivered event but does not hold one that can
// be read: it was cut, or broken over several lines.
type LineError struct {
	Line int
	Err  error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// marker is in every line that holds an undelivered event: as the name of the event, or as
// the message.
const marker = "undelivered_event"

// Lines yields the undelivered events of a log, in the order of its lines, also those that
// are there more than once. It takes the lines as they were written, behind a prefix (a
// time, a request id, the name of a stream), and inside JSON: Lambda's JSON log format and
// what `aws logs filter-log-events` prints. A line may be of any length.
//
// A *LineError is yielded with no event, and the lines after it follow; any other error is
// that of reading and the last.
func Lines(log io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		reader := bufio.NewReaderSize(log, 64<<10)
		var line []byte
		for number := 1; ; number++ {
			var err error
			line, err = readLine(reader, line[:0])
			for _, found := range find(line, number) {
				if !yield(found.event, found.err) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// readLine appends the next line, of any length, to line.
func readLine(reader *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// found is an event or, as a *LineError, why there is none.
type found struct {
	event Event
	err   error
}

func find(line []byte, number int) []found {
	if !bytes.Contains(line, []byte(marker)) {
		return nil
	}
	s := search{line: number}
	s.text(line, maxDepth)
	if s.broken != nil {
		s.found = append(s.found, found{err: &LineError{number, s.broken}})
	}
	return s.found
}

// read makes an event of its JSON.
func read(object json.RawMessage, line int) (Event, error) {
	e := Event{Line: line}
	if err := json.Unmarshal(object, &e.Event); err != nil {
		return Event{}, fmt.Errorf("the event does not fit: %w", err)
	}
	if e.EventID == "" {
		return Event{}, errors.New("the event has no event_id")
	}
	var text bytes.Buffer
	if err := json.Compact(&text, object); err != nil {
		return Event{}, err
	}
	e.JSON = text.Bytes()
	if !utf8.Valid(e.JSON) {
		e.JSON = bytes.ToValidUTF8(e.JSON, []byte("\ufffd")) // as Unmarshal reads it
	}
	return e, nil
}
