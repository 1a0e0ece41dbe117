package dynamo

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"switchboard/internal/affinity"
)

// Columns of the sessions table (DESIGN 6).
const (
	colSession       = "session_id"
	colModel         = "model_name"
	colProvider      = "provider_identity"
	colTargetModel   = "target_model"
	colKeyID         = "key_id"
	colKeyPrint      = "key_print"
	colSurface       = "api_surface"
	colUserPath      = "user_path"
	colClientSession = "client_session_id"
	colAssigned      = "assigned_at"
	colUsed          = "last_used_at"
	colExpires       = "expires_at"
	colInput         = "total_input_tokens"
	colOutput        = "total_output_tokens"
	colCached        = "total_cached_tokens"
	colCost          = "total_cost_nano_usd"
	colRequests      = "total_requests"
	colSwitches      = "switch_count"
	colSwitchCost    = "switch_cost_nano_usd"
	colEpoch         = "epoch"
	colSwitchRequest = "last_switch_request_id"
	colActive        = "is_active"
	colLastInput     = "last_input_tokens"

	colUsageToken = "usage_token" // makes the newest AddUsage recognisable when it is repeated
	colNameStart  = "model_name_start"
)

type (
	item = map[string]types.AttributeValue
	attr = types.AttributeValue
)

func text(s string) attr { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) attr { return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)} }

func truth(b bool) attr { return &types.AttributeValueMemberBOOL{Value: b} }

func epochSeconds(t time.Time) attr { return number(t.Unix()) }

func pinKey(ref affinity.Ref) item {
	return item{colSession: text(keyText(ref.SessionKey)), colModel: text(keyText(ref.Model))}
}

// pinItem is the whole row of a pin.
func pinItem(p *affinity.Pin) item {
	row := item{
		colSession:       text(keyText(p.SessionKey)),
		colModel:         text(keyText(p.Ref.Model)),
		colProvider:      text(p.Provider),
		colTargetModel:   text(p.Target.Model),
		colKeyID:         text(p.KeyID),
		colKeyPrint:      text(p.KeyPrint),
		colSurface:       text(p.Surface),
		colUserPath:      text(p.UserPath),
		colClientSession: text(p.ClientSessionID),
		colAssigned:      epochSeconds(p.AssignedAt),
		colUsed:          epochSeconds(p.LastUsedAt),
		colExpires:       epochSeconds(p.ExpiresAt),
		colInput:         number(p.InputTokens),
		colOutput:        number(p.OutputTokens),
		colCached:        number(p.CachedTokens),
		colCost:          number(p.CostNanoUSD),
		colRequests:      number(p.Requests),
		colSwitches:      number(p.SwitchCount),
		colSwitchCost:    number(p.SwitchCostNanoUSD),
		colEpoch:         number(p.Epoch),
		colSwitchRequest: text(p.LastSwitchRequestID),
		colActive:        truth(p.Served),
		colLastInput:     number(p.LastInputTokens),
	}
	if keyText(p.Ref.Model) != p.Ref.Model {
		row[colNameStart] = text(opening(p.Ref.Model))
	}
	return row
}

// rowState says what a row is worth.
type rowState int

const (
	rowNone rowState = iota
	rowExpired
	rowMalformed
	rowLive
)

// row is an item as it was read: raw, and judged.
type row struct {
	state rowState
	pin   affinity.Pin
	raw   item
	bad   string // the first malformed column
}

// readRow judges the item of ref at now.
func readRow(ref affinity.Ref, raw item, now time.Time) row {
	if len(raw) == 0 {
		return row{state: rowNone}
	}
	r := reader{raw: raw}
	pin := affinity.Pin{
		Ref: ref,
		Target: affinity.Target{
			Provider: r.text(colProvider, true),
			KeyID:    r.text(colKeyID, false),
			KeyPrint: r.text(colKeyPrint, false),
			Model:    r.text(colTargetModel, false),
			Surface:  r.text(colSurface, false),
		},
		UserPath:            r.text(colUserPath, false),
		ClientSessionID:     r.text(colClientSession, false),
		AssignedAt:          r.time(colAssigned, false),
		LastUsedAt:          r.time(colUsed, false),
		ExpiresAt:           r.time(colExpires, true),
		Served:              r.truth(colActive, true),
		Epoch:               r.number(colEpoch, 1),
		InputTokens:         r.number(colInput, 0),
		OutputTokens:        r.number(colOutput, 0),
		CachedTokens:        r.number(colCached, 0),
		CostNanoUSD:         r.number(colCost, 0),
		Requests:            r.number(colRequests, 0),
		SwitchCount:         r.number(colSwitches, 0),
		SwitchCostNanoUSD:   r.number(colSwitchCost, 0),
		LastInputTokens:     r.number(colLastInput, 0),
		LastSwitchRequestID: r.text(colSwitchRequest, false),
	}
	switch {
	case r.bad != "":
		return row{state: rowMalformed, raw: raw, bad: r.bad}
	case pin.ExpiresAt.Unix() <= now.Unix():
		return row{state: rowExpired, raw: raw}
	}
	return row{state: rowLive, pin: pin, raw: raw}
}

// reader takes typed values out of an item and remembers the first that is not of its type.
// An absent attribute is what the column's default would be: rows written by hand need only
// what matters.
type reader struct {
	raw item
	bad string
}

func (r *reader) fail(column string) {
	if r.bad == "" {
		r.bad = column
	}
}

func (r *reader) text(column string, needed bool) string {
	value, there := r.raw[column]
	if s, ok := value.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	if there || needed {
		r.fail(column)
	}
	return ""
}

func (r *reader) number(column string, absent int64) int64 {
	value, there := r.raw[column]
	if !there {
		return absent
	}
	if n, ok := value.(*types.AttributeValueMemberN); ok {
		if v, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return v
		}
	}
	r.fail(column)
	return 0
}

func (r *reader) time(column string, needed bool) time.Time {
	if _, there := r.raw[column]; needed && !there {
		r.fail(column)
	}
	return time.Unix(r.number(column, 0), 0).UTC()
}

// truth also reads a number, as the column is one in SQLite.
func (r *reader) truth(column string, absent bool) bool {
	value, there := r.raw[column]
	if b, ok := value.(*types.AttributeValueMemberBOOL); ok {
		return b.Value
	}
	if !there {
		return absent
	}
	return r.number(column, 0) != 0
}

// asRead tells whether the pin has not moved since it was read.
func asRead(now, read *affinity.Pin) bool {
	return now.Provider == read.Provider && now.KeyID == read.KeyID && now.KeyPrint == read.KeyPrint && now.Epoch == read.Epoch
}
