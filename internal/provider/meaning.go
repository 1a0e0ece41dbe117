package provider

import (
	"net/http"
	"strings"
	"time"

	"switchboard/internal/health"
)

// Meaning is what an error of a vendor means. All that is set has to hold; of several the
// first decides.
type Meaning struct {
	Status int    // 0: any
	Word   string // the error's type, code or status, lower case
	Says   string // a part of its message, lower case, before anything that it quotes
	Class  health.Class
	Retry  time.Duration // when the answer does not say
}

// meaning finds what the vendor means by an error; nil: what everybody means.
func (v *Vendor) meaning(e *complaint, status int) *Meaning {
	if v == nil || len(v.Meanings) == 0 {
		return nil
	}
	head := e.begins() // what a client wrote comes back quoted
	for i := range v.Meanings {
		m := &v.Meanings[i]
		if m.Status != 0 && m.Status != status || m.Word != "" && !e.is(m.Word) || m.Says != "" && !head.says(m.Says) {
			continue
		}
		return m
	}
	return nil
}

// Classify reads an answer with a status other than 2xx. body is its beginning (at most
// 64 KiB), decompressed. 3xx is a ServerError.
func (v *Vendor) Classify(status int, header http.Header, body []byte, now time.Time) Failure {
	e := readComplaint(body)
	e.amazon(header)
	var f Failure
	m := v.meaning(&e, status)
	if m != nil {
		f.Class = m.Class
	} else {
		f.Class = e.class(status)
	}
	if f.Class == health.Request {
		return f
	}
	f.RetryAfter = retryAfter(header, now)
	if f.RetryAfter == 0 {
		f.RetryAfter = e.retry
	}
	if f.RetryAfter == 0 && f.Class == health.RateLimited {
		f.RetryAfter = max(limitReset(header, now), resetIn(e.reset, now))
	}
	if f.RetryAfter == 0 && m != nil {
		f.RetryAfter = m.Retry
	}
	return f
}

// amazon takes the error's type from where AWS names it: "ThrottlingException:http://…".
func (e *complaint) amazon(header http.Header) {
	name, _, _ := strings.Cut(header.Get("X-Amzn-Errortype"), ":")
	if name != "" && e.kind == "" {
		e.kind = strings.ToLower(strings.TrimSpace(name))
	}
}
