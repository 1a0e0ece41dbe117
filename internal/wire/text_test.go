package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestMembersAndElements(t *testing.T) {
	body := []byte(`[ {"a" : 1, "b":[2,{"c":3}]} ,"x",[ ] , {}]`)
	whole, ok := Value(body, 0)
	if !ok || whole.End != len(body) {
		t.Fatalf("Value = %v, %v, want all", whole, ok)
	}
	var elements, members []string
	if !Elements(body, whole, func(v Span) bool {
		elements = append(elements, string(v.Of(body)))
		return Members(body, v, func(key, value Span) bool {
			members = append(members, string(key.Of(body))+"="+string(value.Of(body)))
			return true
		}) || true
	}) {
		t.Error("Elements = false, want true")
	}
	if diff := cmp.Diff([]string{`{"a" : 1, "b":[2,{"c":3}]}`, `"x"`, `[ ]`, `{}`}, elements); diff != "" {
		t.Errorf("Elements (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`"a"=1`, `"b"=[2,{"c":3}]`}, members); diff != "" {
		t.Errorf("Members (-want +got):\n%s", diff)
	}
}

func TestElementsReadsNoFurtherThanAsked(t *testing.T) {
	body := []byte(`[1,2,broken`)
	n := 0
	if !Elements(body, Span{0, len(body)}, func(Span) bool { n++; return n < 2 }) {
		t.Error("Elements = false, want true: it was stopped before the fault")
	}
	if Elements(body, Span{0, len(body)}, func(Span) bool { return true }) {
		t.Error("Elements = true, want false")
	}
}

func TestMembersAndElementsOfOtherThings(t *testing.T) {
	for _, text := range []string{``, `1`, `"x"`, `{`, `[`, `[1`, `[1,`, `[,1]`, `[1 2]`, `[1,]`, `{"a"}`, `{"a":1,}`, `{"a":1 "b":2}`, `{1:2}`} {
		span := Span{0, len(text)}
		if Members([]byte(text), span, func(_, _ Span) bool { return true }) {
			t.Errorf("Members(%s) = true, want false", text)
		}
		if Elements([]byte(text), span, func(Span) bool { return true }) {
			t.Errorf("Elements(%s) = true, want false", text)
		}
	}
	if Members([]byte("{}"), Span{}, nil) || Elements([]byte("[]"), Span{}, nil) {
		t.Error("Members, Elements of an absent span = true, want false")
	}
}

func TestStringAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range []string{
		`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\u4f1a\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`,
		`"\ude00"`, `"\u0000"`, `"é会😀"`, `"\uFFFF\uAbCd"`, `"\u007f"`, `"\\u0041"`,
		`"\x"`, `"\u"`, `"\u123"`, `"\u123g"`, `"\U0041"`, `"\ud83d\u12"`,
	} {
		var want string
		wantOK := json.Unmarshal([]byte(text), &want) == nil
		got, ok := String([]byte(text), Span{0, len(text)})
		if ok != wantOK || (ok && got != want) {
			t.Errorf("String(%s) = %q, %v, want %q, %v", text, got, ok, want, wantOK)
		}
		if ok && !Is([]byte(text), Span{0, len(text)}, want) {
			t.Errorf("Is(%s, %q) = false, want true", text, want)
		}
		if Is([]byte(text), Span{0, len(text)}, want+"x") {
			t.Errorf("Is(%s, %q) = true, want false", text, want+"x")
		}
		appended, ok := AppendString([]byte("x"), []byte(text), Span{0, len(text)})
		if ok && string(appended) != "x"+want {
			t.Errorf("AppendString(x, %s) = %q, want %q", text, appended, "x"+want)
		}
	}
	for _, text := range []string{`1`, `{}`, `null`, `"`} {
		if got, ok := String([]byte(text), Span{0, len(text)}); ok {
			t.Errorf("String(%s) = %q, true, want false", text, got)
		}
	}
}

func TestAppendQuotedRoundTrips(t *testing.T) {
	for _, text := range []string{"", "m", `a"b\c`, "\x00\x01\x1f\x7f\n\t", "é会😀\u2028", "bad\xffutf8", "</script>&", "a/b:c"} {
		quoted := AppendQuoted(nil, text)
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Errorf("AppendQuoted(%q) = %s: %v", text, quoted, err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); got != want || !utf8.Valid(quoted) {
			t.Errorf("AppendQuoted(%q) reads back as %q, want %q", text, got, want)
		}
	}
}
