package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// spliced is the body that a call with model and askUsage sends, read three ways.
func spliced(t testing.TB, r *Request, model string, askUsage bool) string {
	t.Helper()
	b := Splice(r.Body, r.Edits(model, askUsage)...)
	whole, err := io.ReadAll(b.NewReader())
	if err != nil {
		t.Fatal(err)
	}
	bytewise, err := io.ReadAll(iotest.OneByteReader(b.NewReader()))
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	n, err := b.NewReader().(io.WriterTo).WriteTo(&written)
	if err != nil || n != b.Len() {
		t.Errorf("WriteTo = %d, %v, want %d, nil", n, err, b.Len())
	}
	if !bytes.Equal(whole, bytewise) || !bytes.Equal(whole, written.Bytes()) || int64(len(whole)) != b.Len() {
		t.Errorf("NewReader reads %q, %q, %q (Len %d), want the same", whole, bytewise, written.Bytes(), b.Len())
	}
	return string(whole)
}

// TestREQ01 is case S-REQ-01: the body is forwarded byte for byte.
func TestREQ01BytesSurvive(t *testing.T) {
	body := `{"model":"m-oai", "zz_new":{"b":1,"a":[1.0,1e21,9007199254740993]},
 "messages":[{"role":"user","content":"a<b & caf\u00e9 \ud83d\ude00 é"}], "temperature":0, "seed":1234567890123456789,"user":null}`
	r := decoded(t, body)
	if got := spliced(t, r, "m-oai", true); got != body {
		t.Errorf("unchanged body = %s, want %s", got, body)
	}
	if got, want := spliced(t, r, "real-1", true), strings.Replace(body, `"m-oai"`, `"real-1"`, 1); got != want {
		t.Errorf("body for another model = %s, want %s", got, want)
	}
	if string(r.Body) != body {
		t.Errorf("Body was changed to %s", r.Body)
	}
}

