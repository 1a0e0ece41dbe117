package affinity

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// PinQuery chooses live pins. Empty fields choose all; values are compared exactly and are
// data.
type PinQuery struct {
	SessionKey      string // store key: the pins of one session
	ClientSessionID string // the id as the client gave it, of whatever tenant
	UserPath        string // the path itself and all below it: "/a" is "/a" and "/a/…", not "/ab"
	Model           string // requested model
	Limit           int    // pins at most; 1 or more
	Cursor          string // PinPage.Next of the page before; empty: the first page
}

// Chooses tells whether the query means the pin, whatever its page.
func (q *PinQuery) Chooses(p *Pin) bool {
	return (q.SessionKey == "" || p.SessionKey == q.SessionKey) &&
		(q.ClientSessionID == "" || p.ClientSessionID == q.ClientSessionID) &&
		(q.Model == "" || p.Ref.Model == q.Model) && q.under(p.UserPath)
}

func (q *PinQuery) under(path string) bool {
	root := strings.TrimSuffix(q.UserPath, "/")
	return q.UserPath == "" || path == root && root != "" || strings.HasPrefix(path, root+"/")
}

// PinPage is a part of a list of pins.
type PinPage struct {
	Pins []Pin
	Next string // cursor of the next page; empty: this was the last
}

// ErrCursor: the cursor is none that this store gave for this query.
var ErrCursor = errors.New("affinity: not a cursor of this list")

// Operator is what an operator does with pins, beside Store: look at them, and clear one.
// To move one, read it and call IncrementSwitch, or Reassign when it has never served.
//
// Consistency: with a SessionKey an answer has every write that returned before it. Without
// one a write of the last second may be missing; Clear decides by the row as it is.
//
// Order: the store's own, which never changes: a pin that is there all the time is on exactly
// one page, whatever is written, cleared and swept meanwhile. A page may have fewer pins than
// Limit, also none, and a next one all the same: a call looks at a bounded number of rows, so
// that a filter which fits few of them does not keep the store busy.
//
// Expired rows (ExpiresAt <= now) and malformed ones are no pins, whether or not they are
// still there. All methods may be called from any goroutine.
type Operator interface {
	// Pins returns a page of live pins, or ErrCursor. Their totals may lag behind by what
	// AddUsage has not written yet.
	Pins(ctx context.Context, q PinQuery, now time.Time) (PinPage, error)

	// Clear deletes the row if it is as read (Store), served or not, expired or not: the
	// session's next request is routed as a new one's. ErrNotFound: it is gone, also when this
	// is the repeat of an applied Clear. ErrConflict: it has changed since; look again.
	Clear(ctx context.Context, read Pin) error
}

// Cursor is the page after ref, for stores that order by key.
func Cursor(ref Ref) string {
	text := binary.AppendUvarint(nil, uint64(len(ref.SessionKey)))
	text = append(text, ref.SessionKey...)
	text = append(text, ref.Model...)
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseCursor is the ref of a cursor; ErrCursor when Cursor has not made it.
func ParseCursor(cursor string) (Ref, error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	length, n := binary.Uvarint(text)
	if err != nil || n <= 0 || length > uint64(len(text)-n) {
		return Ref{}, ErrCursor
	}
	key, model := text[n:n+int(length)], text[n+int(length):]
	ref := Ref{SessionKey: string(key), Model: string(model)}
	if Cursor(ref) != cursor {
		return Ref{}, ErrCursor
	}
	return ref, nil
}
