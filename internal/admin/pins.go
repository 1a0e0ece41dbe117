package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/audit"
	"switchboard/internal/gateway"
	"switchboard/internal/session"
	"switchboard/internal/wire"
)

// Pins is where pins are kept.
type Pins interface {
	affinity.Store
	affinity.Operator
}

// Router is the data plane, as far as it says what it would do.
type Router interface {
	Explain(ctx context.Context, ask gateway.Ask) gateway.Explanation
	Destination(ctx context.Context, pin *affinity.Pin, want gateway.Target) (gateway.Destination, *wire.Error)
}

const (
	// listBudget is how long a page of pins is filled up where few fit its filter.
	listBudget = 2 * time.Second
	// clearTries bounds how often an unconditional clear looks again at a row that changes.
	clearTries = 5
)

// pinEndpoints are what operators do with pins. Ids are opaque text: query or body values.
func (a *Admin) pinEndpoints() map[string]endpoint {
	return map[string]endpoint{
		"/admin/sessions":     {http.MethodGet: a.needsPins(a.listPins), http.MethodDelete: a.needsPins(a.clearPin)},
		"/admin/sessions/pin": {http.MethodPut: a.needsPins(a.movePin)},
		"/admin/explain":      {http.MethodPost: a.explain},
	}
}

// needsPins answers 503 where no pins are kept, and what do returns as an error.
func (a *Admin) needsPins(do func(w http.ResponseWriter, r *http.Request) error) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.Pins == nil || a.Router == nil {
			refuse(w, http.StatusServiceUnavailable, "api_error", "no_sessions", "No store of sessions is configured here.")
			return
		}
		ctx, cancel := withMargin(r.Context())
		defer cancel()
		err := do(w, r.WithContext(ctx))
		var told *wire.Error
		var conflict *conflictError
		switch {
		case err == nil:
		case errors.As(err, &conflict):
			conflict.write(w)
		case errors.As(err, &told):
			wire.WriteError(w, wire.Chat, told)
		default:
			a.Logger.ErrorContext(ctx, "session store fault", slog.Any("cause", err))
			refuse(w, http.StatusServiceUnavailable, "api_error", "sessions_unavailable", "The store of sessions does not answer now; the log says why.")
		}
	}
}

// conflictError is a pin that is not as who asked has seen it.
type conflictError struct{ now affinity.Pin }

func (*conflictError) Error() string { return "the pin has changed" }

func (e *conflictError) write(w http.ResponseWriter) {
	writeJSON(w, http.StatusConflict, map[string]any{
		"error": map[string]any{
			"message": fmt.Sprintf("The pin has changed: its epoch is %d. Look at it again and repeat with that epoch.", e.now.Epoch),
			"type":    "invalid_request_error", "code": "pin_changed", "param": "epoch",
		},
		"session": e.now.View(),
	})
}

func errNoPin() error {
	return &wire.Error{Status: http.StatusNotFound, Type: "not_found_error", Code: "pin_not_found", Message: "That session has no live pin for that model."}
}

// pinQuery reads the parameters of lists and deletions; cursors may be longer than ids.
func pinQuery(r *http.Request, more ...string) (q query, cursor string) {
	raw := r.URL.RawQuery
	if values, err := url.ParseQuery(raw); err == nil && len(values["cursor"]) == 1 {
		cursor = values.Get("cursor")
		values.Del("cursor")
		raw = values.Encode()
	}
	q = parseQuery(raw, more...)
	values, _ := url.ParseQuery(raw) //nolint:errcheck // parseQuery has told
	for _, name := range []string{"provider", "status", "outcome", "reason", "from", "to"} {
		if values.Has(name) {
			q.fault(name, "is not a parameter here; there are session_id, user_path, user_path_exact, model, "+strings.Join(more, ", "))
		}
	}
	return q, cursor
}

