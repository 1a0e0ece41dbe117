package proxy

import "time"

// Timeouts are the time limits of a call (DESIGN 7). None is a limit of the whole answer.
type Timeouts struct {
	Connect        time.Duration // 5s
	FirstByte      time.Duration // 60s: to the first event of a stream
	FirstByteUnary time.Duration // 600s: to the header of an answer that is not streamed
	Idle           time.Duration // 120s: between reads
}
