package eventdb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

// maxNames bounds what an inserter remembers of names: clients choose some of them.
const maxNames = 10_000

// Inserter stores events over one connection, inside transactions that its owner begins
// and ends. What many events of a transaction add to one sum is written once, by Flush.
//
//	BEGIN IMMEDIATE; Insert…; Flush; COMMIT      or, after any error, ROLLBACK; Discard
//
// One transaction may hold many thousands of events; memory grows with it.
type Inserter struct {
	conn *sqlite.Conn
	insertStatements

	paths map[string]int64 // ids of user paths and kinds, as stored
	kinds map[kind]int64

	threads map[threadName]*thread // of the open transaction
	days    map[dayName]*audit.Usage
	counts  map[int64]*count
	served  map[int64]int64 // kind -> requests
	text    []byte
}

// kind is what many events have in common.
type kind struct {
	path                                                                  int64
	sessionSource, apiSurface, requestedModel, modelName, provider, keyID string
	billingModel, decisionReason, usageQuality, outcome, affinity         string
	status                                                                int
	switched, stream                                                      bool
}

type threadName struct{ userPath, sessionID, sessionKey string }

// thread is what a transaction adds to one.
type thread struct {
	id       int64
	requests int64
	firstAt  int64
	newest   string
	cells    []cell
}

type cell struct {
	day, kind int64
	newest    string
	usage     audit.Usage
}

type dayName struct {
	path, day                           int64
	requestedModel, modelName, provider string
	decisionReason, outcome             string
	status                              int
}

// count is what a transaction adds to a user path's counters.
type count struct{ events, sessions, singles int64 }

// NewInserter prepares the statements. The connection finalizes them when it is closed.
func NewInserter(c *sqlite.Conn) (*Inserter, error) {
	in := &Inserter{conn: c}
	if err := in.prepare(c); err != nil {
		return nil, fmt.Errorf("eventdb: %w", err)
	}
	in.Discard()
	return in, nil
}

// Discard forgets the transaction, which has been rolled back.
func (in *Inserter) Discard() {
	in.paths, in.kinds = map[string]int64{}, map[kind]int64{}
	in.reset()
}

func (in *Inserter) reset() {
	empty(&in.threads)
	empty(&in.days)
	empty(&in.counts)
	empty(&in.served)
}

// empty keeps the room of a small map, which the next request will need.
func empty[K comparable, V any](m *map[K]V) {
	const small = 1000
	if *m == nil || len(*m) > small {
		*m = map[K]V{}
	} else {
		clear(*m)
	}
}

// Insert stores the event, unless one with its id is there: then it reports false. The
// event is not kept by the inserter.
func (in *Inserter) Insert(e *record.Event) (added bool, err error) {
	added, err = in.insert(e)
	if err != nil {
		return false, fmt.Errorf("eventdb: insert %s: %w", e.EventID, err)
	}
	return added, nil
}

func (in *Inserter) insert(e *record.Event) (bool, error) {
	path, err := in.path(e.UserPath)
	if err != nil {
		return false, err
	}
	k := kind{
		path: path, sessionSource: e.SessionSource, apiSurface: e.APISurface, requestedModel: e.RequestedModel,
		modelName: e.ModelName, provider: e.Provider, keyID: e.KeyID, billingModel: e.BillingModel,
		decisionReason: e.DecisionReason, usageQuality: e.UsageQuality, outcome: e.Outcome, affinity: e.Affinity,
		status: e.ResponseStatus, switched: e.Switched, stream: e.Stream,
	}
	kindID, err := in.kind(k)
	if err != nil {
		return false, err
	}
	newest := audit.NewestKey(e.CreatedAt, e.EventID)
	t, err := in.thread(e, path, newest)
	if t == nil || err != nil {
		return false, err
	}
	added, err := in.row(e, t.id, kindID)
	if !added || err != nil {
		return false, err
	}
	usage := audit.UsageOf(e)
	day := floorDay(e.CreatedAt)
	t.add(e.CreatedAt, newest, day, kindID, &usage)
	for _, p := range [...]int64{path, everybody} {
		in.day(dayName{p, day, e.RequestedModel, e.ModelName, e.Provider, e.DecisionReason, e.Outcome, e.ResponseStatus}).Add(usage)
		in.count(p).events++
	}
	in.served[kindID]++
	return true, nil
}

