package admin

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"switchboard/internal/audit"
)

// pageQuery is the query of a page, and the links from it to what differs in little.
type pageQuery struct {
	query
	path   string
	values url.Values // what the address has, less what chooses a part of the page
	now    time.Time
}

// pageQuery reads the parameters of a page. Without dates it is about the last week, because
// all there is may be much: days chooses another number, or all.
func (a *Admin) pageQuery(raw, path string, more ...string) *pageQuery {
	p := &pageQuery{query: parseQuery(raw, append(more, "days", "limit", "offset", "until")...), path: path, values: url.Values{}, now: time.Now().UTC()}
	given, _ := url.ParseQuery(raw) //nolint:errcheck // parseQuery has said it
	for name, all := range given {
		if len(all) == 1 && all[0] != "" && p.Faults[name] == nil {
			p.values.Set(name, all[0])
		}
	}
	p.values.Del("offset")
	p.values.Del("until")
	days := p.oneOf("days", p.Extra["days"], []string{"1", "7", "30", "all"})
	switch {
	case p.values.Has("from") || p.values.Has("to") || p.Faults["from"] != nil || p.Faults["to"] != nil:
		days = ""
	case days == "":
		days = "7"
	}
	if n, err := strconv.Atoi(days); err == nil {
		p.From = p.now.Truncate(24*time.Hour).AddDate(0, 0, 1-n)
	}
	p.Extra["days"] = days
	return p
}

// link is this page with other parameters, given as names and values; "" takes one away.
func (p *pageQuery) link(pairs ...string) string { return p.to(p.path, pairs...) }

// to is another page with the same parameters but these.
func (p *pageQuery) to(path string, pairs ...string) string {
	values := url.Values{}
	for name, all := range p.values {
		values[name] = all
	}
	for i := 0; i < len(pairs); i += 2 {
		if values.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			values.Del(pairs[i])
		}
	}
	return address(path, values)
}

func address(path string, values url.Values) string {
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// export is the address of what the page shows as a file of the API.
func (p *pageQuery) export(path, format string, paged bool) string {
	values := url.Values{"format": {format}}
	for _, name := range filterNames() {
		if p.values.Has(name) {
			values.Set(name, p.values.Get(name))
		}
	}
	if !p.From.IsZero() && !values.Has("from") {
		values.Set("from", p.From.Format(time.DateOnly))
	}
	if paged {
		values.Set("limit", strconv.Itoa(p.Limit))
		values.Set("offset", strconv.Itoa(p.Offset))
	}
	return address(path, values)
}

// sessionLink is a page about one session, whenever it was: its id and its user path, exactly.
func sessionLink(path, id, userPath string, more ...string) string {
	values := url.Values{"session_id": {id}, "user_path_exact": {"true"}, "days": {"all"}}
	if userPath != "" {
		values.Set("user_path", userPath)
	}
	for i := 0; i < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return address(path, values)
}

// filterForm is the form of the filters, as they are.
type filterForm struct {
	Action    string
	Values    map[string]string // of the fields
	Faults    map[string][]string
	Hidden    map[string]string // what the address has beside
	Outcomes  []string
	Reasons   []string
	Providers []string
	Ranges    []choice
	Active    []choice // filters that are set: what they say, and the page without
	More      bool     // one of the rarer fields is set
	ClearURL  string
	Range     string // the time that the page is about
}

// choice is a link of several.
type choice struct {
	Name, Value, URL string
	Current          bool
}

func (a *Admin) filterForm(p *pageQuery, raw string) filterForm {
	f := filterForm{
		Action: p.path, Values: map[string]string{}, Faults: p.Faults, Hidden: map[string]string{},
		Outcomes: outcomes(), Reasons: reasons(), ClearURL: p.path, Range: p.span(),
	}
	given, _ := url.ParseQuery(raw) //nolint:errcheck // what can be read of it is shown again
	for _, name := range filterNames() {
		if value := given.Get(name); value != "" && readable(value) {
			f.Values[name] = value
		}
	}
	for _, name := range []string{"group", "limit", "days"} {
		if p.values.Has(name) {
			f.Hidden[name] = p.values.Get(name)
		}
	}
	f.More = slices.ContainsFunc([]string{"status", "outcome", "reason", "model", "provider"}, func(n string) bool { return f.Values[n] != "" })
	for _, d := range []choice{{Name: "Today", Value: "1"}, {Name: "7 days", Value: "7"}, {Name: "30 days", Value: "30"}, {Name: "All", Value: "all"}} {
		d.URL, d.Current = p.link("days", d.Value, "from", "", "to", ""), p.Extra["days"] == d.Value
		f.Ranges = append(f.Ranges, d)
	}
	f.Active = p.active()
	for _, provider := range a.Providers {
		f.Providers = append(f.Providers, provider.Identity)
	}
	return f
}

// active are the filters that are set, each with the page without it. A session and its user
// path go together.
func (p *pageQuery) active() (all []choice) {
	names := []string{"session_id", "user_path", "model", "provider", "status", "outcome", "reason"}
	if p.PathOnly && p.SessionID != "" {
		of := p.UserPath
		if of == "" {
			of = "no user path"
		}
		all = append(all, choice{Name: "session", Value: p.SessionID + " (" + of + ")", URL: p.link("session_id", "", "user_path", "", "user_path_exact", "")})
		names = names[2:]
	}
	for _, name := range names {
		if p.values.Has(name) {
			all = append(all, choice{Name: name, Value: p.values.Get(name), URL: p.link(name, "")})
		}
	}
	return all
}

// span says which time the page is about.
func (p *pageQuery) span() string {
	const layout = "2006-01-02 15:04"
	switch {
	case p.Extra["days"] == "1":
		return "today (UTC)"
	case p.Extra["days"] != "" && p.Extra["days"] != "all":
		return "the last " + p.Extra["days"] + " days, today included (UTC)"
	case p.From.IsZero() && p.To.IsZero():
		return "all time"
	case p.To.IsZero():
		return "from " + p.From.Format(layout) + " UTC on"
	case p.From.IsZero():
		return "before " + p.To.Format(layout) + " UTC"
	}
	return p.From.Format(layout) + " to " + p.To.Format(layout) + " UTC"
}

// pager leads to the other pages of a list.
type pager struct {
	First, Last, Total int64
	Prev, Next         string
	Sizes              []choice
}

func (p *pageQuery) pager(shown int, total int64) pager {
	g := pager{Total: total, First: int64(p.Offset) + 1, Last: int64(p.Offset + shown)}
	if shown == 0 {
		g.First = 0
	}
	until := strconv.FormatInt(p.freeze(p.now), 10)
	if p.Offset > 0 {
		g.Prev = p.link("offset", strconv.Itoa(max(0, p.Offset-p.Limit)), "until", until)
	}
	if g.Last < total && shown > 0 {
		g.Next = p.link("offset", strconv.Itoa(p.Offset+shown), "until", until)
	}
	for _, size := range []int{audit.DefaultLimit, 100, audit.MaxLimit} {
		text := strconv.Itoa(size)
		g.Sizes = append(g.Sizes, choice{Name: text, URL: p.link("limit", text), Current: p.Limit == size})
	}
	return g
}