// pinsView is a page of pins.
type pinsView struct {
	Sessions   []affinity.View `json:"sessions"`
	Limit      int             `json:"limit"`
	NextCursor *string         `json:"next_cursor"` // null: this is the last page
}

// listPins lists live pins. A session id with its user path names one session; a user path
// alone is a subtree, unless it is asked to be exact.
func (a *Admin) listPins(w http.ResponseWriter, r *http.Request) error {
	q, cursor := pinQuery(r, "limit", "cursor")
	if err := q.err(); err != nil {
		return err
	}
	view, err := a.pinPage(r.Context(), &q, cursor)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, view)
	return nil
}

// pinPage is a page of the pins that a query chooses.
func (a *Admin) pinPage(ctx context.Context, q *query, cursor string) (*pinsView, error) {
	ask := affinity.PinQuery{UserPath: q.UserPath, Model: q.Model, Limit: q.Limit, Cursor: cursor}
	switch {
	case q.SessionID != "" && (q.UserPath != "" || q.PathOnly):
		ask.SessionKey, ask.UserPath = session.Scope(q.UserPath, q.SessionID), ""
	case q.SessionID != "":
		ask.ClientSessionID = q.SessionID
	}
	view := &pinsView{Sessions: []affinity.View{}, Limit: q.Limit}
	for began := time.Now(); ; {
		page, err := a.Pins.Pins(ctx, ask, time.Now())
		if errors.Is(err, affinity.ErrCursor) {
			q.fault("cursor", "is none of this list; take next_cursor of the page before, with the same filters")
			return nil, q.err()
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Pins {
			if p := &page.Pins[i]; !q.PathOnly || p.UserPath == q.UserPath {
				view.Sessions = append(view.Sessions, p.View())
			}
		}
		if view.NextCursor = nil; page.Next != "" {
			view.NextCursor = &page.Next
		}
		left := q.Limit - len(view.Sessions)
		if page.Next == "" || left <= 0 || time.Since(began) > listBudget {
			break
		}
		ask.Cursor, ask.Limit = page.Next, left
	}
	return view, nil
}

// clearPin deletes the pin of a session and model, if it has the epoch that was asked for.
func (a *Admin) clearPin(w http.ResponseWriter, r *http.Request) error {
	q, _ := pinQuery(r, "epoch")
	for _, needed := range []struct{ name, value string }{{"session_id", q.SessionID}, {"model", q.Model}} {
		if needed.value == "" {
			q.fault(needed.name, "is missing")
		}
	}
	epoch := q.epoch(r.Header.Get("If-Match"))
	if err := q.err(); err != nil {
		return err
	}
	pin, err := a.clear(r.Context(), affinity.Ref{SessionKey: session.Scope(q.UserPath, q.SessionID), Model: q.Model}, epoch)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"cleared": pin.View()})
	return nil
}

// clear deletes a pin that has this epoch; 0: whatever it has.
func (a *Admin) clear(ctx context.Context, ref affinity.Ref, epoch int64) (affinity.Pin, error) {
	for try := 1; ; try++ {
		pin, err := a.lookup(ctx, ref)
		if err != nil {
			return pin, err
		}
		if epoch != 0 && pin.Epoch != epoch {
			return pin, &conflictError{pin}
		}
		switch err := a.Pins.Clear(ctx, pin); {
		case err == nil, errors.Is(err, affinity.ErrNotFound): // gone is what was asked for
			a.Logger.InfoContext(ctx, "pin cleared by the operator", pinAttrs(&pin)...)
			return pin, nil
		case !errors.Is(err, affinity.ErrConflict) || try == clearTries:
			return pin, err
		}
	}
}

