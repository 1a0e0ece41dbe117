//go:build unix

package gateway_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// excuses are expectations that cannot hold on Lambda, by conversation and "request: line",
// each with its reason. One that holds after all is a failure.
func excuses() map[string]map[string]string {
	return map[string]map[string]string{
		"S-AFF-06_cancelled_is_not_failed": {
			"slow: event attempts.0.error=client_cancelled": "Lambda tells no function that its client has left, so the provider is heard out",
		},
	}
}

// TestConversationsOnLambda plays testdata/*.txtar again through the bootstrap of
// functions/route, in an environment that is frozen between requests, over an AWS on this
// machine. Nothing is left out but what excuses names.
//
// Here time passes by itself. For wait, what is stored is moved into the past. Scripts that
// are silent for longer than a minute, and the limits for that, are sped up.
func TestConversationsOnLambda(t *testing.T) {
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "switchboard/functions/route")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	const atOnce = 4 // of those that wait, which come first
	var all sync.WaitGroup
	defer all.Wait()
	places := make(chan struct{}, atOnce)
	for _, file := range slowFirst(t) {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			t.Run(file.name, func(t *testing.T) { file.onLambda(t, bootstrap) })
		})
	}
}

// onLambda plays a conversation; again if it failed on a machine so busy that the function
// had to do without its store.
func (n namedArchive) onLambda(t *testing.T, bootstrap string) {
	const tries = 4
	for try := 1; ; try++ {
		var l *lambda
		a := &attempt{TB: t}
		a.run(func() {
			playAgain(a, n.archive, excuses()[n.name], func(t testing.TB, s *setting) world {
				l = onLambda(t, s, bootstrap, tempoOf(n.archive))
				return l
			})
		})
		if len(a.failures) == 0 {
			return
		}
		if l == nil || !l.starved() || try == tries {
			t.Error(strings.Join(a.failures, "\n"))
			return
		}
		t.Logf("too busy, attempt %d: %s", try, strings.Join(a.failures, "\n"))
	}
}

// attempt is a test that may be tried again: it keeps its failures to itself.
type attempt struct {
	testing.TB
	failures []string
}

// run calls do, which may end by Fatal.
func (a *attempt) run(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

func (a *attempt) Error(args ...any) { a.failures = append(a.failures, fmt.Sprint(args...)) }

func (a *attempt) Errorf(format string, args ...any) {
	a.failures = append(a.failures, fmt.Sprintf(format, args...))
}

func (a *attempt) Fatal(args ...any) {
	a.Error(args...)
	runtime.Goexit()
}

func (a *attempt) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	runtime.Goexit()
}

type namedArchive struct {
	name    string
	archive *txtar.Archive
	slow    bool
}

func slowFirst(t *testing.T) []namedArchive {
	t.Helper()
	var all []namedArchive
	for name, path := range conversations(t) {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, namedArchive{name, archive, needsTime(archive)})
	}
	slices.SortStableFunc(all, func(a, b namedArchive) int {
		switch {
		case a.slow == b.slow:
			return 0
		case a.slow:
			return -1
		}
		return 1
	})
	return all
}

var silent = regexp.MustCompile(`(?m)^(hang$|@hang$|@wait \d\d)`)

// tempoOf is faster where a script waits for the limits of rig.yaml, which are minutes.
func tempoOf(archive *txtar.Archive) tempo {
	at := tempo{slack: time.Second}
	for _, f := range archive.Files {
		if f.Name == "config.yaml" && strings.Contains(string(f.Data), "timeouts:") {
			return tempo{slack: time.Second}
		}
		if strings.HasPrefix(f.Name, "upstream ") && silent.Match(f.Data) {
			at.faster = 50
		}
	}
	return at
}