// everybody is the path under which all events are counted.
const everybody = 0

const dayMillis = 24 * 60 * 60 * 1000

// floorDay is the UTC day since 1970.
func floorDay(ms int64) int64 {
	day := ms / dayMillis
	if ms%dayMillis < 0 {
		day--
	}
	return day
}

func (t *thread) add(at int64, newest string, day, kind int64, usage *audit.Usage) {
	if t.requests == 0 {
		t.firstAt, t.newest = at, newest
	}
	t.requests++
	t.firstAt, t.newest = min(t.firstAt, at), max(t.newest, newest)
	for i := range t.cells {
		if c := &t.cells[i]; c.day == day && c.kind == kind {
			c.newest = max(c.newest, newest)
			c.usage.Add(*usage)
			return
		}
	}
	t.cells = append(t.cells, cell{day: day, kind: kind, newest: newest, usage: *usage})
}

func (in *Inserter) day(name dayName) *audit.Usage {
	u := in.days[name]
	if u == nil {
		u = &audit.Usage{}
		in.days[name.clone()] = u
	}
	return u
}

func (in *Inserter) count(path int64) *count {
	c := in.counts[path]
	if c == nil {
		c = &count{}
		in.counts[path] = c
	}
	return c
}

// path is the id of a user path, made if there is none.
func (in *Inserter) path(userPath string) (int64, error) {
	if id, known := in.paths[userPath]; known {
		return id, nil
	}
	in.makePath.BindText(1, userPath)
	if err := run(in.makePath); err != nil {
		return 0, err
	}
	in.findPath.BindText(1, userPath)
	id, _, err := first(in.findPath)
	if err != nil {
		return 0, err
	}
	if len(in.paths) >= maxNames {
		clear(in.paths)
	}
	in.paths[strings.Clone(userPath)] = id
	return id, nil
}

func (in *Inserter) kind(k kind) (int64, error) {
	if id, known := in.kinds[k]; known {
		return id, nil
	}
	for _, stmt := range [...]*sqlite.Stmt{in.makeKind, in.findKind} {
		stmt.BindInt64(1, k.path)
		for i, text := range k.texts() {
			stmt.BindText(2+i, *text)
		}
		stmt.BindInt64(13, int64(k.status))
		stmt.BindBool(14, k.switched)
		stmt.BindBool(15, k.stream)
	}
	if err := run(in.makeKind); err != nil {
		return 0, err
	}
	id, _, err := first(in.findKind)
	if err != nil {
		return 0, err
	}
	if len(in.kinds) >= maxNames {
		clear(in.kinds)
	}
	for _, text := range k.texts() {
		*text = strings.Clone(*text) // the event may be a piece of something large
	}
	in.kinds[k] = id
	return id, nil
}

// texts are the kind's, in the order of the statements' parameters.
func (k *kind) texts() [11]*string {
	return [...]*string{
		&k.sessionSource, &k.apiSurface, &k.requestedModel, &k.modelName, &k.provider, &k.keyID,
		&k.billingModel, &k.decisionReason, &k.usageQuality, &k.outcome, &k.affinity,
	}
}

func (n dayName) clone() dayName {
	for _, text := range [...]*string{&n.requestedModel, &n.modelName, &n.provider, &n.decisionReason, &n.outcome} {
		*text = strings.Clone(*text)
	}
	return n
}

