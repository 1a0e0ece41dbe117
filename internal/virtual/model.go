package virtual

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/auth"
	"switchboard/internal/route"
)

// Limits of what is stored: the document is one item of DynamoDB, which every instance reads.
const (
	maxModels      = 1000
	maxTargets     = 100
	maxUserPaths   = 100
	maxWeight      = 1000
	maxDescription = 1000      // bytes
	maxDocument    = 256 << 10 // bytes
)

// Model is a virtual model as operators see it. The names are GoModel's.
type Model struct {
	Source      string   `json:"source"`
	Targets     []Target `json:"targets"`
	Strategy    string   `json:"strategy"`
	Objective   string   `json:"objective,omitempty"` // of adaptive alone
	Affinity    bool     `json:"session_affinity"`
	UserPaths   []string `json:"user_paths"` // who may ask for it, with all below; none: everybody
	Description string   `json:"description"`
	Enabled     bool     `json:"enabled"`
}

// Target is provider/model, a plain model or another virtual model.
type Target struct {
	Model  string `json:"model"`
	Weight int    `json:"weight"` // 1 to 1000
}

// FieldError is an edit that cannot be accepted, and where in it the fault lies.
type FieldError struct {
	Field string // targets[1].model
	Text  string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Text }

// Change is an edit as an operator sends it.
type Change struct {
	Model
	OldSource string // the name it had; empty: Source
	Version   int64  // of the listing that was edited, or AnyVersion
}

// AnyVersion accepts whatever others have saved in between.
const AnyVersion = -1

// written is a virtual model as it is sent and stored: what is not there has its default.
type written struct {
	Source      string          `json:"source"`
	OldSource   string          `json:"old_source"`
	TargetModel *string         `json:"target_model"`
	Targets     []writtenTarget `json:"targets"`
	Strategy    string          `json:"strategy"`
	Objective   string          `json:"objective"`
	Affinity    *bool           `json:"session_affinity"`
	UserPaths   []string        `json:"user_paths"`
	Description string          `json:"description"`
	Enabled     *bool           `json:"enabled"`
	Version     *int64          `json:"version"`

	// What a listing says of it may come back, and means nothing.
	Declared json.RawMessage `json:"declared"`
	Hides    json.RawMessage `json:"hides_model"`
	Problem  json.RawMessage `json:"problem"`
}

type writtenTarget struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Weight   *int   `json:"weight"`
}

// ParseChange reads an edit from JSON. Unknown fields are refused: a typo in enabled must not
// go unseen. Its error is a *FieldError.
func ParseChange(body []byte) (Change, error) {
	var w written
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&w); err != nil {
		return Change{}, jsonError(err)
	}
	if decoder.More() {
		return Change{}, &FieldError{"body", "there is something after the JSON object"}
	}
	model, err := w.model()
	if err != nil {
		return Change{}, err
	}
	c := Change{Model: model, OldSource: w.OldSource, Version: AnyVersion}
	if w.Version != nil {
		if c.Version = *w.Version; c.Version < 0 {
			return Change{}, &FieldError{"version", "it is 0 or more, as the listing said"}
		}
	}
	return c, nil
}

// jsonError names the field that a decoder's error is about.
func jsonError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field := kind.Field
		if field == "" {
			field = "body"
		}
		return &FieldError{field, fmt.Sprintf("a %s does not belong there", kind.Value)}
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
		return &FieldError{strings.Trim(name, `"`), "there is no such field"}
	}
	return &FieldError{"body", "not a JSON object"}
}

