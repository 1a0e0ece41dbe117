package proxy

import (
	"slices"

	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// vendor is the provider's, or one like all others.
func (c *Client) vendor(p *provider.Provider) *provider.Vendor {
	if v := c.vendors[p.Type]; v != nil {
		return v
	}
	return c.unknown
}

// hintOf is where the hint of the session goes; neither a header nor a member: nowhere.
func hintOf(v *provider.Vendor, r *wire.Request, to Target) provider.Hint {
	if to.Hint == "" || !r.Billed {
		return provider.Hint{}
	}
	hint, _ := v.HintFor(r.Surface)
	return hint
}

// withMember adds a member to the edits of a body, unless the client has set it itself: at
// the very beginning, before all other edits.
func withMember(r *wire.Request, edits []wire.Edit, name, value string) []wire.Edit {
	found := false
	wire.Members(r.Body, wire.Span{Start: 0, End: len(r.Body)}, func(key, _ wire.Span) bool {
		found = wire.Is(r.Body, key, name)
		return !found
	})
	if found {
		return edits
	}
	member := wire.AppendQuoted(nil, name)
	member = append(member, ':')
	member = wire.AppendQuoted(member, value)
	if !r.Fields.Empty {
		member = append(member, ',')
	}
	at := r.Fields.FirstMember
	return slices.Insert(edits, 0, wire.Edit{Span: wire.Span{Start: at, End: at}, With: member})
}
