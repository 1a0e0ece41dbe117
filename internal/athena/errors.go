package athena

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/smithy-go"

	"switchboard/internal/audit"
)

var (
	// ErrThrottled is Athena refusing to work faster, also after several tries: ask later.
	ErrThrottled = errors.New("athena is throttling")
	// ErrScanLimit is a question that would read too many bytes: ask for less time.
	ErrScanLimit = errors.New("the question reads too many bytes")
)

// QueryError is a call or a query that failed.
type QueryError struct {
	Op      string // start, poll, run, results, stop
	QueryID string // "" before there is one
	// Reason is Athena's, cut short and without what stood in quotes: a statement's values
	// have no place in a log.
	Reason string
	Err    error // the cause that callers tell apart, or nil

	retryable bool
}

func (e *QueryError) Error() string {
	text := e.Op
	if e.QueryID != "" {
		text += " of query " + e.QueryID
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

func (e *QueryError) Unwrap() error { return e.Err }

// again tells whether Athena has said that the same statement may succeed next time.
func again(err error) bool {
	var query *QueryError
	return errors.As(err, &query) && query.retryable
}

// translate is the one place where errors of the SDK become ours.
func translate(ctx context.Context, op, id string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	e := &QueryError{Op: op, QueryID: id}
	var api smithy.APIError
	switch {
	case retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err).Bool():
		e.Err = ErrThrottled
	case errors.As(err, &api):
		e.Reason = api.ErrorCode() + ": " + reason(api.ErrorMessage())
	default:
		e.Err = err // of the way there: it names hosts, not values
	}
	return e
}

// failed is the error of a query that has ended otherwise than it should.
func failed(id string, status *types.QueryExecutionStatus) error {
	e := &QueryError{Op: "run", QueryID: id, Reason: strings.ToLower(string(status.State))}
	if text := aws.ToString(status.StateChangeReason); text != "" {
		e.Reason += ": " + reason(text)
		if strings.Contains(strings.ToLower(text), "bytes scanned limit") {
			e.Err = ErrScanLimit
		}
	}
	e.retryable = e.Err == nil && status.AthenaError != nil && status.AthenaError.Retryable
	return e
}

const longestReason = 300

// reason is a text of Athena's as it may be logged: in one line, not long, and with nothing
// between quotes but names of our columns, because a value could stand there. A value may
// have quotes in it, so that all up to the last one goes.
func reason(text string) string {
	names := map[string]bool{"dt": true, "hour": true, defaultTable: true}
	for _, column := range audit.EventColumns() {
		names[column] = true
	}
	const quotes = "'\"`"
	rest := clean(text)
	var out strings.Builder
	for {
		begin := strings.IndexAny(rest, quotes)
		if begin < 0 {
			out.WriteString(rest)
			break
		}
		quoted, after, closed := strings.Cut(rest[begin+1:], rest[begin:begin+1])
		if closed && names[quoted] {
			out.WriteString(rest[:begin] + "'" + quoted + "'")
			rest = after
			continue
		}
		out.WriteString(rest[:begin] + "'…'")
		if last := strings.LastIndexAny(rest, quotes); last > begin {
			out.WriteString(rest[last+1:])
		}
		break
	}
	runes := []rune(strings.TrimSpace(out.String()))
	if len(runes) > longestReason {
		return string(runes[:longestReason]) + "…"
	}
	return string(runes)
}

// clean makes one line of a text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
