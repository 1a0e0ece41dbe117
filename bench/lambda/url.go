package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"switchboard/internal/emulator"
	"switchboard/internal/functionurl"
)

// seed makes what template.yaml makes, under the names of routeEnv.
func seed(cloud *emulator.Cloud) error {
	return errors.Join(
		cloud.CreateTable("session_affinity", "session_id", "model_name", "expires_at"),
		cloud.CreateTable("switchboard_state", "id", "", "expires_at"),
		cloud.CreateBucket("events"),
		cloud.CreateStream(emulator.Stream{Name: "events", Bucket: "events", Interval: time.Minute, GZIP: true}),
	)
}

// functionURL measures the deployed function behind the local Function URL, over real
// sockets and stores, against asking the provider directly; and what a request that follows
// its pin costs in calls and memory.
func (b *bench) functionURL(ctx context.Context) (bars []bar, err error) {
	text := answerText()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the client is ours
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text) //nolint:errcheck // the client is ours
	}))
	defer provider.Close()
	cloud, aws, err := account()
	if err != nil {
		return nil, err
	}
	defer aws.Close()
	env, err := b.routeEnv("switchboard.yaml", aws.URL, provider.URL)
	if err != nil {
		return nil, err
	}
	f, err := functionurl.Start(ctx, functionurl.Options{
		Bootstrap: b.path("route/bootstrap"), Env: env, Timeout: time.Minute, MemoryMB: 256, Logs: io.Discard, Queue: true,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	front := httptest.NewServer(f)
	defer front.Close()
	for _, size := range []struct {
		name  string
		bytes int
	}{{"2 KB", 2 << 10}, {"100 KB", 100 << 10}} {
		one, err := b.compare(provider.URL, front.URL, size.bytes)
		if err != nil {
			return nil, err
		}
		one.name = "local Function URL, added to first byte, " + size.name
		bars = append(bars, one)
	}
	for f.Stats().Environments[0].State == functionurl.Busy {
		time.Sleep(time.Millisecond) // the tail of the last request
	}
	calls, err := b.countCalls(cloud, front.URL)
	if err != nil {
		return nil, err
	}
	rss, err := residentBytes(f.Stats().Environments[0].PID)
	return append(append(bars, calls...), bar{name: "RSS after the requests above", got: float64(rss) / 1e6, most: 20, unit: "MB"}), err
}

// compare asks the provider and the Function URL in turn.
func (b *bench) compare(direct, front string, size int) (bar, error) {
	body := completion(size)
	var fromProvider, fromFront []time.Duration
	for n := range b.rounds + 20 {
		one, err := ask(direct, body, 0)
		if err != nil {
			return bar{}, err
		}
		two, err := ask(front, body, n%40)
		if err != nil {
			return bar{}, err
		}
		if n >= 20 {
			fromProvider, fromFront = append(fromProvider, one), append(fromFront, two)
		}
	}
	base, own := p50(fromProvider), p50(fromFront)
	return bar{base: base.String(), own: own.String(), got: float64(own-base) / float64(time.Millisecond), most: 2.5, unit: "ms"}, nil
}

func completion(size int) []byte {
	head := []byte(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"`)
	return append(append(head, bytes.Repeat([]byte("word "), size/5)...), `"}]}`...)
}

// ask returns the time to the first byte of an answer.
func ask(base string, body []byte, session int) (time.Duration, error) {
	request, err := http.NewRequest(http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+clientKey)
	request.Header.Set("X-Session-Id", fmt.Sprint("session-", session))
	began := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var one [1]byte
	if _, err := io.ReadFull(response.Body, one[:]); err != nil {
		return 0, err
	}
	took := time.Since(began)
	rest, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || len(rest) < 900) {
		err = fmt.Errorf("answer %d: %s", response.StatusCode, rest)
	}
	return took, err
}

// countCalls counts what requests that follow their pin ask of AWS. They take longer than a
// second, so that the looks at the shared state are among them.
func (b *bench) countCalls(cloud *emulator.Cloud, front string) ([]bar, error) {
	const requests = 100
	body := completion(2 << 10)
	cloud.ResetCalls()
	for n := range requests {
		if _, err := ask(front, body, n%40); err != nil {
			return nil, err
		}
		time.Sleep(30 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // the tail of the last one
	var dynamo, firehose int
	for name, count := range cloud.Calls() {
		switch {
		case bytes.HasPrefix([]byte(name), []byte(emulator.DynamoDB)):
			dynamo += count
		case bytes.HasPrefix([]byte(name), []byte(emulator.Firehose)):
			firehose += count
		}
	}
	return []bar{
		{name: "DynamoDB calls per affine request", got: float64(dynamo) / requests, most: 2},
		{name: "Firehose calls per request", got: float64(firehose) / requests, most: 1},
	}, nil
}

// residentBytes is what a process has in memory; 0 where there is no /proc.
func residentBytes(pid int) (int64, error) {
	if runtime.GOOS != "linux" {
		return 0, nil
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, errors.New("no VmRSS")
	}
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	return kib << 10, err
}
