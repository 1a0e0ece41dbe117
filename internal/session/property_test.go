package session

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"switchboard/internal/wire"
)

// The values of a made-up opening: string, number (its literal), list, object, text (what may
// be spelled as a string or as one part), and literals as number.
type (
	number string
	list   []any
	object map[string]any
	text   string
)

func drawString(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "type", "text", "role", "content", "user", "é", "😀", "\x00", `"\`, "cache_contro"})).Draw(t, label)
}

func drawValue(t *rapid.T, depth int) any {
	most := 4
	if depth <= 0 {
		most = 1
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return drawString(t, "string")
	case 1:
		return number(rapid.SampledFrom([]string{"0", "-1", "1.0", "1", "1e21", "9007199254740993", "true", "false", "null"}).Draw(t, "number"))
	case 2, 3:
		l := list{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			l = append(l, drawValue(t, depth-1))
		}
		return l
	}
	o := object{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		o[drawString(t, "name")] = drawValue(t, depth-1)
	}
	delete(o, "cache_control")
	return o
}

// spell writes a value with spelling that is drawn: white space, escapes, order of members,
// cache_control markers, and whether a text is a string or a part.
type speller struct {
	t *rapid.T
	b strings.Builder
}

func (s *speller) chance(label string) bool {
	return rapid.IntRange(0, 3).Draw(s.t, label) == 0
}

func (s *speller) space() {
	if s.chance("space") {
		s.b.WriteString(rapid.SampledFrom([]string{" ", "\n", "\t", "\r\n  "}).Draw(s.t, "white"))
	}
}

func (s *speller) string(v string) {
	s.b.WriteByte('"')
	for _, r := range v {
		switch {
		case r < ' ' || r == '"' || r == '\\' || s.chance("escape"):
			if r > 0xffff {
				high, low := utf16.EncodeRune(r)
				fmt.Fprintf(&s.b, `\u%04x\u%04X`, high, low)
			} else {
				fmt.Fprintf(&s.b, `\u%04x`, r)
			}
		default:
			s.b.WriteRune(r)
		}
	}
	s.b.WriteByte('"')
}

func (s *speller) value(v any) {
	s.space()
	switch v := v.(type) {
	case string:
		s.string(v)
	case number:
		s.b.WriteString(string(v))
	case text:
		if s.chance("string or part") {
			s.string(string(v))
			break
		}
		kind := rapid.SampledFrom([]string{"text", "input_text"}).Draw(s.t, "type")
		s.value(list{object{"type": kind, "text": string(v)}})
	case list:
		s.b.WriteByte('[')
		for n, e := range v {
			if n > 0 {
				s.b.WriteByte(',')
			}
			s.value(e)
		}
		s.space()
		s.b.WriteByte(']')
	case object:
		s.object(v)
	}
	s.space()
}

func (s *speller) object(v object) {
	names := make([]string, 0, len(v)+1)
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names) // so that a failure can be drawn again
	if s.chance("cache_control") {
		names = append(names, "cache_control")
	}
	names = rapid.Permutation(names).Draw(s.t, "order")
	s.b.WriteByte('{')
	for n, name := range names {
		if n > 0 {
			s.b.WriteByte(',')
		}
		s.space()
		s.string(name)
		s.space()
		s.b.WriteByte(':')
		if name == "cache_control" {
			s.value(object{"type": "ephemeral", "ttl": strconv.Itoa(n)})
		} else {
			s.value(v[name])
		}
	}
	s.space()
	s.b.WriteByte('}')
}

func spell(t *rapid.T, v any) string {
	s := speller{t: t}
	s.value(v)
	return s.b.String()
}

// canonicalOf is the canonical form of a text that must be JSON.
func canonicalOf(t *rapid.T, spelled string) string {
	c := canonical{body: []byte(spelled)}
	end, ok := c.value(wire.Space(c.body, 0))
	if !ok || wire.Space(c.body, end) != len(spelled) {
		t.Fatalf("value(%s) = %d, %v, want all of it", spelled, end, ok)
	}
	if len(c.members) != 0 || c.depth != 0 {
		t.Fatalf("value(%s) leaves %d members, depth %d", spelled, len(c.members), c.depth)
	}
	return string(c.out)
}

func TestCanonicalFormIgnoresSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t, 4)
		one, two := spell(t, v), spell(t, v)
		if a, b := canonicalOf(t, one), canonicalOf(t, two); a != b {
			t.Errorf("canonical forms differ:\n%s -> %q\n%s -> %q", one, a, two, b)
		}
	})
}

func TestCanonicalFormTellsValuesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := drawValue(t, 2), drawValue(t, 2)
		one, two := spell(t, v), spell(t, w)
		if a, b := canonicalOf(t, one), canonicalOf(t, two); (a == b) != reflect.DeepEqual(v, w) {
			t.Errorf("canonical forms:\n%s -> %q\n%s -> %q", one, a, two, b)
		}
	})
}

// TestSID04OpeningIgnoresSpelling generalises case S-SID-04 to any opening and later turns.
func TestSID04OpeningIgnoresSpelling(t *testing.T) {
	i := newIdentifier(t, defaults())
	rapid.Check(t, func(t *rapid.T) {
		opening := object{"model": "m", "system": text("s" + drawString(t, "system")), "tools": list{drawValue(t, 3)}}
		var messages list
		for range rapid.IntRange(0, 3).Draw(t, "before") {
			messages = append(messages, object{"role": "system", "content": text("s" + drawString(t, "system"))})
		}
		messages = append(messages, object{"role": "user", "content": text(drawString(t, "user"))})
		ids := [2]string{}
		for n := range ids {
			turn := object{"model": opening["model"], "system": opening["system"], "tools": opening["tools"]}
			later := append(list{}, messages...)
			for range n {
				later = append(later, object{"role": "assistant", "content": drawValue(t, 1)}, object{"role": "user", "content": text("more")})
			}
			turn["messages"] = later
			r, err := wire.Decode(wire.Operations()[messagesPath], "", nil, []byte(spell(t, turn)))
			if err != nil {
				t.Fatal(err)
			}
			if ids[n] = i.Identify(r, "/a", nil).ID; !strings.HasPrefix(ids[n], "auto-") {
				t.Fatalf("Identify(%s) = %q, want an automatic id", r.Body, ids[n])
			}
		}
		if ids[0] != ids[1] {
			t.Errorf("Identify = %q, want one id", ids)
		}
	})
}

// FuzzIdentify: whatever is sent, an id is valid and the same when it is sent again.
func FuzzIdentify(f *testing.F) {
	f.Add([]byte(hello), "", "", "")
	f.Add([]byte(openingOf(500, 800)), "/a", "x\ty", "s")
	f.Add([]byte(with(`"metadata":{"user_id":"{\"session_id\":\"a\"}"},"conversation":{"id":"c"}`)), "/a", "\xff", "")
	f.Add([]byte(`{"model":"m","input":"hi","previous_response_id":"r"}`), "/a", "", "")
	i := newIdentifier(f, defaults())
	f.Fuzz(func(t *testing.T, body []byte, userPath, header, other string) {
		for path, op := range wire.Operations() {
			r, err := wire.Decode(op, "", map[string][]string{"X-Session-Id": {header, other}, "Session-Id": {other}}, body)
			if err != nil {
				return
			}
			got := i.Identify(r, userPath, nil)
			if again := i.Identify(r, userPath, nil); got != again {
				t.Errorf("%s: Identify = %+v, then %+v, want the same", path, got, again)
			}
			if got == (Identity{}) {
				continue
			}
			if id, ok := valid(got.ID, 200); !ok || id != got.ID {
				t.Errorf("%s: Identify = id %q, want a valid one", path, got.ID)
			}
			if got.Key != Scope(userPath, got.ID) || got.Key == "" || got.Source == "" {
				t.Errorf("%s: Identify = %+v, want key %q and a source", path, got, Scope(userPath, got.ID))
			}
		}
	})
}
