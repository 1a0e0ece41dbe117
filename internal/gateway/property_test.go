package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/upstreamtest"
)

// threeProviders serve one model, one of them on two keys.
const threeProviders = `
auth: {keys: [{name: test, sha256: "{{sha256 ck-test-PPPPQQQQRRRRSSSS}}"}]}
providers:
  A: {type: openai, base_url: "http://a.test/v1", api_keys: [{id: a1, key: sk-a-1-AAAABBBB}, {id: a2, key: sk-a-2-CCCCDDDD}], models: [m-oai]}
  B: {type: openai, base_url: "http://b.test/v1", api_keys: [{id: b1, key: sk-b-1-EEEEFFFF}], models: [m-oai]}
  C: {type: openai, base_url: "http://c.test/v1", api_keys: [{id: c1, key: sk-c-1-GGGGHHHH}], models: [m-oai]}
`

// step is a request and how the providers stand when it comes.
type step struct {
	behaviour map[string]int // by credential
	wait      time.Duration
	session   string
	body      string
}

func drawStep(t *rapid.T) step {
	s := step{behaviour: map[string]int{}}
	for _, key := range []string{"sk-a-1-AAAABBBB", "sk-a-2-CCCCDDDD", "sk-b-1-EEEEFFFF", "sk-c-1-GGGGHHHH"} {
		s.behaviour[key] = rapid.SampledFrom([]int{200, 200, 200, 429, 401, 500, 529, 400, 0, -1}).Draw(t, key)
	}
	s.wait = time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
	s.session = rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session")
	s.body = rapid.SampledFrom([]string{chatBody, streamBody}).Draw(t, "body")
	return s
}

// Whatever providers do and however long it takes between requests: a session's pin names
// whoever served it last, a switch is counted when and only when that changes, and a request
// that nobody served changes nothing (S-AFF-01 to S-AFF-04).
func TestPinFollowsWhoServed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 25).Draw(rt, "steps")
		problem := ""
		synctest.Test(t, func(t *testing.T) { problem = follow(t, steps) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// served is what the row of a session should say.
type served struct {
	by       string
	switches int64
}

// follow plays the steps and says what went wrong.
func follow(t *testing.T, steps []step) string {
	r := newRig(t, threeProviders)
	var now step
	for _, name := range []string{"A", "B", "C"} {
		r.network.Set(name, func(c upstreamtest.Call) upstreamtest.Reply { return behave(now.behaviour[c.Credential()]) })
	}
	pins := map[string]served{}
	for i := range steps {
		now = steps[i]
		time.Sleep(now.wait)
		before := len(r.network.Calls())
		a := r.post("/v1/chat/completions", now.body, "X-Session-Id: "+now.session)
		calls, e := r.network.Calls()[before:], r.last(t)
		tried := map[string]bool{}
		for _, c := range calls {
			if tried[c.Credential()] {
				return c.Credential() + " was called twice for one request"
			}
			tried[c.Credential()] = true
		}
		if len(calls) > 4 || len(e.Attempts) != len(calls) {
			return fmt.Sprintf("%d calls, %d attempts in the event", len(calls), len(e.Attempts))
		}
		pin, was := pins[now.session]
		if a.status == 200 {
			by := calls[len(calls)-1].Credential()
			switched := was && pin.by != by
			if switched {
				pin.switches++
			}
			pin.by = by
			pins[now.session], was = pin, true
			if e.Switched != switched {
				return fmt.Sprintf("the event says switched %v, want %v", e.Switched, switched)
			}
		}
		row, is := r.row(now.session, "m-oai")
		if is != was || is && (r.keyText(row.Provider, row.KeyID) != pin.by || row.SwitchCount != pin.switches || !row.Served) {
			return fmt.Sprintf("after %d from %d calls the row is %v %+v, want %v %+v", a.status, len(calls), is, row, was, pin)
		}
		if strings.Contains(a.text(), `"error"`) == (a.status == 200) {
			return fmt.Sprint(a.status, a.text())
		}
	}
	return ""
}

// behave is what a provider does: a status, no answer (0), or an error event (-1).
func behave(how int) upstreamtest.Reply {
	switch how {
	case 200:
		return upstreamtest.JSON(200, chatAnswer)
	case 0:
		return upstreamtest.Reply{Fail: upstreamtest.ErrReset}
	case -1:
		return upstreamtest.Stream(": hi\n\n", "data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\"}}\n\n")
	}
	return upstreamtest.JSON(how, fmt.Sprintf(`{"error":{"message":"status %d"}}`, how))
}
