package config

import (
	"errors"
	"slices"
	"strings"

	"switchboard/internal/auth"
	"switchboard/internal/route"
)

func (l *loader) virtualModels(v value) {
	l.list(v, func(_ int, item value) {
		virtual := route.Virtual{Strategy: route.ReasonRoundRobin, Affinity: true}
		sourceAt, enabled := item.at, true
		ok := l.object(item,
			field{name: "source", missing: "the name that clients use", read: func(v value) {
				sourceAt = place{item.at.path + ".source", l.valueAt(v).line, l.valueAt(v).col}
				s, ok := l.text(v)
				if !ok {
					return
				}
				if err := checkName(s); err != nil {
					l.fail(sourceAt, "the model name %v; write for example smart", err)
				}
				virtual.Source = s
			}},
			field{name: "strategy", read: l.enum(&virtual.Strategy,
				route.ReasonRoundRobin, route.ReasonCost, route.ReasonFailover, route.ReasonAdaptive)},
			field{name: "objective", read: l.enum(&virtual.Objective, route.Objectives()...)},
			field{name: "session_affinity", read: l.boolean(&virtual.Affinity)},
			field{name: "targets", missing: "at least one {model: provider/model}", read: l.targets(&virtual)},
			field{name: "user_paths", read: l.userPaths(&virtual)},
			field{name: "description", read: func(v value) { virtual.Description, _ = l.text(v) }},
			field{name: "enabled", read: l.boolean(&enabled)},
		)
		virtual.Disabled = !enabled
		if !ok || virtual.Source == "" {
			return
		}
		if first, twice := l.virtualAt[virtual.Source]; twice {
			l.fail(sourceAt, "%s is defined in line %d already", show(virtual.Source), first.line)
			return
		}
		l.virtualAt[virtual.Source] = sourceAt
		l.cfg.Virtuals = append(l.cfg.Virtuals, virtual)
	})
}

// userPaths reads who may ask for the virtual model: "/" is everybody.
func (l *loader) userPaths(virtual *route.Virtual) func(value) {
	return func(v value) {
		l.list(v, func(_ int, item value) {
			s, ok := l.text(item)
			if !ok {
				return
			}
			path, err := auth.ParseUserPath(s)
			switch {
			case err != nil:
				l.fail(item.at, "%s is %v", show(s), err)
			case s == "":
				l.fail(item.at, `empty; write for example /team/app, or "/" for everybody`)
			case path == "":
				path = "/"
			}
			virtual.UserPaths = append(virtual.UserPaths, path)
		})
	}
}

func (l *loader) targets(virtual *route.Virtual) func(value) {
	return func(v value) {
		ok := l.list(v, func(_ int, item value) {
			target := route.VirtualTarget{Weight: 1}
			if kind(l.plain(item.node)) != "a mapping" {
				l.fail(item.at, "found %s where {model: provider/model, weight: 1} belongs", kind(l.plain(item.node)))
				return
			}
			l.object(item,
				field{name: "model", missing: "provider/model, or another name of yours", read: func(v value) {
					s, ok := l.text(v)
					if err := checkName(s); ok && err != nil {
						l.fail(l.valueAt(v), "the model name %v; write provider/model", err)
					}
					target.Model = s
				}},
				field{name: "weight", read: l.count(&target.Weight, 1, 1000)},
			)
			virtual.Targets = append(virtual.Targets, target)
		})
		if ok && len(virtual.Targets) == 0 && !l.problems.under(v.at.path) {
			l.fail(l.valueAt(v), "empty; write at least one {model: provider/model}")
		}
	}
}

// finishVirtuals has the route package check targets and cycles, and puts its errors where
// the virtual model stands. It names one problem at a time, so the virtual model it
// complains about is replaced by a harmless one and the rest checked again.
func (l *loader) finishVirtuals() {
	if l.problems.under("providers") || l.problems.under("virtual_models") || len(l.cfg.Providers) == 0 {
		return // a target may only be missing because of what is said already
	}
	harmless := l.harmlessTarget()
	virtuals := slices.Clone(l.cfg.Virtuals)
	for range len(virtuals) + 1 {
		_, err := route.NewCatalog(l.cfg.Providers, virtuals)
		if err != nil {
			var fault *route.VirtualError
			i := -1
			if errors.As(err, &fault) {
				i = slices.IndexFunc(virtuals, func(v route.Virtual) bool { return v.Source == fault.Source })
			}
			at := place{path: "virtual_models", line: 1, col: 1}
			if i >= 0 {
				at = l.virtualAt[virtuals[i].Source]
			}
			l.fail(at, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
			if i >= 0 && harmless != "" {
				virtuals[i].Targets = []route.VirtualTarget{{Model: harmless, Weight: 1}}
				virtuals[i].Strategy, virtuals[i].Objective = route.ReasonFailover, ""
				continue
			}
		}
		return
	}
}

func (l *loader) harmlessTarget() string {
	for _, p := range l.cfg.Providers {
		if len(p.Models) > 0 {
			return p.Identity + "/" + p.Models[0].ID
		}
	}
	return ""
}
