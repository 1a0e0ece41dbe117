package dynamo

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"switchboard/internal/shared"
)

// Columns of a document.
const (
	colData    = "data"
	colVersion = "version"
	colWriter  = "writer" // the Swap that wrote it: makes a repeat recognisable, and a version unique
)

// freshFor is how long what was read for a Load that has not come yet answers it. It is the
// second that a Load may be behind.
const freshFor = time.Second

// Document is one small document in the state table, a shared.Cell. All Documents of one id,
// in any process, are the same document.
type Document struct {
	store   *Store
	id      string
	current bool // Load reads consistently, at twice the price

	mu      sync.Mutex
	known   edition       // the newest that was read or written here
	read    *reading      // answers the next Load, while it is fresh
	riding  chan struct{} // not nil while a Lookup is reading it; closed when it has
	pending pendingSwap
}

// edition names one state of the document. The number alone does not: it starts anew when
// the document has expired.
type edition struct {
	number int64
	writer string
	// guard is the malformed column of an item without a usable version, and broken is what
	// was in it: Swap may overwrite it while it is still that.
	guard  string
	broken item
}

// reading is a document as read. data is nil and its number 0 when there is none.
type reading struct {
	data []byte
	edition
	err error // it could not be read
	at  time.Time
}

// pendingSwap is a Swap whose answer got lost: a repeat of it goes under the same token.
type pendingSwap struct {
	data    []byte
	version int64
	token   string
}

// Document returns the shared document of that name.
func (s *Store) Document(id string) *Document {
	return &Document{store: s, id: documentID + keyText(id)}
}

// Current makes Loads that ask the table never behind, at twice the price, for those who edit
// the document. Call it before the document is used.
func (d *Document) Current() *Document {
	d.current = true
	return d
}

// Load implements shared.Cell. It reads at half price, and so may be behind, but never
// behind what this Document has read or written before. It costs no call when a Lookup or
// a lost Swap has just brought the document.
func (d *Document) Load(ctx context.Context) (data []byte, version int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, fault(ctx, "load", d.id, err)
	}
	if r := d.take(ctx); r != nil {
		if r.err != nil {
			return nil, 0, fault(ctx, "load", d.id, r.err)
		}
		return r.data, r.number, nil
	}
	for _, consistent := range []bool{d.current, true} {
		out, err := d.store.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &d.store.state, Key: d.key(), ConsistentRead: &consistent,
		})
		if err != nil {
			return nil, 0, fault(ctx, "load", d.id, err)
		}
		r := d.reading(ctx, out.Item)
		if d.note(r.edition, consistent) {
			return r.data, r.number, nil
		}
	}
	return nil, 0, fault(ctx, "load", d.id, errRestless)
}

// take waits for a Lookup that is reading the document, and returns what was read for this
// Load; nil when it must read by itself.
func (d *Document) take(ctx context.Context) *reading {
	d.mu.Lock()
	riding := d.riding
	d.mu.Unlock()
	if riding != nil {
		select {
		case <-riding:
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.read
	d.read = nil
	if r == nil || time.Since(r.at) >= freshFor {
		return nil
	}
	return r
}

// note remembers the newest version. It refuses one that is older than that, unless the
// read was consistent: then the document has expired in between.
func (d *Document) note(v edition, consistent bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.number < d.known.number && !consistent {
		return false
	}
	d.known = v
	return true
}

// offer keeps what was read for the next Load.
func (d *Document) offer(r reading, consistent bool) {
	if d.note(r.edition, consistent) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.read = &r
	}
}

func (d *Document) key() item { return item{colID: text(d.id)} }

// reading judges an item. One without a usable version or expiry is none, and is logged.
func (d *Document) reading(ctx context.Context, raw item) reading {
	at := time.Now()
	if len(raw) == 0 {
		return reading{at: at}
	}
	r := reader{raw: raw}
	number, expires := r.number(colVersion, 0), r.time(colExpires, true)
	if number <= 0 {
		r.fail(colVersion)
	}
	data, ok := raw[colData].(*types.AttributeValueMemberB)
	writer := r.text(colWriter, false)
	switch {
	case r.bad != "":
		d.store.logMalformed(ctx, d.store.state, d.id, r.bad, raw)
		return reading{at: at, edition: edition{guard: r.bad, broken: raw}}
	case expires.Unix() <= at.Unix():
		return reading{at: at}
	case !ok:
		d.store.logMalformed(ctx, d.store.state, d.id, colData, raw)
		data = &types.AttributeValueMemberB{}
	}
	return reading{data: data.Value, edition: edition{number: number, writer: writer}, at: at}
}

// Swap implements shared.Cell: one conditional PutItem. A lost race costs no read: the next
// Load answers with what the condition failed on.
func (d *Document) Swap(ctx context.Context, data []byte, version int64, expires time.Time) error {
	token := d.token(data, version)
	_, err := d.store.client.PutItem(ctx, d.swap(data, version, token, expires))
	raw, failed := lost(err)
	writer, _ := raw[colWriter].(*types.AttributeValueMemberS)
	switch {
	case err != nil && !failed:
		d.mu.Lock()
		d.pending = pendingSwap{bytes.Clone(data), version, token}
		d.mu.Unlock()
		return fault(ctx, "swap", d.id, err)
	case failed && (writer == nil || writer.Value != token):
		d.offer(d.reading(ctx, raw), true)
		return shared.ErrChanged
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.read = edition{number: version + 1, writer: token}, nil
	d.pending = pendingSwap{}
	d.store.malformed.forget(d.store.state, d.id)
	return nil
}

func (d *Document) swap(data []byte, version int64, token string, expires time.Time) *dynamodb.PutItemInput {
	d.mu.Lock()
	known := d.known
	d.mu.Unlock()
	e := newExpression()
	if version == 0 {
		e.or(e.absent(colID))
		if known.guard != "" {
			e.or(e.still(known.broken, known.guard))
		} else {
			e.or(e.is(colExpires, "<=", "now", epochSeconds(time.Now())))
		}
	} else {
		e.and(e.is(colVersion, "=", "old", number(version)))
		if known.number == version && known.writer != "" {
			e.and(e.is(colWriter, "=", "old", text(known.writer)))
		}
	}
	return &dynamodb.PutItemInput{
		TableName: &d.store.state,
		Item: item{
			colID: text(d.id), colData: &types.AttributeValueMemberB{Value: data}, colVersion: number(version + 1),
			colWriter: text(token), colExpires: epochSeconds(expires),
		},
		ConditionExpression: e.condition(), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// token names this Swap: as before when it repeats one whose answer got lost.
func (d *Document) token(data []byte, version int64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pending; p.token != "" && p.version == version && bytes.Equal(p.data, data) {
		return p.token
	}
	return rand.Text()
}
