package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"switchboard/internal/auth"
	"switchboard/internal/gateway"
	"switchboard/internal/wire"
)

const (
	maxMoveBody    = 64 << 10
	maxExplainBody = 34 << 20 // a request of the data plane's default limit, and what is around it
)

// pinMove is the body of a move.
type pinMove struct {
	SessionID   string `json:"session_id"`
	UserPath    string `json:"user_path"`
	Model       string `json:"model"`
	Provider    string `json:"provider"`
	KeyID       string `json:"key_id"`
	TargetModel string `json:"target_model"`
	Epoch       *int64 `json:"epoch"`
}

func readMove(w http.ResponseWriter, r *http.Request) (pinMove, error) {
	var m pinMove
	if err := readJSON(w, r, maxMoveBody, &m); err != nil {
		return m, err
	}
	for _, field := range []struct {
		name, value string
		needed      bool
	}{
		{"session_id", m.SessionID, true},
		{"model", m.Model, true},
		{"provider", m.Provider, true},
		{"key_id", m.KeyID, false},
		{"target_model", m.TargetModel, false},
	} {
		switch {
		case field.needed && field.value == "":
			return m, badField(field.name, "is missing")
		case !readable(field.value):
			return m, badField(field.name, "is not text of at most 1024 bytes without control characters")
		}
	}
	switch {
	case m.Epoch == nil:
		return m, badField("epoch", "is missing; it is the epoch of the pin as you have seen it, a whole number from 1")
	case *m.Epoch < 1:
		return m, badField("epoch", epochRange("it"))
	}
	path, err := auth.ParseUserPath(m.UserPath)
	if err != nil {
		return m, badField("user_path", "is "+err.Error())
	}
	m.UserPath = path
	return m, nil
}

// explainRequest is the body of a question: a request as it would be sent.
type explainRequest struct {
	Method   string                     `json:"method"`
	Path     string                     `json:"path"`
	Headers  map[string]json.RawMessage `json:"headers"`
	Body     json.RawMessage            `json:"body"`
	UserPath *string                    `json:"user_path"`
}

// explain says what the data plane would do with a request. It calls and writes nothing.
func (a *Admin) explain(w http.ResponseWriter, r *http.Request) {
	if a.Router == nil {
		refuse(w, http.StatusServiceUnavailable, "api_error", "no_router", "No data plane is configured here.")
		return
	}
	var asked explainRequest
	err := readJSON(w, r, maxExplainBody, &asked)
	var ask gateway.Ask
	if err == nil {
		ask, err = asked.ask()
	}
	if err != nil {
		wire.WriteError(w, wire.Chat, err)
		return
	}
	ctx, cancel := withMargin(r.Context())
	defer cancel()
	writeJSON(w, http.StatusOK, a.Router.Explain(ctx, ask))
}

func (e *explainRequest) ask() (gateway.Ask, *wire.Error) {
	ask := gateway.Ask{Method: e.Method, Path: e.Path, Header: http.Header{}}
	if !strings.HasPrefix(e.Path, "/") {
		return ask, badField("path", `is not a path like "/v1/chat/completions"`)
	}
	for name, value := range e.Headers {
		values, ok := texts(value)
		if !ok {
			return ask, badField("headers", quoted(name)+" is neither a string nor a list of strings")
		}
		for _, v := range values {
			ask.Header.Add(name, v)
		}
	}
	switch body := bytes.TrimSpace(e.Body); {
	case len(body) == 0 || string(body) == "null":
	case body[0] == '{':
		ask.Body = body
	case body[0] == '"':
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			return ask, badField("body", "is not a string")
		}
		ask.Body = []byte(text)
	default:
		return ask, badField("body", "is neither an object nor a string")
	}
	if e.UserPath != nil {
		path, err := auth.ParseUserPath(*e.UserPath)
		if err != nil {
			return ask, badField("user_path", "is "+err.Error())
		}
		ask.UserPath = &path
	}
	return ask, nil
}

func texts(value json.RawMessage) ([]string, bool) {
	var one string
	if json.Unmarshal(value, &one) == nil && len(value) > 0 && value[0] == '"' {
		return []string{one}, true
	}
	var all []*string
	if json.Unmarshal(value, &all) != nil || slices.Contains(all, nil) {
		return nil, false
	}
	var list []string
	for _, s := range all {
		list = append(list, *s)
	}
	return list, true
}

// readJSON reads a body that is one JSON object with known fields.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, into any) *wire.Error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, after := decoder.Token(); !errors.Is(after, io.EOF) {
			return badField("body", "has something behind its object")
		}
		return nil
	}
	var large *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &large):
		return &wire.Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large", Message: "The request body is too large."}
	case errors.As(err, &kind) && kind.Field != "":
		return badField(kind.Field, "is a "+kind.Value+", not "+wantedKind(kind))
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		name := strings.TrimPrefix(err.Error(), "json: unknown field ")
		return badField(strings.Trim(name, `"`), "is not a field here")
	}
	return badField("body", "is not one JSON object")
}

func wantedKind(e *json.UnmarshalTypeError) string {
	switch e.Type.String() {
	case "int64":
		return "a whole number from 1 to 9223372036854775807"
	case "string":
		return "a string"
	}
	return "an object"
}

func badField(name, text string) *wire.Error {
	if !readable(name) || len(name) > 60 {
		name = quoted(name)
	}
	return &wire.Error{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_parameter", Param: name, Message: name + ": " + text + ".",
	}
}
