package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/virtual"
	"switchboard/internal/wire"
)

const modelsPath = "/admin/ui/virtual-models"

// spareRows are the empty target rows of an editor.
const spareRows = 2

// modelsPage is Virtual Models: the list, and the editor when one is edited.
type modelsPage struct {
	shell
	Models  []virtual.Listed
	Problem string // of what is saved as a whole
	Version int64
	Notice  string
	Trouble string
	Editor  *modelForm
}

// models is the page Virtual Models. edit names one to edit; it is empty for a new one.
func (a *Admin) models(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := withMargin(r.Context())
	defer cancel()
	v, status := a.modelsPage(ctx, r)
	asked := r.URL.Query()
	if v.Trouble == "" && asked.Has("edit") {
		status = v.edit(asked.Get("edit"))
	}
	if name := asked.Get("saved"); name != "" && v.Editor == nil {
		v.Notice = name + " is saved. Every instance uses it within ten seconds."
	}
	if name := asked.Get("removed"); name != "" && v.Editor == nil {
		v.Notice = name + " is removed."
	}
	a.show(w, r, status, "models", v)
}

// modelsPage is the page with the list as it is now.
func (a *Admin) modelsPage(ctx context.Context, r *http.Request) (*modelsPage, int) {
	v := &modelsPage{shell: a.shell(r, "Virtual Models", modelsPath)}
	if a.Models == nil {
		v.Trouble = "No store of virtual models is configured here."
		return v, http.StatusServiceUnavailable
	}
	l, err := a.Models.List(ctx)
	if err != nil {
		e := a.modelFault(ctx, "", err)
		v.Trouble = e.Message
		return v, e.Status
	}
	v.Models, v.Version, v.Problem = l.Models, l.Version, l.Problem
	return v, http.StatusOK
}

func (a *Admin) modelFault(ctx context.Context, about string, err error) *wire.Error {
	e := modelError(about, err)
	if e.Status == http.StatusServiceUnavailable {
		a.Logger.ErrorContext(ctx, "virtual models fault", slog.Any("cause", err))
	}
	return e
}

// edit opens the editor for a saved virtual model, or a new one.
func (v *modelsPage) edit(source string) int {
	if source == "" {
		v.Editor = newModelForm(v.Version)
		return http.StatusOK
	}
	at := slices.IndexFunc(v.Models, func(m virtual.Listed) bool { return m.Source == source })
	switch {
	case at < 0:
		v.Trouble = modelError(source, virtual.ErrNotFound).Message
		return http.StatusNotFound
	case v.Models[at].Declared:
		v.Trouble = modelError(source, virtual.ErrDeclared).Message
		return http.StatusForbidden
	}
	v.Editor = formOf(v.Models[at].Model, v.Version)
	return http.StatusOK
}

// changeModel is a form of the page: it saves, removes, or asks for more rows.
func (a *Admin) changeModel(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := withMargin(r.Context())
	defer cancel()
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil || a.Models == nil {
		v, _ := a.modelsPage(ctx, r)
		v.Trouble = "The form could not be read."
		a.show(w, r, http.StatusBadRequest, "models", v)
		return
	}
	form := readModelForm(r.PostForm)
	var about, verb string
	var l virtual.Listing
	var err error
	switch r.PostForm.Get("do") {
	case "rows":
		form.addRows(spareRows + 1)
		a.showEditor(ctx, w, r, http.StatusOK, form, nil)
		return
	case "remove":
		about, verb = form.OldSource, "removed"
		l, err = a.removeForm(ctx, form)
	default:
		about, verb = form.Source, "saved"
		l, err = a.saveForm(ctx, form)
	}
	if err != nil {
		a.refuseForm(ctx, w, r, form, about, l, err)
		return
	}
	a.Logger.InfoContext(ctx, "virtual model changed on the page", slog.String("source", about), slog.String("verb", verb), slog.Int64("version", l.Version))
	http.Redirect(w, r, address(modelsPath, url.Values{verb: {about}}), http.StatusSeeOther)
}

func (a *Admin) saveForm(ctx context.Context, f *modelForm) (virtual.Listing, error) {
	body, err := f.body()
	if err != nil {
		return virtual.Listing{}, err
	}
	c, err := virtual.ParseChange(body)
	if err != nil {
		return virtual.Listing{}, err
	}
	return a.Models.Save(ctx, c)
}

func (a *Admin) removeForm(ctx context.Context, f *modelForm) (virtual.Listing, error) {
	version, err := parseVersion("version", f.Version)
	if err != nil {
		return virtual.Listing{}, err
	}
	return a.Models.Remove(ctx, f.OldSource, version)
}

// refuseForm shows the form again, with what is wrong at its place.
func (a *Admin) refuseForm(ctx context.Context, w http.ResponseWriter, r *http.Request, f *modelForm, about string, now virtual.Listing, err error) {
	if errors.Is(err, virtual.ErrStale) {
		f.Version, f.Stale = strconv.FormatInt(now.Version, 10), true
		if current, ok := now.Find(f.OldSource); ok {
			f.Current = &current.Model
		}
		a.showEditor(ctx, w, r, http.StatusConflict, f, nil)
		return
	}
	a.showEditor(ctx, w, r, 0, f, a.modelFault(ctx, about, err))
}

