package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"switchboard/internal/gateway"
)

// printExplanation writes an explanation for people.
func printExplanation(w io.Writer, e *gateway.Explanation) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = plain(cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	row("request", requestText(&e.Request))
	row("session", sessionText(&e.Request))
	row("pin", pinText(e))
	row("decision", e.DecisionReason)
	row("writes", writesText(e))
	if e.Refusal != nil {
		row("refused", fmt.Sprintf("%d %s: %s", e.Refusal.Status, e.Refusal.Code, e.Refusal.Message))
	}
	if len(e.Candidates) > 0 {
		fmt.Fprintln(table)
		row("place", "provider", "key", "model", "billing", "estimate", "note")
		for i := range e.Candidates {
			c := &e.Candidates[i]
			row(placeText(c, e.MaxAttempts), c.Provider, c.KeyID, c.Model, c.BillingModel, costText(c), noteText(c))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	text.WriteString("\nHere every provider counts as healthy and every rotation begins: what a running switchboard\nhas learned is in its own memory. Ask that one: POST /admin/explain.\n")
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// plain keeps text from outside from being more than text in a terminal or a table.
func plain(s string) string {
	quoted := strconv.Quote(s)
	if inside := quoted[1 : len(quoted)-1]; inside != s {
		return strings.ReplaceAll(inside, `\"`, `"`)
	}
	return s
}

func requestText(r *gateway.RequestFacts) string {
	text := r.Method + " " + r.Path
	if r.RequestedModel == "" {
		return text
	}
	text += fmt.Sprintf(", model %s, about %d input tokens", r.RequestedModel, r.EstimatedInputTokens)
	if r.Stream {
		text += ", streamed"
	}
	return text
}

func sessionText(r *gateway.RequestFacts) string {
	text := "none"
	if r.SessionID != "" {
		text = r.SessionID + ", from " + r.SessionSource
	}
	if r.UserPath != "" {
		text += ", of " + r.UserPath
	}
	if r.PreviousResponse != nil {
		text += ", continues a response at " + targetText(*r.PreviousResponse)
	}
	return text
}

func pinText(e *gateway.Explanation) string {
	p := e.Pin
	switch {
	case p == nil && e.Affinity == "unknown":
		return "unknown: the store did not answer"
	case p == nil:
		return "none"
	}
	text := fmt.Sprintf("%s, epoch %d, %d requests, %d switches, last used %s",
		targetText(gateway.Target{Provider: p.Provider, KeyID: p.KeyID, Model: p.TargetModel}), p.Epoch, p.TotalRequests, p.SwitchCount, p.LastUsedAt.Format(time.RFC3339))
	switch {
	case !p.Usable:
		return text + "; not used: its provider or key is not configured"
	case !p.Followed:
		return text + "; not followed"
	}
	return text
}

func targetText(t gateway.Target) string {
	if t.KeyID == "" {
		return t.Provider + " " + t.Model
	}
	return t.Provider + " key " + t.KeyID + " " + t.Model
}

func writesText(e *gateway.Explanation) string {
	var texts []string
	for i := range e.Writes {
		w := &e.Writes[i]
		text := w.Write + " " + targetText(w.Target) + " at the first output"
		if w.When == gateway.BeforeCall {
			text = w.Write + " " + targetText(w.Target) + " before the call"
		}
		if w.SwitchCost != nil {
			text += " (cold cache: $" + w.SwitchCost.String() + ")"
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

func placeText(c *gateway.Candidate, most int) string {
	switch {
	case c.Place == 0:
		return "out"
	case c.Place > most:
		return fmt.Sprintf("(%d)", c.Place)
	}
	return strconv.Itoa(c.Place)
}

func costText(c *gateway.Candidate) string {
	if c.EstimatedCost == nil {
		return "---"
	}
	return "$" + c.EstimatedCost.String()
}

func noteText(c *gateway.Candidate) string {
	var notes []string
	if c.Reason != "" {
		notes = append(notes, c.Reason)
	}
	if c.Pinned {
		notes = append(notes, "pin")
	}
	if c.TranslatedTo != "" {
		notes = append(notes, "translated to "+c.TranslatedTo)
	}
	if h := c.Health; h != nil {
		text := h.State + ": " + h.Reason
		if h.RetryAt != nil {
			text += " until " + h.RetryAt.Format(time.RFC3339)
		}
		notes = append(notes, text)
	}
	return strings.Join(notes, ", ")
}
