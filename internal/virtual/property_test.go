package virtual_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/mem"
	"switchboard/internal/virtual"
)

// Whatever is saved, renamed, switched off and removed, in whatever order and through
// whatever instance: what was accepted is what is listed, without a problem of its own making;
// no chain leads back or deeper than eight; every name that exists leads somewhere; and a
// refusal has changed nothing.
func TestAnySequenceOfEdits(t *testing.T) {
	sources := []string{"v1", "v2", "v3", "v4", "v5", "m", "A/a"} // the last two hide real ones
	targets := append([]string{"A/m", "B/b", "m", "fixed", "Z/z", "fixed"}, sources...)
	rapid.Check(t, func(t *rapid.T) {
		cell := &mem.Cell{}
		var instances []*virtual.Models
		for range 2 {
			models, err := virtual.New(providers(), declared(), cell, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			instances = append(instances, models)
		}
		oracle := map[string]virtual.Model{}
		version := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"save": func(t *rapid.T) {
				c := virtual.Change{Version: virtual.AnyVersion, Model: virtual.Model{
					Source: rapid.SampledFrom(append(sources, "fixed")).Draw(t, "source"), Affinity: rapid.Bool().Draw(t, "affinity"),
					Strategy: rapid.SampledFrom([]string{"round_robin", "failover", "cost", "quick"}).Draw(t, "strategy"),
					Enabled:  rapid.IntRange(0, 3).Draw(t, "enabled") > 0, UserPaths: []string{}, Targets: []virtual.Target{},
				}}
				for range rapid.IntRange(1, 3).Draw(t, "targets") {
					c.Targets = append(c.Targets, virtual.Target{Model: rapid.SampledFrom(targets).Draw(t, "target"), Weight: 1})
				}
				if rapid.IntRange(0, 4).Draw(t, "rename") == 0 {
					c.OldSource = rapid.SampledFrom(sources).Draw(t, "old source")
				}
				if rapid.Bool().Draw(t, "with version") {
					c.Version = version - int64(rapid.IntRange(0, 1).Draw(t, "behind"))
				}
				_, err := rapid.SampledFrom(instances).Draw(t, "instance").Save(context.Background(), c)
				if err == nil {
					rename(oracle, c)
					version++
				} else if c.Version != virtual.AnyVersion && (c.Version != version) != errors.Is(err, virtual.ErrStale) {
					t.Fatalf("Save of version %d at %d = %v", c.Version, version, err)
				}
			},
			"remove": func(t *rapid.T) {
				source := rapid.SampledFrom(sources).Draw(t, "source")
				if _, err := rapid.SampledFrom(instances).Draw(t, "instance").Remove(context.Background(), source, virtual.AnyVersion); err == nil {
					delete(oracle, source)
					version++
				}
			},
			"": func(t *rapid.T) {
				for _, models := range instances {
					models.Refresh(context.Background(), time.Now().Add(time.Hour))
					l, err := models.List(context.Background())
					if err != nil || l.Version != version || len(l.Models) != len(oracle)+1 {
						t.Fatalf("List = %+v, %v, want version %d of %d", l, err, version, len(oracle)+1)
					}
					for _, m := range l.Models {
						checkListed(t, models, oracle, m)
					}
				}
			},
		})
	})
}

// rename does to the oracle what a save that was accepted does.
func rename(oracle map[string]virtual.Model, c virtual.Change) {
	if c.OldSource != "" && c.OldSource != c.Source {
		delete(oracle, c.OldSource)
		for source, m := range oracle {
			m.Targets = slices.Clone(m.Targets)
			for i := range m.Targets {
				if m.Targets[i].Model == c.OldSource {
					m.Targets[i].Model = c.Source
				}
			}
			oracle[source] = m
		}
	}
	oracle[c.Source] = c.Model
}

func checkListed(t *rapid.T, models *virtual.Models, oracle map[string]virtual.Model, m virtual.Listed) {
	if want, saved := oracle[m.Source]; !m.Declared && (!saved || !slices.Equal(want.Targets, m.Targets) || want.Strategy != m.Strategy || want.Enabled != m.Enabled || want.Affinity != m.Affinity) {
		t.Fatalf("listed %+v, want %+v", m, want)
	}
	if m.Problem != "" && m.Problem != "all of its targets are disabled" {
		t.Fatalf("%s: accepted and has a problem: %s", m.Source, m.Problem)
	}
	if depth := depth(oracle, m.Source, nil); depth > 8 {
		t.Fatalf("%s is %d deep", m.Source, depth)
	}
	leads := goes(models.For(""), m.Source)
	real := m.Hides
	if there := m.Enabled && m.Problem == ""; there != (leads != "-") && !real || leads == "" {
		t.Fatalf("%s (enabled %v, problem %q) leads to %q", m.Source, m.Enabled, m.Problem, leads)
	}
}

// depth follows virtual models down; 99 for a circle.
func depth(oracle map[string]virtual.Model, source string, path []string) int {
	if slices.Contains(path, source) {
		return 99
	}
	deepest := 0
	for _, target := range oracle[source].Targets {
		if _, virtual := oracle[target.Model]; virtual && target.Model != source {
			deepest = max(deepest, depth(oracle, target.Model, append(path[:len(path):len(path)], source)))
		}
	}
	return min(99, deepest+1)
}