func TestEditsModel(t *testing.T) {
	for _, c := range []struct{ body, model, want string }{
		{`{"model":"m"}`, "m", `{"model":"m"}`},
		{`{"model":"\u006d"}`, "m", `{"model":"\u006d"}`}, // the same name: nothing to change
		{`{"model":"m","x":{"model":"m"}}`, "n", `{"model":"n","x":{"model":"m"}}`},
		{`{"x":[{"model":"m"}], "mod\u0065l" : "m" }`, "n", `{"x":[{"model":"m"}], "mod\u0065l" : "n" }`},
		{`{"model":"m"}`, `q"\` + "\n", `{"model":"q\"\\\u000a"}`},
		{`{"model":"m"}`, "a<b&é", `{"model":"a<b&é"}`},
	} {
		if got := spliced(t, decoded(t, c.body), c.model, false); got != c.want {
			t.Errorf("Edits(%s, %q) = %s, want %s", c.body, c.model, got, c.want)
		}
	}
}

// TestSSE06 is case S-SSE-06: asking upstream for usage that the client did not ask for.
func TestSSE06EditsAskUsage(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"model":"m","stream":true}`, `{"stream_options":{"include_usage":true},"model":"m","stream":true}`},
		{"\n{ \"model\":\"m\",\"stream\":true}", "\n{\"stream_options\":{\"include_usage\":true}, \"model\":\"m\",\"stream\":true}"},
		{`{"model":"m","stream":true,"stream_options":null}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		{`{"model":"m","stream":true,"stream_options":{}}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		{`{"model":"m","stream":true,"stream_options":{ }}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true }}`},
		{`{"stream_options":{"x":1},"stream":true,"model":"m"}`, `{"stream_options":{"include_usage":true,"x":1},"stream":true,"model":"m"}`},
		{`{"model":"m","stream":true,"stream_options":{"x":1,"include_usage": false}}`, `{"model":"m","stream":true,"stream_options":{"x":1,"include_usage": true}}`},
		{`{"model":"m","stream":true,"stream_options":{"include_usage":null}}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		{`{"model":"m","stream":true,"stream_options":{"include\u005fusage":false}}`, `{"model":"m","stream":true,"stream_options":{"include\u005fusage":true}}`},
		// Nothing to add.
		{`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, ""},
		{`{"model":"m","stream":false}`, ""},
		{`{"model":"m","stream":null}`, ""},
		{`{"model":"m"}`, ""},
		// The provider's to refuse.
		{`{"model":"m","stream":true,"stream_options":"yes"}`, ""},
		{`{"model":"m","stream":true,"stream_options":{"include_usage":1}}`, ""},
	} {
		want := c.want
		if want == "" {
			want = c.body
		}
		r := decoded(t, c.body)
		if got := spliced(t, r, "m", true); got != want {
			t.Errorf("Edits(%s, ask) = %s, want %s", c.body, got, want)
		}
		if got := spliced(t, r, "m", false); got != c.body {
			t.Errorf("Edits(%s, do not ask) = %s, want it unchanged", c.body, got)
		}
		both := strings.Replace(want, `"model":"m"`, `"model":"other"`, 1)
		if got := spliced(t, r, "other", true); got != both {
			t.Errorf("Edits(%s, other, ask) = %s, want %s", c.body, got, both)
		}
		for path, op := range Operations() {
			if op.Surface == Chat {
				continue
			}
			r.Operation = op
			if got := spliced(t, r, "m", true); got != c.body {
				t.Errorf("%s: Edits(%s, ask) = %s, want it unchanged", path, c.body, got)
			}
		}
	}
}

func TestEditsAllocateNothingWithoutChange(t *testing.T) {
	r := decoded(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`)
	if n := testing.AllocsPerRun(100, func() {
		if Splice(r.Body, r.Edits("m", true)...).Len() != int64(len(r.Body)) {
			t.Error("Len differs")
		}
	}); n != 0 {
		t.Errorf("Edits and Splice allocate %v times, want 0", n)
	}
}

func TestBodyReaders(t *testing.T) {
	b := Splice([]byte("0123456789"), Edit{Span{0, 0}, []byte("a")}, Edit{Span{3, 5}, []byte("bcd")}, Edit{Span{10, 10}, []byte("e")})
	const want = "a012bcd56789e"
	first, second := b.NewReader(), b.NewReader()
	half := make([]byte, 5)
	if _, err := io.ReadFull(first, half); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(second)
	if string(half)+"|"+string(all) != want[:5]+"|"+want || err != nil {
		t.Errorf("readers read %q, %q, %v, want %q, %q", half, all, err, want[:5], want)
	}
	var rest bytes.Buffer
	if _, err := io.Copy(&rest, first); err != nil || rest.String() != want[5:] {
		t.Errorf("Copy after Read = %q, %v, want %q", rest.String(), err, want[5:])
	}
	if err := iotest.TestReader(b.NewReader(), []byte(want)); err != nil {
		t.Error(err)
	}
	if err := iotest.TestReader(Splice([]byte("abc")).NewReader(), []byte("abc")); err != nil {
		t.Error(err)
	}
	if all, err := io.ReadAll(Splice(nil).NewReader()); len(all) != 0 || err != nil {
		t.Errorf("an empty body reads %q, %v, want nothing", all, err)
	}
}

func TestBodyReaderAfterClose(t *testing.T) {
	r := Splice([]byte("secret")).NewReader()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 9)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("Read after Close = %d, %v, want 0 and an error that is no end", n, err)
	}
	var out bytes.Buffer
	if n, err := r.(io.WriterTo).WriteTo(&out); n != 0 || err == nil || out.Len() > 0 {
		t.Errorf("WriteTo after Close = %d, %v, want 0 and an error", n, err)
	}
}

func TestBodyWriteToStopsAtErrors(t *testing.T) {
	b := Splice([]byte("0123456789"), Edit{Span{5, 5}, []byte("x")})
	n, err := b.NewReader().(io.WriterTo).WriteTo(iotest.TruncateWriter(failing{after: 1}, 99))
	if n != 5 || err == nil {
		t.Errorf("WriteTo = %d, %v, want 5 and the writer's error", n, err)
	}
}

// failing writes nothing but the first after+… bytes it is given in one call.
type failing struct{ after int }

func (f failing) Write(p []byte) (int, error) {
	if len(p) == f.after {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func FuzzSplice(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","stream":true}`, `{"model":"m","stream":true,"stream_options":{"a":1,"include_usage":false}}`,
		`{"stream_options":{ },"stream":true,"model":"m\u0041"}`, ` {"stream":true,"stream_options":null,"model":"m"}`,
	} {
		f.Add([]byte(body), "other")
	}
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		if !json.Valid(body) {
			return
		}
		r, err := Decode(chat(), "", nil, body)
		if err != nil || !utf8.Valid(body) {
			return
		}
		var before, after map[string]json.RawMessage
		edited := spliced(t, r, model, true)
		if err := json.Unmarshal([]byte(edited), &after); err != nil {
			t.Fatalf("edited %s = %s: %v", body, edited, err)
		}
		if err := json.Unmarshal(body, &before); err != nil {
			t.Fatal(err)
		}
		want := string([]rune(model)) // what is not UTF-8 reads as U+FFFD
		var got string
		if err := json.Unmarshal(after["model"], &got); err != nil || got != want {
			t.Errorf("edited model = %q, %v, want %q", got, err, want)
		}
		delete(before, "model")
		delete(after, "model")
		delete(before, "stream_options")
		delete(after, "stream_options")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("edited %s differs elsewhere (-before +after):\n%s", body, diff)
		}
	})
}
