package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/upstreamtest"
)

// want checks a section of expectations, one a line:
//
//	status 200
//	calls A,B                      upstreams in the order they were called; "calls none"
//	header NAME: VALUE             of the client's answer; VALUE "present" is any
//	no header NAME
//	contains TEXT / lacks TEXT     of the client's body; TEXT may be a Go string
//	bytes TEXT                     the client's body is exactly the Go string
//	json PATH VALUE                a member of the client's JSON body, by its path: error.code
//	event PATH=VALUE …             members of the routing event; VALUE "absent"
//	row SESSION MODEL NAME=VALUE … columns of the stored pin
//	no row SESSION MODEL
//	rows N                         pins in the store
//	session ID / session auto      the session's id, and its header
//	session same as r0 / session differs from r0
//	sent 1 same                    the first call has the client's bytes
//	sent 1 contains TEXT / sent 1 header NAME: VALUE / sent 1 no header NAME / sent 1 path PATH
//	within 1s                      the answer did not take longer
//	aborted                        the client saw a broken connection
func (c *conversation) want(name, text string) {
	x := c.of(name)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		problem := c.check(x, line)
		if reason, ok := c.excused[name+": "+line]; ok {
			delete(c.excused, name+": "+line)
			if problem == "" {
				c.t.Errorf("%s: %s holds after all, in spite of: %s", name, line, reason)
			}
			continue
		}
		if problem != "" {
			c.t.Errorf("%s: %s: %s", name, line, problem)
			if strings.HasPrefix(line, "status") {
				c.t.Logf("%s: body: %.600s", name, x.answer.text())
			}
		}
	}
}

func (c *conversation) check(x *exchanged, line string) (problem string) {
	verb, rest, _ := strings.Cut(line, " ")
	a := x.answer
	switch verb {
	case "status":
		for _, a := range x.all {
			if got := strconv.Itoa(a.status); got != rest {
				return "got " + got
			}
		}
	case "calls":
		var names []string
		for _, call := range x.calls {
			names = append(names, call.Upstream)
		}
		if got := strings.Join(names, ","); got != rest && (rest != "none" || got != "") {
			return "got " + got
		}
	case "header":
		return checkHeader(a.sent, rest)
	case "contains", "lacks":
		if strings.Contains(a.text(), unquoted(rest)) != (verb == "contains") {
			return fmt.Sprintf("the body is %.600q", a.text())
		}
	case "bytes":
		if a.text() != unquoted(rest) {
			return fmt.Sprintf("got %q", a.text())
		}
	case "json":
		path, want, _ := strings.Cut(rest, " ")
		return same(a.member(path), want)
	case "event":
		for i := range x.events {
			if problem := checkMembers(x.events[i], rest, c.world.tempo()); problem != "" {
				return problem
			}
		}
		if len(x.events) == 0 {
			return "there is none"
		}
	case "row":
		session, rest, _ := strings.Cut(rest, " ")
		model, columns, _ := strings.Cut(rest, " ")
		row := c.row(unquoted(session), model)
		if row == nil {
			return "there is no such row"
		}
		return checkMembers(row, columns, tempo{})
	case "rows":
		if got := strconv.Itoa(len(c.world.rows())); got != rest {
			return "got " + got
		}
	case "session":
		return c.checkSession(x, rest)
	case "sent":
		number, rest, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(x.calls) {
			return fmt.Sprintf("there were %d calls", len(x.calls))
		}
		return checkSent(x.calls[n-1], x.sent, rest)
	case "within":
		limit, err := time.ParseDuration(rest)
		if err != nil || !c.world.tempo().within(a.took, limit) {
			return fmt.Sprintf("took %v", a.took)
		}
	case "aborted":
		if !a.aborted {
			return "it was not"
		}
	case "no":
		return c.checkNo(x, rest)
	default:
		return "unknown verb"
	}
	return ""
}

func (c *conversation) checkNo(x *exchanged, line string) string {
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "header":
		if values := x.answer.sent.Values(rest); len(values) > 0 {
			return fmt.Sprintf("got %q", values)
		}
	case "row":
		session, model, _ := strings.Cut(rest, " ")
		if row := c.row(unquoted(session), model); row != nil {
			return fmt.Sprintf("there is %v", row)
		}
	default:
		return "unknown verb"
	}
	return ""
}

