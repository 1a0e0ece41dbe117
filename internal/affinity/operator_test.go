package affinity_test

import (
	"errors"
	"testing"

	"switchboard/internal/affinity"
)

func TestPinQueryChooses(t *testing.T) {
	pin := affinity.Pin{
		Ref: affinity.Ref{SessionKey: "scoped-1", Model: "m"}, UserPath: "/team/alpha", ClientSessionID: "s1",
	}
	for _, tt := range []struct {
		q    affinity.PinQuery
		want bool
	}{
		{affinity.PinQuery{}, true},
		{affinity.PinQuery{SessionKey: "scoped-1", ClientSessionID: "s1", UserPath: "/team/alpha", Model: "m"}, true},
		{affinity.PinQuery{SessionKey: "scoped"}, false},
		{affinity.PinQuery{ClientSessionID: "S1"}, false},
		{affinity.PinQuery{Model: "m2"}, false},
		{affinity.PinQuery{UserPath: "/team"}, true},
		{affinity.PinQuery{UserPath: "/team/"}, true},
		{affinity.PinQuery{UserPath: "/"}, true},
		{affinity.PinQuery{UserPath: "/tea"}, false},
		{affinity.PinQuery{UserPath: "/team/alpha/x"}, false},
		{affinity.PinQuery{UserPath: "/team/%"}, false},
		{affinity.PinQuery{UserPath: "team"}, false},
	} {
		if got := tt.q.Chooses(&pin); got != tt.want {
			t.Errorf("%+v.Chooses() = %v, want %v", tt.q, got, tt.want)
		}
	}
	bare := affinity.Pin{}
	if q := (affinity.PinQuery{UserPath: "/"}); q.Chooses(&bare) {
		t.Error("the root chooses a pin without a path")
	}
}

func TestCursor(t *testing.T) {
	for _, ref := range []affinity.Ref{
		{},
		{SessionKey: "s", Model: "m"},
		{SessionKey: "a\x00b", Model: ""},
		{SessionKey: "", Model: "\xff"},
		{SessionKey: string(make([]byte, 300)), Model: "日本"},
	} {
		if got, err := affinity.ParseCursor(affinity.Cursor(ref)); err != nil || got != ref {
			t.Errorf("ParseCursor(Cursor(%q)) = %q, %v", ref, got, err)
		}
	}
	for _, bad := range []string{"", "!", "AQ", "AA==", "gICAgICAgICAgIA", "_____________w", "BXM", "' OR 1=1 --", "AW1u\n"} {
		if got, err := affinity.ParseCursor(bad); !errors.Is(err, affinity.ErrCursor) {
			t.Errorf("ParseCursor(%q) = %q, %v, want ErrCursor", bad, got, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("AXNt")
	f.Fuzz(func(t *testing.T, cursor string) {
		if ref, err := affinity.ParseCursor(cursor); err == nil && affinity.Cursor(ref) != cursor {
			t.Errorf("ParseCursor(%q) = %q, whose cursor is %q", cursor, ref, affinity.Cursor(ref))
		}
	})
}
