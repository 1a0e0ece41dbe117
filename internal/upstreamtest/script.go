package upstreamtest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Parse reads a reply written as text:
//
//	200
//	Content-Type: text/event-stream
//
//	data: {"choices":[{"index":0,"delta":{"content":"a"}}]}
//
//	@wait 10s
//	"data: [DONE]\r\n"
//	"\r\n"
//
// The first line is the status; or refused, tls, reset (no answer), hang (no header ever).
// "after 3s" before it delays the header. In a body, a line that is a Go string is a chunk
// by itself; of plain lines each event is a chunk in an event stream, and the whole is one
// elsewhere, its last newline left out. Directives have a line of their own: @flush ends a
// chunk, @wait 10s pauses, @cut breaks the connection, @hang stays silent.
func Parse(text []byte) (Reply, error) {
	var r Reply
	head, rest, _ := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(strings.Trim(string(head), "\n"), "\n")
	if after, ok := strings.CutPrefix(lines[0], "after "); ok && len(lines) > 1 {
		wait, err := time.ParseDuration(after)
		if err != nil {
			return r, fmt.Errorf("upstreamtest: %q: %w", lines[0], err)
		}
		r.Wait, lines = wait, lines[1:]
	}
	switch lines[0] {
	case "refused":
		r.Fail = ErrRefused
	case "tls":
		r.Fail = ErrTLS
	case "reset":
		r.Fail = ErrReset
	case "hang":
		r.Silent = true
	default:
		status, err := strconv.Atoi(lines[0])
		if err != nil {
			return r, fmt.Errorf("upstreamtest: %q is neither a status nor refused, tls, reset or hang", lines[0])
		}
		r.Status = status
	}
	header, err := ParseHeader(lines[1:])
	if err != nil {
		return r, err
	}
	r.Header = header
	r.Steps, err = steps(rest, strings.HasPrefix(header.Get("Content-Type"), "text/event-stream"))
	return r, err
}

// ParseHeader reads "Name: value" lines. A value that is a Go string is unquoted, so that
// control characters can be written.
func ParseHeader(lines []string) (http.Header, error) {
	header := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("upstreamtest: %q is not a header", line)
		}
		value = strings.TrimSpace(value)
		if strings.HasPrefix(value, `"`) {
			if text, err := strconv.Unquote(value); err == nil {
				value = text
			}
		}
		header.Add(name, value)
	}
	return header, nil
}

// steps reads a body. events tells that each event is a chunk.
func steps(text []byte, events bool) ([]Step, error) {
	var steps []Step
	var chunk []byte
	flush := func() {
		if len(chunk) > 0 {
			steps = append(steps, Step{Bytes: chunk})
			chunk = nil
		}
	}
	for line := range strings.Lines(string(text)) {
		plain := strings.TrimSuffix(line, "\n")
		directive, argument, _ := strings.Cut(plain, " ")
		switch {
		case strings.HasPrefix(plain, `"`) && strings.HasSuffix(plain, `"`):
			flush()
			literal, err := strconv.Unquote(plain)
			if err != nil {
				return nil, fmt.Errorf("upstreamtest: %s: %w", plain, err)
			}
			steps = append(steps, Step{Bytes: []byte(literal)})
		case directive == "@flush":
			flush()
		case directive == "@wait":
			flush()
			wait, err := time.ParseDuration(argument)
			if err != nil {
				return nil, fmt.Errorf("upstreamtest: %q: %w", plain, err)
			}
			steps = append(steps, Step{Wait: wait})
		case directive == "@cut":
			flush()
			steps = append(steps, Step{Cut: true})
		case directive == "@hang":
			flush()
			steps = append(steps, Step{Hang: true})
		case strings.HasPrefix(plain, "@"):
			return nil, errors.New("upstreamtest: unknown directive " + plain)
		default:
			chunk = append(chunk, line...)
			if events && plain == "" {
				flush()
			}
		}
	}
	if !events {
		chunk = bytes.TrimSuffix(chunk, []byte("\n"))
	}
	flush()
	return steps, nil
}
