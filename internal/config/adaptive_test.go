package config

import (
	"strings"
	"testing"
)

const adaptiveProviders = "auth: {mode: none}\nproviders:\n  o: {type: openai, api_keys: [k], models: [m, n]}\n"

func TestAdaptiveIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"": "", ", objective: latency": "latency", ", objective: cost": "cost", ", objective: balanced": "balanced",
	} {
		c := mustLoad(t, adaptiveProviders+"virtual_models: [{source: s, strategy: adaptive, targets: [{model: o/m}, {model: o/n}]"+text+"}]\n")
		if v := c.Virtuals[0]; v.Strategy != "adaptive" || v.Objective != want {
			t.Errorf("%q: strategy %q, objective %q; want adaptive, %q", text, v.Strategy, v.Objective, want)
		}
		if catalog, err := c.Catalog(); err != nil || !catalog.Adaptive() {
			t.Errorf("%q: Catalog() = %v, want one with an adaptive name", text, err)
		}
	}
}

func TestBadObjectives(t *testing.T) {
	for text, want := range map[string]string{
		"strategy: adaptive, objective: speed":   `virtual_models[0].objective: "speed" is not known; one of balanced, latency, cost`,
		"strategy: adaptive, objective: [cost]":  `virtual_models[0].objective:`,
		"strategy: cost, objective: cost":        `it is for adaptive`,
		"objective: latency":                     `means nothing to the strategy round_robin; it is for adaptive`,
		"strategy: adaptive, objectiv: balanced": `did you mean "objective"?`,
	} {
		_, err := loadText(t, adaptiveProviders+"virtual_models: [{source: s, targets: [{model: o/m}], "+text+"}]\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%s) = %v, want %q", text, err, want)
		}
	}
}
