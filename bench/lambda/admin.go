package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"switchboard/internal/audit/audittest"
	"switchboard/internal/emulator"
	"switchboard/internal/functionurl"
)

const (
	adminKey    = "ak-bench-00112233445566778899aabbccddeeff"
	pagedEvents = 10_000
	// perObject is what a delivery stream gathers in a minute of some traffic.
	perObject = 500
)

// coldPages measures how long an operator waits for the first page of a fresh admin function
// with an empty disk, of whose events all are asked for: from exec to the last byte.
func (b *bench) coldPages(ctx context.Context) ([]bar, error) {
	cloud, server, err := account()
	if err != nil {
		return nil, err
	}
	defer server.Close()
	path, err := deliver(cloud)
	if err != nil {
		return nil, err
	}
	env, err := b.routeEnv("admin.yaml", server.URL, "http://127.0.0.1:9")
	if err != nil {
		return nil, err
	}
	env = append(env, "EVENTS_BUCKET=events", "SWITCHBOARD_ADMIN_KEY="+adminKey)
	var took []time.Duration
	for range max(1, b.starts/3) {
		one, err := b.coldPage(ctx, path, env)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	p := p50(took)
	return []bar{{
		name: "cold admin function to the first page over 10,000 events", own: p.Round(time.Millisecond).String(),
		got: p.Seconds(), most: 1, unit: "s",
	}}, nil
}

// deliver puts events into the bucket as Firehose does, and returns the page that is about all
// of them.
func deliver(cloud *emulator.Cloud) (page string, err error) {
	events := audittest.Generate(1, pagedEvents)
	last := audittest.Start()
	for n := 0; n*perObject < len(events); n++ {
		var object bytes.Buffer
		zip := gzip.NewWriter(&object)
		arrival := audittest.Start()
		for i := range events[n*perObject : (n+1)*perObject] {
			e := &events[n*perObject+i]
			if at := time.UnixMilli(e.CreatedAt).UTC(); at.After(arrival) {
				arrival = at
			}
			err = errors.Join(err, json.NewEncoder(zip).Encode(e))
		}
		if arrival.After(last) {
			last = arrival
		}
		name := fmt.Sprintf("%sevents-%d.gz", arrival.Format("events/dt=2006-01-02/hour=15/"), n)
		err = errors.Join(err, zip.Close(), cloud.PutObject("events", name, object.Bytes()))
	}
	return "/admin/?from=" + audittest.Start().Format(time.DateOnly) + "&to=" + last.Format(time.DateOnly), err
}

// coldPage is one start and one page.
func (b *bench) coldPage(ctx context.Context, path string, env []string) (took time.Duration, err error) {
	disk, err := os.MkdirTemp(b.keep, "disk-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(disk)) }()
	f, err := functionurl.Start(ctx, functionurl.Options{
		Bootstrap: b.path("admin/bootstrap"), Env: append(env, "TMPDIR="+disk), Timeout: time.Minute, MemoryMB: 512, Logs: io.Discard,
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	front := httptest.NewServer(f)
	defer front.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+adminKey)
	request.Header.Set("Accept", "text/html")
	began := time.Now() // the process starts when the first request comes
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	page, err := io.ReadAll(response.Body)
	took = time.Since(began)
	if rows := strings.Count(string(page), `<li class="row"`); err == nil && (response.StatusCode != http.StatusOK || rows != 50 || strings.Contains(string(page), "Incomplete")) {
		err = fmt.Errorf("first page: %s, %d rows: %.2000s", response.Status, rows, page)
	}
	return took, err
}
