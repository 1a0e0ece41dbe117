package s3log

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit/audittest"
	"switchboard/internal/record"
)

// line is the JSON of a small event, without a newline.
func line(id string) string {
	return fmt.Sprintf(`{"event_id":%q,"created_at":1772323198000,"request_id":"r","switched":false,"stream":true,"input_tokens":7,"usage_quality":"exact","response_status":200,"outcome":"ok","latency_ms":5,"affinity":"none"}`, id)
}

// readAll reads all events of a stream.
func readAll(t testing.TB, r io.Reader) (events []record.Event, unreadable int64, err error) {
	t.Helper()
	s := newRecords(r, make([]byte, 32)) // so that it has to grow
	for {
		b := newBatch()
		more, err := s.next(b)
		if more != (len(b.events) == 1) {
			t.Fatalf("next = %v with %d events", more, len(b.events))
		}
		if !more {
			return events, s.unreadable, err
		}
		b.seal()
		events = append(events, b.events...)
	}
}

func ids(events []record.Event) string {
	list := make([]string, len(events))
	for i := range events {
		list[i] = events[i].EventID
	}
	return strings.Join(list, " ")
}

// S-AUD-01: what may lie in an object.
func TestSAUD01Records(t *testing.T) {
	a, b, c := line("A"), line("B"), line("C")
	escaped := `{"event_id":"E","created_at":1,"session_id":"a\"}{\"event_id\":\"X\"","affinity":"none"}`
	future := `{"event_id":"F","created_at":1,"new_field":{"deep":[1,2.5e3,"}",null,{"x":[]}]},"stream":true}`
	cut := a[:len(a)/2]
	huge := `{"event_id":"H","created_at":1,"session_id":"` + strings.Repeat("x", 2*maxRecord) + `"}`
	large := `{"event_id":"L","created_at":1,"session_id":"` + strings.Repeat("x", 1000<<10-60) + `"}`
	for _, tt := range []struct {
		name, text, want string
		unreadable       int64
	}{
		{"nothing", "", "", 0},
		{"blank", " \n\r\n\t\n", "", 0},
		{"lines", a + "\n" + b + "\n", "A B", 0},
		{"no newline at the end", a + "\n" + b, "A B", 0},
		{"glued", a + b + c, "A B C", 0},
		{"glued, then lines", a + b + "\n" + c + "\n", "A B C", 0},
		{"spaces between", "  " + a + " \t " + b + "  \n", "A B", 0},
		{"blank lines", "\n\n" + a + "\n\n\n" + b + "\n\n", "A B", 0},
		{"CRLF", a + "\r\n" + b + "\r\n", "A B", 0},
		{"BOM", "\xef\xbb\xbf" + a + "\n" + b, "A B", 0},
		{"BOM alone", "\xef\xbb\xbf", "", 0},
		{"half a BOM", "\xef\xbb", "", 1},
		{"the case itself, object 2", b + c + "\n\n" + `{"event_id":"E4","session_`, "B C", 1},
		{"cut, then lines", cut + "\n" + b + "\n" + c + "\n", "B C", 1},
		{"cut inside of a string", `{"event_id":"E4","session_` + "\n" + b, "B", 1},
		{"cut, then glued", cut + b + "\n" + c, "B C", 1},
		{"cut, then glued, twice", cut + b + cut + c + "\n", "B C", 2},
		{"cut at every end", cut + "\n" + cut + "\n" + cut, "", 3},
		{"cut behind an escape", `{"event_id":"A\` + "\n" + b, "B", 1},
		{"the end of a record", a[20:] + "\n" + b, "B", 1},
		{"cut in a list", `{"event_id":"A","created_at":1,"attempts":[{"provider":"p"},` + "\n" + b + "\n", "B", 1},
		{"garbage lines", "hello\n" + a + "\n\x00\x01\xff\n" + b + "\n]\n", "A B", 3},
		{"garbage in front", "xx" + a + "\n" + b, "A B", 1},
		{"garbage behind", a + "xx\n" + b, "A B", 1},
		{"commas between", a + "," + b + "\n", "A B", 1},
		{"a list", "[" + a + "]\n" + b + "\n", "A B", 2},
		{"other objects", `{"a":1}` + "\n" + a + `{}` + b + "\n" + `{"event_id":""}`, "A B", 3},
		{"no time", `{"event_id":"A"}` + "\n" + `{"event_id":"A","created_at":-5}` + "\n" + `{"event_id":"A","created_at":1e40}` + b, "B", 3},
		{"other types", `{"event_id":7,"created_at":1}` + "\n" + `{"event_id":"A","created_at":"x"}` + b + "\n", "B", 2},
		{"scalars", "7\ntrue\n\"x\"\nnull\n" + a, "A", 4},
		{"text that looks like a record", escaped + a + "\n" + escaped, "E A E", 0},
		{"text that looks like a record, cut", escaped[:60] + "\n" + a, "A", 1},
		{"fields of a later version", future + "\n" + a + future, "F A F", 0},
		{"keys in another case", `{"EVENT_ID":"K","Created_At":3}` + a, "K A", 0},
		{"spread out", `{ "event_id" : "S" , "created_at" : 5 , "attempts" : [ ] , "degraded_providers" : [ "a" , "b" ] }` + a, "S A", 0},
		{"over lines", "{\n\"event_id\":\"S\",\n\"created_at\":5}\n" + a, "A", 3},
		{"a key twice", `{"event_id":"S","event_id":"T","created_at":5}` + a, "T A", 0},
		{"nulls", `{"event_id":"S","created_at":5,"session_id":null,"input_tokens":null,"attempts":null}` + a, "S A", 0},
		{"as large as a record can be", large + "\n" + a, "L A", 0},
		{"a giant line", a + "\n" + huge + "\n" + b + "\n", "A B", 1},
		{"a giant line that goes on", huge + b + "\n" + c, "B C", 1},
		{"a giant line of nothing", strings.Repeat("[", 3*maxRecord) + "\n" + a, "A", 1},
		{"deep", `{"event_id":"D","created_at":1,"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}\n" + a, "A", 1},
		{"many cuts on a line", strings.Repeat(`{"event_id":"`, 1000) + "\n" + a, "A", maxTries},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"whole":      strings.NewReader(tt.text),
				"halves":     iotest.HalfReader(strings.NewReader(tt.text)),
				"with error": iotest.DataErrReader(strings.NewReader(tt.text)),
			} {
				events, unreadable, err := readAll(t, r)
				if got := ids(events); got != tt.want || unreadable != tt.unreadable || err != nil {
					t.Errorf("%s: events = %q, %d unreadable, %v, want %q, %d", how, got, unreadable, err, tt.want, tt.unreadable)
				}
			}
		})
	}
}

