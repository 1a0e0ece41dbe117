package main

import (
	"bytes"
	"fmt"
	"io"
)

// sieve passes a function's log lines on, each behind its name; without all, only those that
// are not for information.
type sieve struct {
	to   io.Writer
	name string
	all  bool
}

// Write gets one line at a time.
func (s *sieve) Write(line []byte) (int, error) {
	quiet := bytes.Contains(line, []byte(`"level":"INFO"`)) || bytes.Contains(line, []byte(`"level":"DEBUG"`))
	if s.all || !quiet {
		fmt.Fprintf(s.to, "%s%s", s.name, line)
	}
	return len(line), nil
}