// thread is the event's, made if there is none; nil when the event is there already.
func (in *Inserter) thread(e *record.Event, path int64, newest string) (*thread, error) {
	name := threadName{e.UserPath, e.SessionID, e.SessionKey}
	if e.SessionKey == "" {
		name = threadName{sessionID: e.EventID} // no session has this name: its key is not empty
	} else if t := in.threads[name]; t != nil {
		return t, nil
	}
	t := &thread{}
	if e.SessionKey != "" {
		in.findThread.BindText(1, e.SessionID)
		in.findThread.BindInt64(2, path)
		in.findThread.BindText(3, e.SessionKey)
		id, found, err := first(in.findThread)
		if err != nil {
			return nil, err
		}
		t.id = id
		if found {
			in.threads[name.clone()] = t
			return t, nil
		}
	}
	in.findEvent.BindText(1, e.EventID)
	if _, found, err := first(in.findEvent); found || err != nil {
		return nil, err
	}
	stmt, counter := in.makeThread, &in.count(path).sessions
	total := &in.count(everybody).sessions
	if e.SessionKey == "" {
		stmt, counter, total = in.makeSingle, &in.count(path).singles, &in.count(everybody).singles
	}
	stmt.BindInt64(1, path)
	stmt.BindText(2, e.SessionID)
	stmt.BindText(3, e.SessionKey)
	stmt.BindInt64(4, e.CreatedAt)
	stmt.BindText(5, newest)
	if err := run(stmt); err != nil {
		return nil, err
	}
	t.id = in.conn.LastInsertRowID()
	*counter++
	*total++
	in.threads[name.clone()] = t
	return t, nil
}

func (n threadName) clone() threadName {
	return threadName{strings.Clone(n.userPath), strings.Clone(n.sessionID), strings.Clone(n.sessionKey)}
}

// Flush writes the sums. Call it before COMMIT.
func (in *Inserter) Flush() error {
	if err := in.flush(); err != nil {
		return fmt.Errorf("eventdb: %w", err)
	}
	in.reset()
	return nil
}

func (in *Inserter) flush() error {
	threads := make([]*thread, 0, len(in.threads))
	for _, t := range in.threads {
		if t.requests > 0 {
			threads = append(threads, t)
		}
	}
	// In the order of the tables: neighbours share pages.
	slices.SortFunc(threads, func(a, b *thread) int { return cmp.Compare(a.id, b.id) })
	for _, t := range threads {
		if err := in.flushThread(t); err != nil {
			return err
		}
	}
	for name, usage := range in.days {
		if err := in.flushDay(name, usage); err != nil {
			return err
		}
	}
	for path, c := range in.counts {
		in.addCount.BindInt64(1, path)
		in.addCount.BindInt64(2, c.events)
		in.addCount.BindInt64(3, c.sessions)
		in.addCount.BindInt64(4, c.singles)
		if err := run(in.addCount); err != nil {
			return err
		}
	}
	for kind, requests := range in.served {
		in.addKind.BindInt64(1, kind)
		in.addKind.BindInt64(2, requests)
		if err := run(in.addKind); err != nil {
			return err
		}
	}
	return nil
}

func (in *Inserter) flushThread(t *thread) error {
	in.addThread.BindInt64(1, t.id)
	in.addThread.BindInt64(2, t.requests)
	in.addThread.BindInt64(3, t.firstAt)
	in.addThread.BindText(4, t.newest)
	if err := run(in.addThread); err != nil {
		return err
	}
	slices.SortFunc(t.cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.kind, b.kind))
	})
	for i := range t.cells {
		c := &t.cells[i]
		in.addCell.BindInt64(1, t.id)
		in.addCell.BindInt64(2, c.day)
		in.addCell.BindInt64(3, c.kind)
		in.addCell.BindText(4, c.newest)
		bindUsage(in.addCell, 5, &c.usage)
		if err := run(in.addCell); err != nil {
			return err
		}
	}
	return nil
}

func (in *Inserter) flushDay(n dayName, usage *audit.Usage) error {
	in.addDay.BindInt64(1, n.path)
	in.addDay.BindInt64(2, n.day)
	in.addDay.BindText(3, n.requestedModel)
	in.addDay.BindText(4, n.modelName)
	in.addDay.BindText(5, n.provider)
	in.addDay.BindText(6, n.decisionReason)
	in.addDay.BindText(7, n.outcome)
	in.addDay.BindInt64(8, int64(n.status))
	bindUsage(in.addDay, 9, usage)
	return run(in.addDay)
}

func bindUsage(stmt *sqlite.Stmt, param int, u *audit.Usage) {
	for i, sum := range u.Fields() {
		stmt.BindInt64(param+i, sum)
	}
}
