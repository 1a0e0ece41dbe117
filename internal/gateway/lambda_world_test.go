//go:build unix

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/emulator"
	"switchboard/internal/functionurl"
	"switchboard/internal/record"
)

const (
	sessionTable = "session_affinity"
	stateTable   = "switchboard_state"
	eventsStream = "switchboard-events"
	eventsBucket = "switchboard-events"
)

// lambda is functions/route behind a Function URL.
type lambda struct {
	t        testing.TB
	at       tempo
	cloud    *emulator.Cloud
	function *functionurl.Function
	client   *http.Client
	said     *syncBuffer
	recorded []record.Event
	known    map[string]bool // ids of recorded
}

func onLambda(t testing.TB, s *setting, bootstrap string, at tempo) *lambda {
	l := &lambda{t: t, at: at, said: &syncBuffer{}, known: map[string]bool{}}
	endpoint := l.account()
	// Providers are found through a proxy, which keeps their names and paths as they are.
	providers := httptest.NewServer(s.network)
	t.Cleanup(providers.Close)
	env := []string{
		"SWITCHBOARD_CONFIG=" + l.configuration(s),
		"SESSION_TABLE=" + sessionTable, "STATE_TABLE=" + stateTable, "EVENTS_STREAM=" + eventsStream,
		"AWS_ENDPOINT_URL=" + endpoint, "HTTP_PROXY=" + providers.URL, "NO_PROXY=127.0.0.1",
	}
	for name, value := range testEnv() {
		env = append(env, name+"="+value)
	}
	var err error
	// FailWrites is more than AWS does: there a function writes on, unheard.
	l.function, err = functionurl.Start(context.Background(), functionurl.Options{
		Bootstrap: bootstrap, Env: env, Timeout: 15 * time.Minute, Freeze: true, FailWrites: true, Logs: l.said,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.function.Close() })
	front := httptest.NewServer(l.function)
	t.Cleanup(front.Close)
	transport := &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, front.Listener.Addr().String())
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	l.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return l
}

// account makes what template.yaml does, and returns its address.
func (l *lambda) account() (endpoint string) {
	l.cloud = emulator.New(emulator.Options{})
	server := httptest.NewServer(l.cloud)
	l.t.Cleanup(func() {
		server.Close()
		if err := l.cloud.Close(context.Background()); err != nil {
			l.t.Error(err)
		}
	})
	l.must(l.cloud.CreateTable(sessionTable, "session_id", "model_name", "expires_at"))
	l.must(l.cloud.CreateTable(stateTable, "id", "", "expires_at"))
	l.must(l.cloud.CreateBucket(eventsBucket))
	l.must(l.cloud.CreateStream(emulator.Stream{Name: eventsStream, Bucket: eventsBucket, Prefix: "events/", GZIP: true}))
	return server.URL
}

// configuration writes the file, with limits in this world's time.
func (l *lambda) configuration(s *setting) (path string) {
	text := s.yaml
	if l.at.faster > 1 {
		limits := s.cfg.Timeouts
		text += fmt.Sprintf("\ntimeouts: {first_byte: %s, first_byte_unary: %s, idle: %s}\n",
			l.at.real(limits.FirstByte), l.at.real(limits.FirstByteUnary), l.at.real(limits.Idle))
	}
	path = filepath.Join(l.t.TempDir(), "switchboard.yaml")
	l.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (l *lambda) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lambda) tempo() tempo               { return l.at }
func (l *lambda) header(value string) string { return sendable(value) }
func (l *lambda) events() []record.Event     { return l.recorded }
func (l *lambda) restart()                   { l.must(l.function.Kill(0)) }

// starved tells whether the function did without its store for once, as it does after 250 ms:
// no conversation foresees that.
func (l *lambda) starved() bool {
	return slices.ContainsFunc([]string{
		"affinity store fault", "response alias", "shared health is not", "health is not shared", "trial is not shared",
	}, func(message string) bool { return strings.Contains(l.said.String(), message) })
}

var environment = regexp.MustCompile(`(?m)^\[\d+\] `)