// model checks what can be checked of a virtual model alone, and fills in defaults.
func (w *written) model() (Model, error) {
	m := Model{
		Source: w.Source, Strategy: w.Strategy, Objective: w.Objective, Description: w.Description, Targets: []Target{}, UserPaths: []string{},
		Affinity: w.Affinity == nil || *w.Affinity, Enabled: w.Enabled == nil || *w.Enabled,
	}
	if m.Strategy == "" {
		m.Strategy = route.ReasonRoundRobin
	}
	if m.Strategy == route.ReasonAdaptive && m.Objective == "" {
		m.Objective = route.ObjectiveBalanced
	}
	if err := route.CheckName(m.Source); err != nil {
		return m, &FieldError{"source", fmt.Sprintf("the name %v; write for example smart", err)}
	}
	switch {
	case w.TargetModel != nil && len(w.Targets) > 0:
		return m, &FieldError{"target_model", "there are targets as well; send one of the two"}
	case w.TargetModel != nil:
		if err := route.CheckName(*w.TargetModel); err != nil {
			return m, &FieldError{"target_model", fmt.Sprintf("the name %v; write provider/model", err)}
		}
		m.Targets = append(m.Targets, Target{*w.TargetModel, 1})
	case len(w.Targets) > maxTargets:
		return m, &FieldError{"targets", fmt.Sprintf("%d of them; the most is %d", len(w.Targets), maxTargets)}
	}
	for i, t := range w.Targets {
		target, err := t.target(fmt.Sprintf("targets[%d].", i))
		if err != nil {
			return m, err
		}
		m.Targets = append(m.Targets, target)
	}
	if len(m.Targets) == 0 {
		return m, &FieldError{"targets", `empty; send at least one {"model": "provider/model"}, or target_model`}
	}
	return m, m.setUserPaths(w.UserPaths)
}

func (t *writtenTarget) target(field string) (Target, error) {
	made := Target{Model: t.Model, Weight: 1}
	if t.Provider != "" {
		made.Model = t.Provider + "/" + t.Model
	}
	if err := route.CheckName(t.Model); err != nil {
		return made, &FieldError{field + "model", fmt.Sprintf("the name %v; write provider/model", err)}
	}
	if err := route.CheckName(made.Model); err != nil {
		return made, &FieldError{field + "provider", fmt.Sprintf("the name %v", err)}
	}
	if t.Weight != nil {
		made.Weight = *t.Weight
	}
	if made.Weight < 1 || made.Weight > maxWeight {
		return made, &FieldError{field + "weight", fmt.Sprintf("%d is out of range; 1 to %d", made.Weight, maxWeight)}
	}
	return made, nil
}

// setUserPaths checks the last fields of a model.
func (m *Model) setUserPaths(paths []string) error {
	if len(paths) > maxUserPaths {
		return &FieldError{"user_paths", fmt.Sprintf("%d of them; the most is %d", len(paths), maxUserPaths)}
	}
	for i, text := range paths {
		path, err := auth.ParseUserPath(text)
		switch {
		case err != nil:
			return &FieldError{fmt.Sprintf("user_paths[%d]", i), "it is " + err.Error()}
		case text == "":
			return &FieldError{fmt.Sprintf("user_paths[%d]", i), `it is empty; write for example /team/app, or "/" for everybody`}
		case path == "":
			path = "/"
		}
		if !slices.Contains(m.UserPaths, path) {
			m.UserPaths = append(m.UserPaths, path)
		}
	}
	switch {
	case len(m.Description) > maxDescription:
		return &FieldError{"description", fmt.Sprintf("%d bytes; the most is %d", len(m.Description), maxDescription)}
	case strings.ContainsFunc(m.Description, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return &FieldError{"description", "it has a control character"}
	}
	return nil
}

// virtual is the model as routing takes it.
func (m *Model) virtual() route.Virtual {
	v := route.Virtual{
		Source: m.Source, Strategy: m.Strategy, Objective: m.Objective, Affinity: m.Affinity, UserPaths: m.UserPaths,
		Description: m.Description, Disabled: !m.Enabled,
	}
	for _, t := range m.Targets {
		v.Targets = append(v.Targets, route.VirtualTarget(t))
	}
	return v
}

// modelOf is a declared virtual model as operators see it.
func modelOf(v *route.Virtual) Model {
	m := Model{
		Source: v.Source, Strategy: v.Strategy, Objective: v.Objective, Affinity: v.Affinity, Description: v.Description, Enabled: !v.Disabled,
		Targets: []Target{}, UserPaths: append([]string{}, v.UserPaths...),
	}
	if m.Strategy == "" {
		m.Strategy = route.ReasonRoundRobin
	}
	if m.Strategy == route.ReasonAdaptive && m.Objective == "" {
		m.Objective = route.ObjectiveBalanced
	}
	for _, t := range v.Targets {
		m.Targets = append(m.Targets, Target{t.Model, max(1, t.Weight)})
	}
	return m
}
