package translate

import (
	"strconv"
	"strings"
)

// thinking is how much a model is asked to reason, in Anthropic's words.
type thinking struct {
	on     bool
	raw    value  // the client's own object, passed as it came
	budget int    // tokens; 0: the model decides, guided by effort
	effort string // low, medium, high, xhigh, max; empty: not said
}

// minBudget is the least that Anthropic takes.
const minBudget = 1024

// budgetOf is what an effort means for models that want a number of tokens.
func budgetOf(effort string) int {
	switch effort {
	case "minimal":
		return minBudget
	case "low":
		return 2048
	case "medium":
		return 8192
	case "high":
		return 16384
	}
	return thinkingRoom // xhigh, max
}

// effortOf is the effort that a budget stands for.
func effortOf(budget int) string {
	switch {
	case budget <= 4096:
		return "low"
	case budget <= 12288:
		return "medium"
	}
	return "high"
}

// thinkingOfChat reads reasoning_effort, OpenRouter's reasoning, or Anthropic's own thinking
// which LiteLLM's clients send.
func (r *request) thinkingOfChat(f *chatFields) (t thinking) {
	if f.thinking.isObject() {
		t.raw, t.on = f.thinking, !f.thinking.get("type").is("disabled")
		return t
	}
	asked, field := f.effort, "reasoning_effort"
	if !asked.found() && f.reasoning.isObject() {
		asked, field = f.reasoning.get("effort"), "reasoning"
	}
	effort := string(asked.text())
	budget := number(f.reasoning.get("max_tokens"))
	if effort == "" && f.reasoning.get("enabled").isTrue() {
		effort = "medium"
	}
	switch effort {
	case "minimal", "low", "medium", "high", "xhigh", "max":
	case "", "none":
		if budget == 0 || effort == "none" {
			return t
		}
	default:
		r.refuse(field, "none, minimal, low, medium, high or xhigh belongs here.")
		return t
	}
	model := claudeOf(r.modelName(f.model))
	switch {
	case f.forced():
		r.drop(field) // Anthropic does not think when it must call a tool
	case model.atLeast(4, 6):
		t.on, t.effort = true, effortFor(model, effort, budget)
	case !r.canResume(f.messages):
		r.drop(field)
	default:
		if budget == 0 {
			budget = budgetOf(effort)
		}
		t = r.fitted(f, max(budget, minBudget), field)
	}
	return t
}

func effortFor(model claude, effort string, budget int) string {
	switch {
	case effort == "":
		return effortOf(budget)
	case effort == "minimal":
		return "low"
	case effort == "xhigh" && !model.atLeast(4, 7):
		return "high"
	}
	return effort
}

// fitted makes the budget fit under the client's limit, of which it is a part.
func (r *request) fitted(f *chatFields, budget int, field string) (t thinking) {
	limit := f.maxCompletion
	if !limit.found() {
		limit = f.maxTokens
	}
	if n := number(limit); limit.found() && budget >= n {
		budget = n / 2
	}
	if budget < minBudget {
		r.drop(field)
		return t
	}
	return thinking{on: true, budget: budget}
}

// canResume tells whether a model that thinks by budget can go on from the last turn: in the
// middle of its tool calls it wants its own thinking back, which many clients do not keep.
func (r *request) canResume(messages value) bool {
	resumes := true
	for _, m := range messages.elements() {
		switch role := m.get("role"); {
		case role.is("user"):
			resumes = true
		case role.is("assistant"):
			resumes = m.get("tool_calls").size() == 0 || hasThinking(m)
		}
	}
	return resumes
}

func (r *request) writeThinking(t thinking) {
	switch {
	case t.raw.found():
		r.key("thinking")
		r.value(t.raw)
	case t.budget > 0:
		r.key("thinking")
		r.open('{')
		r.word("type", "enabled")
		r.key("budget_tokens")
		r.number(int64(t.budget))
		r.shut('}')
	case t.on:
		r.json(`"thinking":{"type":"adaptive"}`)
	}
}

// number is a whole number, 0 when it is none.
func number(v value) int {
	n, err := strconv.Atoi(string(v.raw()))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func hasThinking(m value) bool {
	if m.get("thinking_blocks").size() > 0 {
		return true
	}
	for _, detail := range m.get("reasoning_details").elements() {
		if restorable(detail) {
			return true
		}
	}
	return false
}

// restorable tells whether a reasoning detail holds what Anthropic wants back: a signed text,
// or data that only it can read.
func restorable(detail value) bool {
	kind := detail.get("type")
	return kind.is("reasoning.text") && len(detail.get("signature").inner()) > 0 ||
		kind.is("reasoning.encrypted") && len(detail.get("data").inner()) > 0
}

// reasoningBlocks puts an assistant's thinking back as it came, out of what its client has
// kept: thinking_blocks (as we and LiteLLM send them) or reasoning_details (OpenRouter).
// Reasoning without a signature cannot be put back.
func (r *request) reasoningBlocks(m value) {
	blocks := m.get("thinking_blocks")
	if blocks.size() > 0 {
		for _, b := range blocks.elements() {
			r.thinkingBlock(b.get("type").is("redacted_thinking"), b.get("thinking"), b.get("signature"), b.get("data"))
		}
		return
	}
	restored := false
	for _, d := range m.get("reasoning_details").elements() {
		if restorable(d) {
			restored = true
			r.thinkingBlock(d.get("type").is("reasoning.encrypted"), d.get("text"), d.get("signature"), d.get("data"))
		}
	}
	if !restored && (!m.get("reasoning_content").empty() || m.get("reasoning_details").size() > 0) {
		r.drop("messages[].reasoning_content")
	}
}

func (r *request) thinkingBlock(redacted bool, text, signature, data value) {
	if redacted && !data.isText() || !redacted && len(signature.inner()) == 0 {
		r.drop("messages[].thinking_blocks")
		return
	}
	r.block("assistant")
	r.open('{')
	if redacted {
		r.word("type", "redacted_thinking")
		r.key("data")
		r.value(data)
	} else {
		r.word("type", "thinking")
		r.key("thinking")
		r.inner(text.inner())
		r.key("signature")
		r.value(signature)
	}
	r.shut('}')
}

// claude is the version that a model's name says. The zero claude is no such model.
type claude struct{ major, minor int }

func (c claude) atLeast(major, minor int) bool {
	return c.major > major || c.major == major && c.minor >= minor
}

// claudeOf reads a name such as claude-opus-4-6, claude-3-5-sonnet-20241022 or
// anthropic/claude-sonnet-4.5: its first two small numbers. What a model takes depends on
// it, and nothing else says so.
func claudeOf(model string) (c claude) {
	_, rest, ok := strings.Cut(strings.ToLower(model), "claude")
	if !ok {
		return claude{}
	}
	found := 0
	for _, part := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("-./@:_ ", r) }) {
		n, err := strconv.Atoi(part)
		switch {
		case err != nil && found == 0:
			continue
		case err != nil || n >= 100:
			return c
		case found == 0:
			c.major = n
		default:
			c.minor = n
			return c
		}
		found++
	}
	return c
}