func (c *conversation) checkSession(x *exchanged, want string) string {
	got := ""
	if len(x.events) > 0 {
		got = x.events[0].SessionID
	}
	if other, ok := strings.CutPrefix(want, "same as "); ok {
		if first := c.of(other).events[0]; first.SessionKey != x.events[0].SessionKey || got == "" {
			return fmt.Sprintf("got %s, %s has %s", got, other, first.SessionID)
		}
		return ""
	}
	if other, ok := strings.CutPrefix(want, "differs from "); ok {
		if first := c.of(other).events[0]; first.SessionKey == x.events[0].SessionKey {
			return "both are " + got
		}
		return ""
	}
	switch {
	case want == "none" && got == "", want == "auto" && strings.HasPrefix(got, "auto-"), got == unquoted(want):
		return ""
	}
	return fmt.Sprintf("got %q", got)
}

func checkSent(call upstreamtest.Call, sent []byte, line string) string {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "same":
		if !bytes.Equal(call.Body, sent) {
			return fmt.Sprintf("upstream got %.600q", call.Body)
		}
	case "contains":
		if !bytes.Contains(call.Body, []byte(unquoted(rest))) {
			return fmt.Sprintf("upstream got %.600q", call.Body)
		}
	case "body":
		if string(call.Body) != unquoted(rest) {
			return fmt.Sprintf("upstream got %.600q", call.Body)
		}
	case "lacks":
		if bytes.Contains(call.Body, []byte(unquoted(rest))) {
			return fmt.Sprintf("upstream got %.600q", call.Body)
		}
	case "header":
		return checkHeader(call.Header, rest)
	case "path":
		if got := strings.TrimSuffix(call.Path+"?"+call.Query, "?"); got != rest {
			return "got " + got
		}
	case "no":
		if values := call.Header.Values(strings.TrimPrefix(rest, "header ")); len(values) > 0 {
			return fmt.Sprintf("got %q", values)
		}
	default:
		return "unknown verb"
	}
	return ""
}

func checkHeader(header http.Header, line string) string {
	name, value, _ := strings.Cut(line, ": ")
	got := strings.Join(header.Values(name), ", ")
	if got == value || unspaced(got) == unspaced(value) || value == "present" && got != "" {
		return ""
	}
	return fmt.Sprintf("got %q", got)
}

// unspaced is a list in one spelling: a Function URL folds a header's lines with a bare comma.
func unspaced(list string) string { return strings.ReplaceAll(list, ", ", ",") }

// checkMembers compares members of a document. Those that are times, _ms, took as long as
// they may at that tempo.
func checkMembers(of any, line string, at tempo) string {
	document, err := json.Marshal(of)
	if err != nil {
		return err.Error()
	}
	for _, pair := range strings.Fields(line) {
		path, value, _ := strings.Cut(pair, "=")
		got := member(document, path)
		if took, ok := got.(float64); ok && strings.HasSuffix(path, "_ms") && at.lasted(took, value) {
			continue
		}
		if problem := same(got, value); problem != "" {
			return path + ": " + problem
		}
	}
	return ""
}

func same(got any, want string) string {
	text := fmt.Sprint(got)
	switch v := got.(type) {
	case nil:
		text = "absent"
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if text != unquoted(want) {
		return "got " + text
	}
	return ""
}

func unquoted(s string) string {
	if strings.HasPrefix(s, `"`) {
		if text, err := strconv.Unquote(s); err == nil {
			return text
		}
	}
	return s
}

// row returns the columns of a session that the client named so, or nil.
func (c *conversation) row(sessionID, model string) map[string]any {
	for _, row := range c.world.rows() {
		if row["model_name"] == model && (row["client_session_id"] == sessionID || row["session_id"] == sessionID) {
			return row
		}
	}
	return nil
}

// columnsOf names a pin's columns as the store's schema does (DESIGN 6).
func columnsOf(p affinity.Pin) map[string]any {
	return map[string]any{
		"session_id": p.SessionKey, "model_name": p.Ref.Model, "client_session_id": p.ClientSessionID, "user_path": p.UserPath,
		"provider_identity": p.Provider, "key_id": p.KeyID, "target_model": p.Target.Model, "api_surface": p.Surface,
		"switch_count": p.SwitchCount, "switch_cost_nano_usd": p.SwitchCostNanoUSD, "is_active": p.Served,
		"total_input_tokens": p.InputTokens, "total_output_tokens": p.OutputTokens, "total_cached_tokens": p.CachedTokens,
		"total_cost_nano_usd": p.CostNanoUSD, "total_requests": p.Requests, "epoch": p.Epoch,
		"assigned_at": p.AssignedAt.Unix(), "last_used_at": p.LastUsedAt.Unix(), "expires_at": p.ExpiresAt.Unix(), "last_input_tokens": p.LastInputTokens,
	}
}