// epoch is the condition of a deletion, from the parameter or an entity tag; 0: none.
func (q *query) epoch(ifMatch string) int64 {
	name, value := "epoch", q.Extra["epoch"]
	if value == "" && ifMatch != "" && ifMatch != "*" {
		name, value = "If-Match", strings.Trim(ifMatch, `"`)
	}
	if value == "" {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 || value[0] == '+' {
		q.fault(name, epochRange(quoted(value)))
		return 0
	}
	return n
}

func epochRange(value string) string {
	return fmt.Sprintf("%s is not a whole number from 1 to %d", value, int64(math.MaxInt64))
}

func (a *Admin) lookup(ctx context.Context, ref affinity.Ref) (affinity.Pin, error) {
	pin, err := a.Pins.Lookup(ctx, ref, time.Now())
	if errors.Is(err, affinity.ErrNotFound) {
		return pin, errNoPin()
	}
	return pin, err
}

func pinAttrs(p *affinity.Pin) []any {
	return []any{
		slog.String("session_key", p.SessionKey), slog.String("model_name", p.Ref.Model), slog.String("provider_identity", p.Provider),
		slog.String("key_id", p.KeyID), slog.Int64("epoch", p.Epoch),
	}
}

// movedView is what came of a move.
type movedView struct {
	Session           affinity.View `json:"session"`
	Moved             bool          `json:"moved"`    // false: it was there already
	Switched          bool          `json:"switched"` // the move counted a switch: the pin had served
	SwitchCostNanoUSD *int64        `json:"switch_cost_nano_usd"`
	SwitchCost        *jsonUSD      `json:"switch_cost"` // null: nothing was switched, or no price is known
}

// jsonUSD is nano-USD, which JSON has in US dollars.
type jsonUSD int64

func (n jsonUSD) MarshalJSON() ([]byte, error) { return []byte(audit.USD(int64(n))), nil }

// movePin moves a pin to a target that can serve its model now, if it is as the operator has
// seen it.
func (a *Admin) movePin(w http.ResponseWriter, r *http.Request) error {
	move, err := readMove(w, r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	pin, err := a.lookup(ctx, affinity.Ref{SessionKey: session.Scope(move.UserPath, move.SessionID), Model: move.Model})
	if err != nil {
		return err
	}
	if pin.Epoch != *move.Epoch {
		return &conflictError{pin}
	}
	to, refusal := a.Router.Destination(ctx, &pin, gateway.Target{Provider: move.Provider, KeyID: move.KeyID, Model: move.TargetModel})
	if refusal != nil {
		return refusal
	}
	view := movedView{Session: pin.View()}
	if pin.Same(to.To) {
		writeJSON(w, http.StatusOK, view)
		return nil
	}
	moved, err := a.write(ctx, pin, to)
	switch {
	case errors.Is(err, affinity.ErrConflict):
		return &conflictError{moved}
	case errors.Is(err, affinity.ErrNotFound):
		return errNoPin()
	case err != nil:
		return err
	}
	view.Session, view.Moved, view.Switched = moved.View(), true, moved.SwitchCount > pin.SwitchCount
	if view.Switched && to.SwitchCostNanoUSD != nil {
		view.SwitchCostNanoUSD, view.SwitchCost = to.SwitchCostNanoUSD, (*jsonUSD)(to.SwitchCostNanoUSD)
	}
	a.Logger.InfoContext(ctx, "pin moved by the operator", append(pinAttrs(&moved), slog.Bool("switched", view.Switched))...)
	writeJSON(w, http.StatusOK, view)
	return nil
}

// write moves a pin that has served, which counts, or a claim, which does not.
func (a *Admin) write(ctx context.Context, pin affinity.Pin, to gateway.Destination) (affinity.Pin, error) {
	if !pin.Served {
		return a.Pins.Reassign(ctx, pin, to.To, time.Now(), a.IdleTTL)
	}
	move := affinity.Move{To: to.To, RequestID: "admin-" + rand.Text()}
	if to.SwitchCostNanoUSD != nil {
		move.CostNanoUSD = *to.SwitchCostNanoUSD
	}
	return a.Pins.IncrementSwitch(ctx, pin, move, time.Now(), a.IdleTTL)
}
