package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"switchboard/internal/record"
	"switchboard/internal/session"
	"switchboard/internal/upstreamtest"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata/*.txtar")

// TestConversations plays testdata/*.txtar through the whole gateway. The sections of a file
// are carried out in order:
//
//	config.yaml        the configuration; testdata/rig.yaml when there is none
//	rows               pins that are there already, one JSON object a line
//	upstream A/1       what provider A (host a.test) says to its first call; A/* to all others;
//	                   "A sk-…/1" to the first call that carries that key. See upstreamtest.Parse
//	request r0         method and path, @directives, headers, blank line, body. The client's key
//	                   is added unless the request brings one. @cancel 200ms: the client hangs
//	                   up; @times 10: sent ten times; @anonymous: no key
//	want r0            what must have come of it, a line each. See the verbs in want_test.go
//	body r0, event r0  golden: the client's exact bytes; the routing event without ids and times.
//	                   Rewritten by go test -run TestConversations -update
//	wait 30s           time passes
//	restart            a fresh process over the same store
//
// Bodies lose their last newline. {{repeat N x}} stands for N times x.
//
// Each file runs in a bubble of its own time, over memory; again over real sockets, when no
// time has to pass in it; and again as functions/route on Lambda (lambda_test.go).
func TestConversations(t *testing.T) {
	for name, file := range conversations(t) {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				if changed := inBubble(t, archive); changed && *update {
					if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			})
			if !needsTime(archive) {
				t.Run("socket", func(t *testing.T) { playAgain(t, archive, nil, overSocket) })
			}
		})
	}
}

// conversations yields the files by the names of their tests, in order.
func conversations(t *testing.T) iter.Seq2[string, string] {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	return func(yield func(name, file string) bool) {
		for _, file := range files {
			if !yield(strings.TrimSuffix(filepath.Base(file), ".txtar"), file) {
				return
			}
		}
	}
}

var timed = regexp.MustCompile(`(?m)^(@wait|@cancel|@hang|hang|refused|tls|reset|after )`)

func needsTime(a *txtar.Archive) bool {
	for _, f := range a.Files {
		if strings.HasPrefix(f.Name, "wait ") || !strings.HasPrefix(f.Name, "want ") && timed.Match(f.Data) {
			return true
		}
	}
	return false
}

// conversation is a file under way.
type conversation struct {
	t         testing.TB
	network   *upstreamtest.Network
	world     world
	secrets   []string
	excused   map[string]string // not met yet
	scripts   map[string]*upstreamtest.Script
	exchanges map[string]*exchanged
}

// exchanged is a request and what came of it, several times over with @times.
type exchanged struct {
	sent   []byte
	answer *answer // the last one
	all    []*answer
	calls  []upstreamtest.Call
	events []record.Event
}

// playAgain is play in another world than that which golden parts come from.
func playAgain(t testing.TB, archive *txtar.Archive, excused map[string]string, build func(testing.TB, *setting) world) {
	t.Helper()
	if play(t, archive, excused, build) {
		t.Error("golden parts are not as in memory")
	}
}

// play carries out a file in the world that build makes; excused are the expectations that
// cannot hold there, "request: line", each with its reason. changed tells that a golden part
// differs, which is a failure unless it is to be rewritten.
func play(t testing.TB, archive *txtar.Archive, excused map[string]string, build func(testing.TB, *setting) world) (changed bool) {
	yaml := rigYAML(t)
	for _, f := range archive.Files {
		if f.Name == "config.yaml" {
			yaml = string(f.Data)
		}
	}
	s := newSetting(t, yaml)
	c := &conversation{
		t: t, network: s.network, world: build(t, s), secrets: s.secrets, excused: maps.Clone(excused),
		scripts: map[string]*upstreamtest.Script{}, exchanges: map[string]*exchanged{},
	}
	for i := range archive.Files {
		f := &archive.Files[i]
		verb, argument, _ := strings.Cut(f.Name, " ")
		text := expand(f.Data)
		switch verb {
		case "config.yaml":
		case "rows":
			c.rows(text)
		case "upstream":
			c.upstream(argument, text)
		case "request":
			c.request(argument, text)
		case "want":
			c.want(argument, string(text))
		case "body":
			changed = c.golden(f, argument, c.of(argument).answer.body.Bytes()) || changed
		case "event":
			changed = c.golden(f, argument, stable(c.of(argument).events[0])) || changed
		case "wait":
			pause, err := time.ParseDuration(argument)
			if err != nil {
				t.Fatal(err)
			}
			c.world.wait(pause)
		case "restart":
			c.world.restart()
		default:
			t.Fatalf("unknown section %q", f.Name)
		}
	}
	c.keepsSecrets()
	for line := range c.excused {
		t.Errorf("there is no expectation %q to excuse", line)
	}
	return changed
}

var repeats = regexp.MustCompile(`\{\{repeat (\d+) ([^}]+)\}\}`)

func expand(text []byte) []byte {
	return repeats.ReplaceAllFunc(text, func(m []byte) []byte {
		parts := repeats.FindSubmatch(m)
		n, _ := strconv.Atoi(string(parts[1]))
		return bytes.Repeat(parts[2], n)
	})
}

// rows puts pins into the store. Names that are left out: key "1", target_model the model.
func (c *conversation) rows(text []byte) {
	for line := range strings.Lines(string(text)) {
		row := struct {
			Session, Model, Provider, Key, UserPath, TargetModel string
			SwitchCount                                          int64 `json:"switch_count"`
			LastInput                                            int64 `json:"last_input_tokens"`
			ExpiresIn                                            string
		}{Key: "1"}
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&row); err != nil {
			c.t.Fatalf("rows: %s: %v", line, err)
		}
		pin := newPin(session.Scope(row.UserPath, row.Session), row.Model, row.Provider, row.Key, row.SwitchCount)
		pin.ClientSessionID, pin.UserPath, pin.LastInputTokens = row.Session, row.UserPath, row.LastInput
		if row.TargetModel != "" {
			pin.Target.Model = row.TargetModel
		}
		if row.ExpiresIn != "" {
			d, err := time.ParseDuration(row.ExpiresIn)
			if err != nil {
				c.t.Fatal(err)
			}
			pin.ExpiresAt = time.Now().Add(d).UTC().Truncate(time.Second)
		}
		c.world.put(pin)
	}
}

// upstream takes one scripted reply: "A/1", "A/*", "A sk-…/1".
func (c *conversation) upstream(name string, text []byte) {
	who, number, ok := strings.Cut(name, "/")
	provider, credential, _ := strings.Cut(who, " ")
	n, err := strconv.Atoi(number)
	if number == "*" {
		n, err = 0, nil
	}
	if !ok || err != nil {
		c.t.Fatalf("upstream %q: want NAME/NUMBER or NAME/*", name)
	}
	reply, err := upstreamtest.Parse(text)
	if err != nil {
		c.t.Fatalf("upstream %s: %v", name, err)
	}
	if c.scripts[provider] == nil {
		c.scripts[provider] = &upstreamtest.Script{}
		c.network.Set(provider, c.scripts[provider].Answer)
	}
	c.scripts[provider].Set(credential, n, c.world.tempo().script(reply))
}

// request sends what a section says.
func (c *conversation) request(name string, text []byte) {
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	body = bytes.TrimSuffix(body, []byte("\n"))
	lines := strings.Split(strings.TrimSuffix(string(head), "\n"), "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	times, cancelAfter, anonymous := 1, time.Duration(0), false
	var headers []string
	for _, line := range lines[1:] {
		var err error
		directive, argument, _ := strings.Cut(line, " ")
		switch directive {
		case "@times":
			times, err = strconv.Atoi(argument)
		case "@cancel":
			cancelAfter, err = time.ParseDuration(argument)
		case "@anonymous":
			anonymous = true
		default:
			headers = append(headers, line)
		}
		if err != nil {
			c.t.Fatalf("request %s: %s: %v", name, line, err)
		}
	}
	header, err := upstreamtest.ParseHeader(headers)
	if err != nil {
		c.t.Fatalf("request %s: %v", name, err)
	}
	if !anonymous && header.Get("Authorization") == "" && header.Get("X-Api-Key") == "" && header.Get("Api-Key") == "" {
		header.Set("Authorization", "Bearer "+clientKey)
	}
	for name, values := range header {
		for i := range values {
			switch name {
			case "Authorization", "X-Api-Key", "Api-Key", "Cookie":
				c.secrets = append(c.secrets, strings.TrimPrefix(values[i], "Bearer "))
			}
			values[i] = c.world.header(values[i])
		}
		header[name] = values
	}
	x := &exchanged{sent: body}
	calls, events := len(c.network.Calls()), len(c.world.events())
	for range times {
		ctx, cancel := context.WithCancel(context.Background())
		if cancelAfter > 0 {
			time.AfterFunc(cancelAfter, cancel)
		}
		request, err := http.NewRequestWithContext(ctx, method, "http://switchboard.test"+target, bytes.NewReader(body))
		if err != nil {
			c.t.Fatalf("request %s: %v", name, err)
		}
		request.Header = header
		x.all = append(x.all, c.world.do(ctx, request))
		cancel()
	}
	x.answer = x.all[len(x.all)-1]
	x.calls, x.events = c.network.Calls()[calls:], c.world.events()[events:]
	c.exchanges[name] = x
	c.leavesOneEvent(name, method, target, times, x)
}

func (c *conversation) of(name string) *exchanged {
	x := c.exchanges[name]
	if x == nil {
		c.t.Fatalf("no request %q so far", name)
	}
	return x
}

// golden compares a section with got, or rewrites it.
func (c *conversation) golden(f *txtar.File, name string, got []byte) (changed bool) {
	c.t.Helper()
	got = append(bytes.Clone(got), '\n')
	if bytes.Contains(got, []byte("\r")) {
		c.t.Fatalf("body %s has carriage returns, which txtar cannot keep; use want contains", name)
	}
	if bytes.Equal(got, f.Data) {
		return false
	}
	if *update {
		f.Data = got
		return true
	}
	c.t.Errorf("%s:\ngot  %s\nwant %s", f.Name, got, f.Data)
	return false
}

// stable is an event without what differs from run to run.
func stable(e record.Event) []byte {
	e.EventID, e.RequestID, e.CreatedAt, e.LatencyMillis, e.TTFTMillis = "", "", 0, 0, nil
	e.Attempts = append([]record.Attempt(nil), e.Attempts...)
	for i := range e.Attempts {
		e.Attempts[i].LatencyMillis = 0
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return []byte(fmt.Sprint(err))
	}
	return text
}
