package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"switchboard/internal/admin/ui"
	"switchboard/internal/audit"
)

// maxFilledDays bounds for how long a time days without events are drawn.
const maxFilledDays = 400

// usagePage is Usage Analytics.
type usagePage struct {
	shell
	Filters  filterForm
	Totals   usageRow
	Sessions int64
	Days     []dayRow
	Charts   []ui.Chart
	Groups   []groupRow
	Recent   []sessionRow
	Pager    pager
	Coverage coverageNote
	Exports  []export
	Trouble  string
}

// export is what a part of a page is as a file.
type export struct{ Name, CSV, JSON string }

// usageRow is usage with what pages show of it.
type usageRow struct {
	audit.Usage
}

// Tokens are all tokens.
func (u usageRow) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// Cost is what is known of the cost; nil: nothing is.
func (u usageRow) Cost() *int64 { return knownCost(u.Usage, u.CostNanoUSD) }

// InputCost is Cost of the input.
func (u usageRow) InputCost() *int64 { return knownCost(u.Usage, u.InputCostNanoUSD) }

// OutputCost is Cost of the output.
func (u usageRow) OutputCost() *int64 { return knownCost(u.Usage, u.OutputCostNanoUSD) }

// Partial tells whether there is a cost that is not in Cost.
func (u usageRow) Partial() bool { return u.Unpriced > 0 && u.Cost() != nil }

func knownCost(u audit.Usage, nano int64) *int64 {
	if !costKnown(u, nano) {
		return nil
	}
	return &nano
}

type dayRow struct {
	usageRow
	Date, URL string
}

type groupRow struct {
	usageRow
	Model, Provider, URL string
}

type sessionRow struct {
	usageRow
	SessionID, UserPath string
	LastUsedAt          int64
	ChipURL, LogURL     string
}

// usage is the page Usage Analytics.
func (a *Admin) usage(w http.ResponseWriter, r *http.Request) {
	p := a.pageQuery(r.URL.RawQuery, usagePath, "again")
	v := usagePage{shell: a.shell(r, "Usage Analytics", usagePath), Filters: a.filterForm(p, r.URL.RawQuery)}
	a.page(w, r, v.shell, func(ctx context.Context) content {
		status := http.StatusOK
		var err error
		if a.trouble(ctx, &p.query, nil) == nil {
			err = a.fillUsage(ctx, p, &v)
		}
		if t := a.trouble(ctx, &p.query, err); t != nil {
			status, v.Trouble = t.Status, t.Message
		}
		return content{status, "usage", v}
	})
}

func (a *Admin) fillUsage(ctx context.Context, p *pageQuery, v *usagePage) error {
	var summary audit.Summary
	var daily audit.Days
	var sessions audit.SessionUsages
	err := together(
		func() (err error) { summary, err = a.Reader.Summary(ctx, p.Filter); return err },
		func() (err error) { daily, err = a.Reader.Daily(ctx, p.Filter); return err },
		func() (err error) { sessions, err = a.Reader.Sessions(ctx, p.Filter, p.Page); return err },
	)
	if err != nil {
		return err
	}
	v.Totals, v.Sessions = usageRow{summary.Usage}, summary.Sessions
	for _, d := range filledDays(daily.Days, p.From, p.To) {
		v.Days = append(v.Days, dayRow{usageRow{d.Usage}, d.Date, p.link("from", d.Date, "to", d.Date, "days", "")})
	}
	v.Charts = charts(v.Days)
	for _, g := range summary.Groups {
		v.Groups = append(v.Groups, groupRow{usageRow{g.Usage}, g.Model, g.Provider, p.link("model", g.Model, "provider", g.Provider)})
	}
	for _, s := range sessions.Entries {
		v.Recent = append(v.Recent, sessionRow{
			usageRow{s.Usage},
			s.SessionID, s.UserPath, s.LastUsedAt,
			p.link("session_id", s.SessionID, "user_path", s.UserPath, "user_path_exact", "true"), sessionLink(homePath, s.SessionID, s.UserPath),
		})
	}
	v.Pager = p.pager(len(sessions.Entries), sessions.Total)
	v.Coverage = p.coverage(least(summary.Coverage, daily.Coverage, sessions.Coverage))
	for _, e := range []struct {
		name, path string
		paged      bool
	}{{"Sessions", "/admin/usage/sessions", true}, {"Days", "/admin/usage/daily", false}, {"Models", "/admin/usage/summary", false}} {
		v.Exports = append(v.Exports, export{e.name, p.export(e.path, "csv", e.paged), p.export(e.path, "json", e.paged)})
	}
	return nil
}

// together asks several questions at a time, because one may take seconds. A panic of one is
// an error, as it would end the process beside the handler.
func together(questions ...func() error) error {
	errs := make([]error, len(questions))
	var all sync.WaitGroup
	for i, ask := range questions {
		all.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					errs[i] = fmt.Errorf("panic: %v", cause)
				}
			}()
			errs[i] = ask()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// least is the coverage of a page that was built from several answers.
func least(all ...audit.Coverage) audit.Coverage {
	c := all[0]
	for _, other := range all[1:] {
		if other.AsOf.Before(c.AsOf) {
			c.AsOf = other.AsOf
		}
		if other.Since.After(c.Since) {
			c.Since = other.Since
		}
		c.Complete = c.Complete && other.Complete
		c.Unreadable = max(c.Unreadable, other.Unreadable)
		c.Pending = max(c.Pending, other.Pending)
	}
	return c
}

// filledDays adds the days without events, from the first that is asked for or has events to
// the last, so that a chart's axis is time.
func filledDays(days []audit.Day, from, to time.Time) []audit.Day {
	if len(days) == 0 {
		return nil
	}
	first, err := time.Parse(time.DateOnly, days[0].Date)
	last, err2 := time.Parse(time.DateOnly, days[len(days)-1].Date)
	if err != nil || err2 != nil {
		return days
	}
	if !from.IsZero() && from.Before(first) {
		first = from.Truncate(24 * time.Hour)
	}
	if end := to.Add(-time.Nanosecond); !to.IsZero() && end.After(last) {
		last = end.Truncate(24 * time.Hour)
	}
	if last.Sub(first) > maxFilledDays*24*time.Hour {
		return days
	}
	var all []audit.Day
	for at := first; !at.After(last); at = at.AddDate(0, 0, 1) {
		day := audit.Day{Date: at.Format(time.DateOnly)}
		if len(days) > 0 && days[0].Date == day.Date {
			day, days = days[0], days[1:]
		}
		all = append(all, day)
	}
	return all
}

func charts(days []dayRow) []ui.Chart {
	if len(days) == 0 {
		return nil
	}
	n := len(days)
	labels := make([]string, n)
	cached, fresh, output, cost := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, d := range days {
		labels[i] = d.Date
		cached[i], fresh[i], output[i], cost[i] = d.CachedInputTokens, d.InputTokens-d.CachedInputTokens, d.OutputTokens, d.CostNanoUSD
	}
	return []ui.Chart{
		ui.NewChart("Tokens per day", labels, ui.Compact,
			ui.Series{Name: "cached input", Class: "s-cached", Values: cached},
			ui.Series{Name: "other input", Class: "s-fresh", Values: fresh},
			ui.Series{Name: "output", Class: "s-output", Values: output}),
		ui.NewChart("Known cost per day", labels, ui.USD, ui.Series{Name: "cost", Class: "s-cost", Values: cost}),
	}
}
