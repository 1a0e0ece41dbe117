package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"switchboard/internal/virtual"
	"switchboard/internal/wire"
)

// Models is where virtual models are saved.
type Models interface {
	// List is all there is, read now.
	List(ctx context.Context) (virtual.Listing, error)
	// Save makes, replaces or renames one. With virtual.ErrStale the listing is the current one.
	Save(ctx context.Context, c virtual.Change) (virtual.Listing, error)
	// Remove takes one away, under the same rules.
	Remove(ctx context.Context, source string, version int64) (virtual.Listing, error)
}

// maxModelBody bounds the body of one virtual model.
const maxModelBody = 256 << 10

// modelEndpoints are what operators do with virtual models. Names are opaque text: query or
// body values.
func (a *Admin) modelEndpoints() map[string]endpoint {
	return map[string]endpoint{"/admin/virtual-models": {
		http.MethodGet: a.needsModels(a.listModels), http.MethodPut: a.needsModels(a.saveModel), http.MethodDelete: a.needsModels(a.removeModel),
	}}
}

// needsModels answers 503 where none are kept, and what do returns as an error. about is the
// name that it is about.
func (a *Admin) needsModels(do func(w http.ResponseWriter, r *http.Request) (about string, err error)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.Models == nil {
			refuse(w, http.StatusServiceUnavailable, "api_error", "no_virtual_models", "No store of virtual models is configured here.")
			return
		}
		ctx, cancel := withMargin(r.Context())
		defer cancel()
		about, err := do(w, r.WithContext(ctx))
		if err == nil {
			return
		}
		e := modelError(about, err)
		if e.Status == http.StatusServiceUnavailable {
			a.Logger.ErrorContext(ctx, "virtual models fault", slog.Any("cause", err))
		}
		wire.WriteError(w, wire.Chat, e)
	}
}

func modelError(about string, err error) *wire.Error {
	var told *wire.Error
	var field *virtual.FieldError
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &field):
		return badField(field.Field, field.Text)
	case errors.Is(err, virtual.ErrDeclared):
		return &wire.Error{
			Status: http.StatusForbidden, Type: "permission_error", Code: "declared", Param: "source",
			Message: fmt.Sprintf("The configuration declares the virtual model %q, so that it can only be changed there.", about),
		}
	case errors.Is(err, virtual.ErrNotFound):
		return &wire.Error{
			Status: http.StatusNotFound, Type: "not_found_error", Code: "virtual_model_not_found", Param: "source",
			Message: fmt.Sprintf("There is no saved virtual model %q.", about),
		}
	}
	return &wire.Error{
		Status: http.StatusServiceUnavailable, Type: "api_error", Code: "virtual_models_unavailable",
		Message: "The store of virtual models does not answer now; the log says why.", Cause: err,
	}
}

// listModels lists what is declared and what is saved.
func (a *Admin) listModels(w http.ResponseWriter, r *http.Request) (string, error) {
	l, err := a.Models.List(r.Context())
	if err != nil {
		return "", err
	}
	setETag(w, l.Version)
	writeJSON(w, http.StatusOK, l)
	return "", nil
}

func setETag(w http.ResponseWriter, version int64) {
	w.Header()["Etag"] = []string{`"` + strconv.FormatInt(version, 10) + `"`}
}

// saveModel makes, replaces or renames a virtual model. The version, in the body or as
// If-Match, is that of the listing which was edited; without one whatever others have saved
// is accepted.
func (a *Admin) saveModel(w http.ResponseWriter, r *http.Request) (string, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxModelBody))
	if err != nil {
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return "", &wire.Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large", Message: "The request body is too large."}
		}
		return "", badField("body", "could not be read")
	}
	c, err := virtual.ParseChange(body)
	if err != nil {
		return "", err
	}
	if c.Version, err = matched(c.Version, r.Header.Get("If-Match")); err != nil {
		return "", err
	}
	l, err := a.Models.Save(r.Context(), c)
	about := c.Source
	if c.OldSource != "" && errors.Is(err, virtual.ErrNotFound) {
		about = c.OldSource
	}
	if err != nil {
		return about, a.stale(w, l, err)
	}
	a.Logger.InfoContext(r.Context(), "virtual model saved by the operator",
		slog.String("source", c.Source), slog.String("old_source", c.OldSource), slog.Int64("version", l.Version))
	saved, _ := l.Find(c.Source)
	setETag(w, l.Version)
	writeJSON(w, http.StatusOK, map[string]any{"virtual_model": saved, "version": l.Version})
	return "", nil
}

// removeModel takes a saved virtual model away.
func (a *Admin) removeModel(w http.ResponseWriter, r *http.Request) (string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", badField("source", "the query of the URL cannot be read")
	}
	for name, list := range values {
		switch {
		case name != "source" && name != "version":
			return "", badField(name, "is not a parameter here; there are source and version")
		case len(list) > 1:
			return "", badField(name, "is there twice")
		}
	}
	if !values.Has("source") {
		return "", badField("source", "is missing; it is the name of the virtual model")
	}
	version := int64(virtual.AnyVersion)
	if text := values.Get("version"); text != "" {
		if version, err = parseVersion("version", text); err != nil {
			return "", err
		}
	}
	if version, err = matched(version, r.Header.Get("If-Match")); err != nil {
		return "", err
	}
	source := values.Get("source")
	l, err := a.Models.Remove(r.Context(), source, version)
	if err != nil {
		return source, a.stale(w, l, err)
	}
	a.Logger.InfoContext(r.Context(), "virtual model removed by the operator", slog.String("source", source), slog.Int64("version", l.Version))
	setETag(w, l.Version)
	writeJSON(w, http.StatusOK, map[string]any{"removed": source, "version": l.Version})
	return "", nil
}

// matched is the version that an edit is for: as If-Match says, unless something else does.
func matched(version int64, ifMatch string) (int64, error) {
	if ifMatch == "" || ifMatch == "*" {
		return version, nil
	}
	tag, err := parseVersion("If-Match", strings.Trim(strings.TrimPrefix(ifMatch, "W/"), `"`))
	switch {
	case err != nil:
		return 0, err
	case version != virtual.AnyVersion && version != tag:
		return 0, badField("version", "is another than that of If-Match")
	}
	return tag, nil
}

func parseVersion(name, text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, badField(name, "is no version; it is a whole number from 0, as the listing said")
	}
	return int64(n), nil
}

// stale answers an edit that came too late with what there is now; any other error it returns.
func (a *Admin) stale(w http.ResponseWriter, now virtual.Listing, err error) error {
	if !errors.Is(err, virtual.ErrStale) {
		return err
	}
	setETag(w, now.Version)
	writeJSON(w, http.StatusConflict, map[string]any{
		"error": map[string]any{
			"message": fmt.Sprintf("Somebody else has saved in between: the version is %d. Look at it again and repeat with that version.", now.Version),
			"type":    "invalid_request_error", "code": "version_changed", "param": "version",
		},
		"virtual_models": now.Models, "version": now.Version,
	})
	return nil
}