// Any way of cutting the bytes gives the same events.
func TestRecordsInPieces(t *testing.T) {
	var text bytes.Buffer
	random := rand.New(rand.NewPCG(7, 7))
	encoder := json.NewEncoder(&text)
	for _, e := range audittest.Generate(1, 200) {
		encoder.Encode(&e)
		switch random.IntN(4) {
		case 0:
			text.Truncate(text.Len() - 1) // glued
		case 1:
			text.Truncate(text.Len() - 40)
			text.WriteString("\n")
		}
	}
	want, unreadable, _ := readAll(t, bytes.NewReader(text.Bytes()))
	if len(want) < 100 || unreadable == 0 {
		t.Fatalf("%d events, %d unreadable: this proves little", len(want), unreadable)
	}
	for range 20 {
		got, n, err := readAll(t, &pieces{text.Bytes(), random})
		if err != nil || n != unreadable {
			t.Fatalf("%d unreadable, %v, want %d", n, err, unreadable)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// pieces yields text in pieces of random length.
type pieces struct {
	text   []byte
	random *rand.Rand
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := min(1+p.random.IntN(300), len(to), len(p.text))
	copy(to, p.text[:n])
	p.text = p.text[n:]
	return n, nil
}

// What could not be read to its end is an error, and no cut record.
func TestRecordsOfABrokenStream(t *testing.T) {
	broken := errors.New("connection reset")
	text := line("A") + "\n" + line("B") + "\n" + line("C")[:50]
	events, unreadable, err := readAll(t, io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)))
	if ids(events) != "A B" || unreadable != 0 || !errors.Is(err, broken) {
		t.Errorf("events = %s, %d unreadable, %v, want A B, 0, %v", ids(events), unreadable, err, broken)
	}
}

// Events are what encoding/json reads.
func TestParseIsEncodingJSON(t *testing.T) {
	for _, e := range append(audittest.Generate(2, 3000), record.Event{
		EventID: "01", CreatedAt: 1, SessionID: "\u2028<\x7f>&é😀", Attempts: make([]record.Attempt, maxAttempts+1), DegradedProviders: make([]string, maxNames+1),
	}) {
		text, err := json.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		var want record.Event
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		got, unreadable, err := readAll(t, bytes.NewReader(text))
		if len(got) != 1 || unreadable != 0 || err != nil {
			t.Fatalf("%s: %d events, %d unreadable, %v", text, len(got), unreadable, err)
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Fatalf("%s: %s", text, diff)
		}
	}
}

// The fast path is taken where recorders write nothing unusual.
func TestParseKnowsRecorders(t *testing.T) {
	for text := range bytes.Lines(eventLines(100)) {
		if n, got := newBatch().parse(text); got != event || n != len(text)-1 {
			t.Fatalf("parse(%s) = %d, %d, want the whole of it", text, n, got)
		}
	}
}

// FuzzParse: what parse takes, encoding/json reads the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		line("A"), line("A") + line("B"), `{"event_id":"a","created_at":-0}`, `{"event_id":"é","created_at":12,"attempts":[{"status":01}]}`,
		`{"event_id":"a","created_at":1 ,"degraded_providers":["x",],"stream":tru`, `{"event_id":"a","created_at":999999999999999999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b := newBatch()
		n, got := b.parse(text)
		if got != event {
			if len(b.events) != 0 || n != 0 {
				t.Fatalf("parse = %d, %d with %d events", n, got, len(b.events))
			}
			return
		}
		b.seal()
		var want record.Event
		if err := json.Unmarshal(text[:n], &want); err != nil {
			t.Fatalf("parse took %q: %v", text[:n], err)
		}
		if diff := cmp.Diff(want, b.events[0]); diff != "" {
			t.Fatalf("%q: %s", text[:n], diff)
		}
	})
}

// FuzzRecords: nothing stops it, whole records on lines of their own are all found, and how
// the bytes come does not matter.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{"", line("A"), line("A")[:60] + line("B"), "{\n", "\xef\xbb\xbf{}", `{"event_id":"A\`, "}{\x00"} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		own := []byte(line("OWN-1") + "\n")
		whole := append(append(append([]byte{}, own...), text...), "\n"...)
		whole = append(whole, own...)
		want, unreadable, err := readAll(t, bytes.NewReader(whole))
		if err != nil || len(want) < 2 || want[0].EventID != "OWN-1" || want[len(want)-1].EventID != "OWN-1" {
			t.Fatalf("%q: events %s, %v", whole, ids(want), err)
		}
		got, n, err := readAll(t, &pieces{whole, rand.New(rand.NewPCG(seed, 0))})
		if err != nil || n != unreadable || !cmp.Equal(want, got) {
			t.Fatalf("in pieces %d unreadable, %v, want %d: %s", n, err, unreadable, cmp.Diff(want, got))
		}
		for _, e := range want {
			if !isEvent(&e) {
				t.Fatalf("%+v is no event", e)
			}
		}
	})
}
