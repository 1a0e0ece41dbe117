package dynamo

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"switchboard/internal/affinity"
)

// columns of a row, in the order in which a fuzzer damages them.
var columns = [...]string{
	colProvider, colTargetModel, colKeyID, colKeyPrint, colSurface, colUserPath, colClientSession, colAssigned, colUsed, colExpires,
	colInput, colOutput, colCached, colCost, colRequests, colSwitches, colSwitchCost, colEpoch, colSwitchRequest, colActive, colLastInput,
	colUsageToken, colData, colVersion, colWriter, colSession, colSessionSource,
}

// value makes an attribute of any type, and some that the SDK cannot make.
func value(kind byte, s string, depth int) attr {
	switch kind % 12 {
	case 0:
		return text(s)
	case 1:
		return &types.AttributeValueMemberN{Value: s}
	case 2:
		return number(int64(len(s)) - 3)
	case 3:
		return &types.AttributeValueMemberB{Value: []byte(s)}
	case 4:
		return truth(len(s)%2 == 0)
	case 5:
		return &types.AttributeValueMemberNULL{Value: true}
	case 6:
		return &types.AttributeValueMemberSS{Value: []string{s}}
	case 7:
		return &types.AttributeValueMemberBS{Value: [][]byte{[]byte(s)}}
	case 8:
		if depth > 3 {
			return nil
		}
		return &types.AttributeValueMemberL{Value: []attr{value(kind/12, s, depth+1), nil}}
	case 9:
		if depth > 3 {
			return nil
		}
		return &types.AttributeValueMemberM{Value: item{s: value(kind/12, s, depth+1)}}
	case 10:
		return &types.UnknownUnionMember{Tag: s}
	}
	return nil
}

// FuzzItem damages a row: it reads as the pin, or as malformed, and can be logged whole.
func FuzzItem(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	f.Add([]byte{}, "")
	f.Add([]byte{0, 1}, "1.5")
	f.Add([]byte{9, 1, 17, 5, 19, 3}, "x")
	f.Add([]byte{9, 255}, "")
	f.Add([]byte{15, 8, 14, 9}, "9223372036854775808")
	f.Fuzz(func(t *testing.T, damage []byte, s string) {
		ref := affinity.Ref{SessionKey: "s", Model: "m"}
		pin := affinity.Pin{Ref: ref, Target: affinity.Target{Provider: "a"}, ExpiresAt: now.Add(time.Hour).UTC(), AssignedAt: now.UTC(), LastUsedAt: now.UTC(), Epoch: 1}
		raw := pinItem(&pin)
		whole := true
		for i := 0; i+1 < len(damage); i += 2 {
			column := columns[int(damage[i])%len(columns)]
			whole = false
			if damage[i+1] == 255 {
				delete(raw, column)
			} else {
				raw[column] = value(damage[i+1], s, 0)
			}
		}
		got := readRow(ref, raw, now)
		switch {
		case whole && (got.state != rowLive || got.pin != pin):
			t.Errorf("readRow(whole row) = %+v, want %+v", got, pin)
		case got.state == rowMalformed && (got.bad == "" || got.pin != affinity.Pin{}):
			t.Errorf("readRow = %+v, want a malformed row to name its column and be no pin", got)
		case got.state == rowLive && got.pin.ExpiresAt.Unix() <= now.Unix():
			t.Errorf("readRow = %+v, live though it has expired", got)
		case got.state == rowLive && utf8.ValidString(s):
			// What it reads as is what it would be written as.
			if again := readRow(ref, pinItem(&got.pin), now); again.state != rowLive || again.pin != got.pin {
				t.Errorf("readRow(pinItem) = %+v, want %+v", again, got.pin)
			}
		}
		if _, err := json.Marshal(wireForm(raw)); err != nil {
			t.Errorf("the row cannot be logged: %v", err)
		}
		readAlias("r", raw)
		d := (&Store{logger: slog.New(slog.DiscardHandler)}).Document("d")
		if r := d.reading(t.Context(), raw); r.number < 0 || r.number == 0 && r.data != nil {
			t.Errorf("reading = %+v", r)
		}
	})
}

func FuzzKeyText(f *testing.F) {
	f.Add("a", "b")
	f.Add("", hashedKey)
	f.Add("\xff", "\xfe")
	f.Add(strings.Repeat("a", 256), strings.Repeat("a", 257))
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, name := range []string{a, b} {
			if got := keyText(name); got == "" || len(got) > maxKey || !utf8.ValidString(got) {
				t.Errorf("keyText(%q) = %q", name, got)
			}
		}
		if (a == b) != (keyText(a) == keyText(b)) {
			t.Errorf("keyText(%q) = keyText(%q) = %q", a, b, keyText(a))
		}
		if keyText(keyText(a)) == keyText(a) && keyText(a) != a {
			t.Errorf("keyText(%q) stands for itself as well", a)
		}
	})
}