func (l *lambda) end() (log string) {
	l.must(l.function.Close())
	return environment.ReplaceAllString(l.said.String(), "")
}

func (l *lambda) do(ctx context.Context, request *http.Request) *answer {
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "") // none, not Go's
	}
	a := l.exchange(request.WithContext(ctx))
	l.settle()
	l.collect()
	return a
}

// exchange is a request as its client sees it.
func (l *lambda) exchange(request *http.Request) *answer {
	a := &answer{}
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	response, err := l.client.Do(request)
	if err != nil {
		a.aborted = true
		return a
	}
	defer response.Body.Close()
	a.status, a.sent = response.StatusCode, response.Header
	_, err = io.Copy(&a.body, response.Body)
	a.aborted = err != nil
	return a
}

// settle waits until the environment is frozen: nothing happens from then on.
func (l *lambda) settle() {
	l.t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for began := time.Now(); time.Since(began) < time.Minute; <-look.C {
		if l.function.Stats().Environments[0].State == functionurl.Frozen {
			return
		}
	}
	l.t.Fatalf("the invocation does not end: %+v\n%s", l.function.Stats().Environments[0], l.said.String())
}

// collect reads what has been delivered since.
func (l *lambda) collect() {
	l.t.Helper()
	l.must(l.cloud.FlushStreams())
	lines, err := l.cloud.Events(eventsBucket)
	l.must(err)
	for _, line := range lines {
		var e record.Event
		l.must(json.Unmarshal(line, &e))
		if !l.known[e.EventID] {
			l.known[e.EventID] = true
			l.recorded = append(l.recorded, e)
		}
	}
}

func (l *lambda) put(pin affinity.Pin) { l.must(l.cloud.PutItem(sessionTable, columnsOf(pin))) }

func (l *lambda) rows() []map[string]any {
	rows, err := l.cloud.Items(sessionTable)
	l.must(err)
	return rows
}

// glance is how long an instance is content with what it knows of the others, and a bit.
const glance = 1050 * time.Millisecond

// wait moves what is stored into the past. All that the function keeps beside it is its copy
// of the shared health, which it looks at again after a second.
func (l *lambda) wait(d time.Duration) {
	<-time.After(min(d, glance))
	move := (d - glance + time.Second).Truncate(time.Second) // rows know seconds
	if move <= 0 {
		return
	}
	for _, table := range []string{sessionTable, stateTable} {
		items, err := l.cloud.Items(table)
		l.must(err)
		for _, item := range items {
			l.must(age(item, move))
			l.must(l.cloud.PutItem(table, item))
		}
	}
}

// age makes an item that much older.
func age(item map[string]any, by time.Duration) error {
	for _, column := range []string{"assigned_at", "last_used_at", "expires_at"} {
		if err := lower(item, column, int64(by.Seconds())); err != nil {
			return err
		}
	}
	if item["id"] != "document:health" {
		return nil
	}
	if err := lower(item, "version", -1); err != nil {
		return err
	}
	data, ok := item["data"].([]byte)
	if !ok {
		return fmt.Errorf("health is %v", item)
	}
	document, err := agedHealth(data, by)
	item["data"] = document
	return err
}

// agedHealth is the shared document of internal/health, with all its times moved.
func agedHealth(data []byte, by time.Duration) ([]byte, error) {
	var document map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	providers, _ := document["providers"].(map[string]any)
	for _, one := range providers {
		standings, _ := one.(map[string]any)["standings"].([]any)
		for _, standing := range standings {
			for _, name := range []string{"until", "lease"} {
				if err := lower(standing.(map[string]any), name, by.Milliseconds()); err != nil {
					return nil, err
				}
			}
		}
	}
	return json.Marshal(document)
}

// lower subtracts from a number that is there.
func lower(of map[string]any, name string, by int64) error {
	value, there := of[name].(json.Number)
	if !there {
		return nil
	}
	n, err := value.Int64()
	of[name] = json.Number(strconv.FormatInt(n-by, 10))
	return err
}
