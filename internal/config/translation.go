package config

import (
	"github.com/goccy/go-yaml/ast"

	"switchboard/internal/provider"
	"switchboard/internal/translate"
)

// translation is what the file says of requests that are translated for a provider of another
// surface.
type translation struct {
	enabled   bool
	markers   string // markersAdd, markersKeep
	maxTokens int
	own       map[string]flag // by provider identity
}

// What is done about cache_control in a request that is translated to anthropic-messages.
const (
	markersAdd  = "add"  // it is added to requests that bring none
	markersKeep = "keep" // what the client sends is all
)

func newTranslation() translation {
	return translation{enabled: true, markers: markersAdd, maxTokens: translate.DefaultMaxTokens, own: map[string]flag{}}
}

// readTranslation takes true, false or the object.
func (l *loader) readTranslation(v value) {
	t := &l.translation
	switch l.plain(v.node).(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		l.object(v,
			field{name: "enabled", read: l.boolean(&t.enabled)},
			field{name: "cache_control", read: l.enum(&t.markers, markersAdd, markersKeep)},
			field{name: "max_tokens", read: l.count(&t.maxTokens, 1, 10_000_000)},
		)
	default:
		l.boolean(&t.enabled)(v)
	}
}

// finishTranslation tells the providers; what one says of itself counts.
func (l *loader) finishTranslation() {
	t := &l.translation
	for _, p := range l.cfg.Providers {
		p.Translate = t.own[p.Identity].or(t.enabled)
		p.CacheMarkers, p.TranslatedMaxTokens = t.markers == markersAdd, t.maxTokens
	}
}

// ownTranslation is the key of one provider.
func (l *loader) ownTranslation(p *provider.Provider) func(value) {
	return func(v value) {
		var own flag
		l.flag(&own)(v)
		l.translation.own[p.Identity] = own
	}
}
