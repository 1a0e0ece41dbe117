package provider

import (
	"net/http"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/sse"
	"switchboard/internal/wire"
)

// Vendor is what differs between provider types. One file each, listed in Vendors.
type Vendor struct {
	Type     string
	BaseURL  string         // default
	Env      string         // OPENAI: OPENAI_API_KEY, OPENAI_API_KEY_2, OPENAI_BASE_URL
	Surfaces []wire.Surface // default
	Catalog  string         // id of the vendor in the embedded catalog
	// Authorize sets the one credential header.
	Authorize func(h http.Header, key string)
}

// Vendors lists the known provider types in a fixed order.
func Vendors() []Vendor { panic("todo") }

// VendorOf finds a type.
func VendorOf(providerType string) (Vendor, bool) { panic("todo") }

// CatalogModels returns the models of a vendor with prices from the embedded catalog.
// It decodes the catalog: call it at the start only, and only when needed.
func CatalogModels(v Vendor) []Model { panic("todo") }

// Failure is what an upstream answer means.
type Failure struct {
	Class      health.Class
	RetryAfter time.Duration // 0: not said
}

// Classify reads an answer with a status other than 2xx. body is its beginning (at most
// 64 KiB), decompressed. 3xx is a ServerError.
func Classify(status int, header http.Header, body []byte, now time.Time) Failure { panic("todo") }

// Mark is what an event means for the relay.
type Mark uint8

// Marks of an event; several may be set.
const (
	Output    Mark = 1 << iota // the client would see content: no failover after it
	UsageOnly                  // a chat chunk with empty choices and usage: hidden when we asked for it
	Error                      // an error event; see Stream.Failure
	End                        // the stream is complete without more
	Done                       // the end marker itself ([DONE], message_stop, response.completed)
)

// Stream observes the events of one streamed answer. Reading is lenient: what it does not
// understand is no error. It never keeps slices of what it was given.
type Stream struct {
	surface wire.Surface
}

// NewStream starts observing; the value form lets the caller embed it.
func NewStream(surface wire.Surface) Stream { panic("todo") }

// Read takes the next event. No allocation for a content chunk.
func (s *Stream) Read(e sse.Event) Mark { panic("todo") }

// Usage returns what is known: Quality exact after the final usage, partial when only a
// part was seen (Anthropic's message_start without message_delta), else unknown.
func (s *Stream) Usage() Usage { panic("todo") }

// ResponseID is the id of a responses-surface answer, else empty.
func (s *Stream) ResponseID() string { panic("todo") }

// Failure is what the last Error event meant, with the HTTP status that its type stands
// for (529 overloaded, 429 rate limit, 400 invalid request, else 502).
func (s *Stream) Failure() (Failure, int) { panic("todo") }

// ReadAnswer reads usage and response id from an answer that was not streamed. body may be
// only the last part of a large one (whole false): usage is then found from its end.
func ReadAnswer(surface wire.Surface, body []byte, whole bool) (usage Usage, responseID string) {
	panic("todo")
}

// Price is the cost of a usage. ok is false when a rate that is needed is unknown, the
// service tier has no price, or the usage's quality is unknown.
func (p *Pricing) Price(u Usage) (cost Cost, ok bool) { panic("todo") }

// SwitchCost is what resending tokens to a cold cache costs: tokens x (input rate - cached
// rate); ok is false when the price is unknown.
func (p *Pricing) SwitchCost(tokens int64) (NanoUSD, bool) { panic("todo") }

// Estimate is the price used for ranking: tokens x input price + one million output tokens'
// price is not known beforehand, so per-million output price is added as is (DESIGN 5).
func (p *Pricing) Estimate(inputTokens int64) (NanoUSD, bool) { panic("todo") }

// Redact replaces every run of text in b that shares 8 or more characters with one of the
// keys by "[redacted]". It returns b itself when there is none.
func Redact(b []byte, keys []string) []byte { panic("todo") }
