package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"switchboard/internal/replay"
)

// eventsReplayCommand puts events back that could not be delivered when they happened.
type eventsReplayCommand struct {
	Files     []string `arg:"" optional:"" name:"file" help:"Logs to read, - or none for standard input."`
	Stream    string   `help:"Firehose delivery stream to put the events into." placeholder:"NAME" xor:"to"`
	SessionDB string   `name:"session-db" help:"SQLite file to put the events into." placeholder:"FILE" xor:"to"`
	DryRun    bool     `help:"Count what is in the logs and put nothing back."`
}

// replayBatch is how many events are put back at a time: what Firehose takes in one call.
const replayBatch = 500

// destination is where events are put back.
type destination interface {
	// put puts events back and says how many are there now that were not before, and how
	// many were, as far as it can know. err says why the others are not.
	put(ctx context.Context, events []replay.Event) (delivered, known int, err error)
	close(ctx context.Context) error
}

// Run reads the logs, puts the events back and says what it has found. It fails when an
// event is not at its destination at the end.
func (c *eventsReplayCommand) Run(ctx context.Context, p process) (err error) {
	run := replayRun{stderr: p.stderr, seen: map[string]bool{}}
	switch {
	case c.DryRun:
	case c.Stream != "":
		run.to, err = openStream(ctx, c.Stream, p)
	case c.SessionDB != "":
		run.to, err = openDatabase(ctx, c.SessionDB, p)
	default:
		return &configError{errors.New("say where the events belong: --stream NAME or --session-db FILE; --dry-run counts them")}
	}
	if err != nil {
		return err
	}
	err = run.all(ctx, c.Files, p.stdin)
	if run.to != nil {
		run.flush(ctx)
		err = errors.Join(err, run.to.close(ctx))
	}
	fmt.Fprintln(p.stdout, run.summary())
	if err == nil && run.lost() > 0 {
		err = fmt.Errorf("%d events are not delivered, %d lines could not be read; keep the logs, replaying them again is harmless", run.waiting, run.unreadable)
	}
	return err
}

// replayRun is one run over all logs.
type replayRun struct {
	to     destination // nil: none, count only
	stderr io.Writer

	seen    map[string]bool // event ids
	pending []replay.Event
	stopped bool // the destination takes nothing any more

	duplicates, unreadable    int
	delivered, known, waiting int
}

func (r *replayRun) lost() int { return r.waiting + r.unreadable }

func (r *replayRun) summary() string {
	text := fmt.Sprintf("found %d events", len(r.seen))
	if r.to != nil {
		text += fmt.Sprintf(", delivered %d, already there %d, not delivered %d", r.delivered, r.known, r.waiting)
	}
	return text + fmt.Sprintf("; %d repeated, %d lines unreadable", r.duplicates, r.unreadable)
}

// all reads every log. One that cannot be read does not keep the others from it.
func (r *replayRun) all(ctx context.Context, files []string, stdin io.Reader) (err error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		err = errors.Join(err, r.file(ctx, name, stdin))
	}
	return err
}

func (r *replayRun) file(ctx context.Context, name string, stdin io.Reader) error {
	if name == "-" {
		return r.log(ctx, "standard input", stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return r.log(ctx, name, f)
}

func (r *replayRun) log(ctx context.Context, name string, log io.Reader) error {
	for event, err := range replay.Lines(log) {
		var line *replay.LineError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &line):
			r.unreadable++
			fmt.Fprintf(r.stderr, "%s:%d: not read: %v\n", name, line.Line, line.Err)
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case r.seen[event.EventID]:
			r.duplicates++
		default:
			r.seen[event.EventID] = true
			r.add(ctx, event)
		}
	}
	return nil
}

func (r *replayRun) add(ctx context.Context, event replay.Event) {
	if r.to == nil {
		return
	}
	r.pending = append(r.pending, event)
	if len(r.pending) == replayBatch {
		r.flush(ctx)
	}
}

// flush puts back what is pending. When a destination has taken nothing of it, it is not
// asked again: the rest is counted.
func (r *replayRun) flush(ctx context.Context) {
	if len(r.pending) == 0 {
		return
	}
	var delivered, known int
	if !r.stopped {
		var err error
		delivered, known, err = r.to.put(ctx, r.pending)
		if err != nil {
			fmt.Fprintln(r.stderr, "switchboard:", err)
		}
		r.stopped = err != nil && delivered+known == 0
	}
	r.delivered += delivered
	r.known += known
	r.waiting += len(r.pending) - delivered - known
	r.pending = nil
}
