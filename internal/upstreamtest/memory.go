package upstreamtest

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

var _ http.RoundTripper = (*Network)(nil)

// RoundTrip plays a call in memory. Like http.Transport it returns the context's error when
// the caller goes away, and breaks a body that is under way.
func (n *Network) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	reply, err := n.arrive(r, ctx.Done())
	if err == nil {
		err = reply.head(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	header := reply.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	length := reply.length()
	if length >= 0 {
		header.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	status := reply.status()
	reader, writer := io.Pipe()
	body := &body{PipeReader: reader, cancel: cancel}
	stop := context.AfterFunc(ctx, func() { writer.CloseWithError(context.Canceled) })
	body.playing.Go(func() {
		defer stop()
		writer.CloseWithError(reply.play(ctx, func(b []byte) error {
			_, err := writer.Write(b)
			return err
		}))
	})
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: length, Body: body, Request: r,
	}, nil
}

// body ends the script when the caller closes it.
type body struct {
	*io.PipeReader
	cancel  context.CancelFunc
	playing sync.WaitGroup
}

func (b *body) Close() error {
	b.cancel()
	err := b.PipeReader.Close()
	b.playing.Wait()
	return err
}

func (r Reply) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

// head waits until the header is due.
func (r Reply) head(ctx context.Context) error {
	if err := pause(ctx, r.Wait); err != nil {
		return err
	}
	if r.Silent {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.Fail
}

// play writes the body. nil is its regular end.
func (r Reply) play(ctx context.Context, write func([]byte) error) error {
	write, finish := r.encode(write)
	for _, s := range r.Steps {
		if err := pause(ctx, s.Wait); err != nil {
			return err
		}
		if len(s.Bytes) > 0 {
			if err := write(s.Bytes); err != nil {
				return err
			}
		}
		switch {
		case s.Cut:
			return io.ErrUnexpectedEOF
		case s.Hang:
			<-ctx.Done()
			return ctx.Err()
		}
	}
	return finish()
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