func (a *Admin) showEditor(ctx context.Context, w http.ResponseWriter, r *http.Request, status int, f *modelForm, fault *wire.Error) {
	v, _ := a.modelsPage(ctx, r)
	v.Editor = f
	if fault != nil {
		status = fault.Status
		f.place(fault)
	}
	a.show(w, r, status, "models", v)
}

// modelForm is a virtual model as the fields of a form.
type modelForm struct {
	Source, OldSource string // OldSource: the name it has now; empty: it is new
	Version           string // of the list that is being edited
	Strategy          string
	Objective         string // of adaptive alone; whatever it is otherwise
	Affinity, Enabled bool
	Description       string
	UserPaths         string // one a line
	Targets           []targetRow
	Faults            map[string]string // by field; "" is what belongs to none
	Stale             bool              // somebody else has saved in between
	Current           *virtual.Model    // and that is what there is now
	Strategies        []string
	Objectives        []string
}

type targetRow struct{ Model, Weight, Fault string }

func strategies() []string { return []string{"round_robin", "cost", "failover", "adaptive"} }

func objectives() []string { return []string{"balanced", "latency", "cost"} }

func newModelForm(version int64) *modelForm {
	f := formOf(virtual.Model{Affinity: true, Enabled: true, Strategy: "round_robin"}, version)
	f.addRows(1)
	return f
}

func formOf(m virtual.Model, version int64) *modelForm {
	f := &modelForm{
		Source: m.Source, OldSource: m.Source, Version: strconv.FormatInt(version, 10), Strategy: m.Strategy, Affinity: m.Affinity, Enabled: m.Enabled,
		Description: m.Description, UserPaths: strings.Join(m.UserPaths, "\n"), Faults: map[string]string{}, Strategies: strategies(),
		Objective: m.Objective, Objectives: objectives(),
	}
	for _, t := range m.Targets {
		f.Targets = append(f.Targets, targetRow{Model: t.Model, Weight: strconv.Itoa(t.Weight)})
	}
	f.addRows(spareRows)
	return f
}

func readModelForm(values url.Values) *modelForm {
	f := &modelForm{
		Source: strings.TrimSpace(values.Get("source")), OldSource: values.Get("old_source"), Version: values.Get("version"), Strategy: values.Get("strategy"),
		Affinity: values.Has("session_affinity"), Enabled: values.Has("enabled"), Description: values.Get("description"),
		UserPaths: values.Get("user_paths"), Faults: map[string]string{}, Strategies: strategies(),
		Objective: values.Get("objective"), Objectives: objectives(),
	}
	weights := values["target_weight"]
	for i, model := range values["target_model"] {
		if model = strings.TrimSpace(model); model == "" {
			continue // a spare row
		}
		row := targetRow{Model: model}
		if i < len(weights) {
			row.Weight = strings.TrimSpace(weights[i])
		}
		f.Targets = append(f.Targets, row)
	}
	return f
}

func (f *modelForm) addRows(n int) { f.Targets = append(f.Targets, make([]targetRow, n)...) }

// body is the form as the API takes it, so that both are judged alike.
func (f *modelForm) body() ([]byte, error) {
	type target struct {
		Model  string `json:"model"`
		Weight int    `json:"weight"`
	}
	targets := []target{}
	for i, row := range f.Targets {
		weight := 1
		if row.Weight != "" {
			n, err := strconv.Atoi(row.Weight)
			if err != nil {
				return nil, badField("targets["+strconv.Itoa(i)+"].weight", "is not a whole number")
			}
			weight = n
		}
		targets = append(targets, target{row.Model, weight})
	}
	version, err := parseVersion("version", f.Version)
	if err != nil {
		return nil, err
	}
	paths := []string{}
	for line := range strings.Lines(f.UserPaths) {
		if path := strings.TrimSpace(line); path != "" {
			paths = append(paths, path)
		}
	}
	objective := f.Objective // the form always has one
	if f.Strategy != "adaptive" {
		objective = ""
	}
	return json.Marshal(map[string]any{
		"source": f.Source, "old_source": f.OldSource, "version": version, "strategy": f.Strategy, "session_affinity": f.Affinity,
		"enabled": f.Enabled, "description": f.Description, "user_paths": paths, "targets": targets, "objective": objective,
	})
}

// place puts what is wrong to the field that it is about.
func (f *modelForm) place(e *wire.Error) {
	field, _, _ := strings.Cut(e.Param, ".")
	if number, ok := strings.CutPrefix(field, "targets["); ok {
		if i, err := strconv.Atoi(strings.TrimSuffix(number, "]")); err == nil && i >= 0 && i < len(f.Targets) {
			f.Targets[i].Fault = e.Message
			f.addRows(spareRows)
			return
		}
	}
	field, _, _ = strings.Cut(field, "[")
	if !slices.Contains([]string{"source", "strategy", "targets", "user_paths", "description", "objective"}, field) {
		field = ""
	}
	f.Faults[field] = e.Message
	f.addRows(spareRows)
}
