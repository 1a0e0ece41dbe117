package dynamo_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"switchboard/internal/affinity"
	"switchboard/internal/dynamo"
)

const idle = 6 * time.Hour

type item = map[string]types.AttributeValue

// rig is two empty tables, a store over them, and the wire in between.
type rig struct {
	*testing.T
	url             string
	sessions, state string
	wire            *wire
	client          *dynamodb.Client
	store           *dynamo.Store
	log             *logBuffer
	now             time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, url: endpoint(t), log: &logBuffer{}, now: time.Now().UTC().Truncate(time.Second)}
	id := rand.Text()
	r.sessions, r.state = "sessions-"+id, "state-"+id
	r.wire = newWire()
	r.client = dynamo.NewClient(config(r.url, r.wire))
	r.createTable(r.sessions, "session_id", "model_name")
	r.createTable(r.state, "id", "")
	r.store = r.another()
	r.wire.reset()
	return r
}

// another is a second store over the same tables, like another process.
func (r *rig) another() *dynamo.Store {
	client := dynamo.NewClient(config(r.url, r.wire))
	return dynamo.New(client, r.sessions, r.state, slog.New(slog.NewJSONHandler(r.log, nil)))
}

func config(url string, trip http.RoundTripper) aws.Config {
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret-access-key", SessionToken: "session-token"}, nil
		}),
		HTTPClient: &http.Client{Transport: trip},
	}
}

func (r *rig) createTable(name, hash, rng string) {
	r.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &hash, AttributeType: types.ScalarAttributeTypeS}},
	}
	if rng != "" {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &rng, KeyType: types.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &rng, AttributeType: types.ScalarAttributeTypeS})
	}
	var exists *types.ResourceInUseException // a retry whose first answer got lost
	if _, err := r.client.CreateTable(r.Context(), in); err != nil && !errors.As(err, &exists) {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		r.wire.reset()
		r.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
	})
}

func pin(session, provider string) affinity.Pin {
	return affinity.Pin{
		Ref:    affinity.Ref{SessionKey: session, Model: "m"},
		Target: affinity.Target{Provider: provider, KeyID: "1", KeyPrint: "print of " + provider, Model: "m", Surface: "openai-chat-completions"}, UserPath: "/team",
		ClientSessionID: session, LastSwitchRequestID: "claim of " + session,
	}
}

func to(provider string) affinity.Target { return pin("", provider).Target }

func (r *rig) claim(session, provider string) affinity.Pin {
	r.Helper()
	got, err := r.store.Assign(r.Context(), pin(session, provider), nil, r.now, idle)
	if err != nil {
		r.Fatalf("Assign: %v", err)
	}
	return got
}

func (r *rig) serve(session, provider string) affinity.Pin {
	r.Helper()
	got, err := r.store.Confirm(r.Context(), r.claim(session, provider), r.now, idle)
	if err != nil {
		r.Fatalf("Confirm: %v", err)
	}
	return got
}

func (r *rig) look(ref affinity.Ref) affinity.Pin {
	r.Helper()
	got, err := r.store.Lookup(r.Context(), ref, r.now)
	if err != nil {
		r.Fatalf("Lookup: %v", err)
	}
	return got
}

// raw reads an item past the store.
func (r *rig) raw(table string, key item) item {
	r.Helper()
	out, err := r.client.GetItem(r.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		r.Fatal(err)
	}
	return out.Item
}

// write puts an item past the store.
func (r *rig) write(table string, row item) {
	r.Helper()
	if _, err := r.client.PutItem(r.Context(), &dynamodb.PutItemInput{TableName: &table, Item: row}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) sessionKey(session string) item {
	return item{"session_id": &types.AttributeValueMemberS{Value: session}, "model_name": &types.AttributeValueMemberS{Value: "m"}}
}

// wire carries requests, counts them, and breaks as it is told.
type wire struct {
	next *http.Transport

	mu    sync.Mutex
	ops   []string
	sent  [][]byte // the requests' bodies
	fault func(op string, n int) broken
	drops int // how often the pooled connections were dropped
}

// broken says what becomes of one request; the zero value is nothing.
type broken struct {
	before error          // instead of sending it
	after  error          // instead of its answer
	reply  *http.Response // instead of sending it
	wait   bool           // until its context ends
}

func newWire() *wire {
	return &wire{next: &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512}}
}

// breaks has decide called with each request's operation and its number, from 1.
func (w *wire) breaks(decide func(op string, n int) broken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops, w.sent, w.fault = nil, nil, decide
}

func (w *wire) reset() { w.breaks(nil) }

// calls are the operations since the last reset, in order.
func (w *wire) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ops)
}

func (w *wire) CloseIdleConnections() {
	w.mu.Lock()
	w.drops++
	w.mu.Unlock()
	w.next.CloseIdleConnections()
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	w.ops, w.sent = append(w.ops, op), append(w.sent, body)
	n, decide := len(w.ops), w.fault
	w.mu.Unlock()
	var do broken
	if decide != nil {
		do = decide(op, n)
	}
	switch {
	case do.wait:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case do.before != nil:
		return nil, do.before
	case do.reply != nil:
		return do.reply, nil
	}
	resp, err := w.next.RoundTrip(req)
	if err == nil && do.after != nil {
		resp.Body.Close()
		return nil, do.after
	}
	return resp, err
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// lines are what was logged since the last call.
func (l *logBuffer) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return slices.Collect(strings.Lines(l.b.String()))
}
