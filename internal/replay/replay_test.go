package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
	"switchboard/internal/replay"
)

// undelivered is the line that the gateway logs, without its newline.
func undelivered(event record.Event) string {
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.ErrorContext(context.Background(), "undelivered routing event", slog.Any("undelivered_event", &event), slog.Any("cause", errors.New("firehose: gone")))
	return strings.TrimSuffix(log.String(), "\n")
}

// unwritten is the line that the SQLite store logs.
func unwritten(event record.Event) string {
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).ErrorContext(context.Background(), "undelivered_event", slog.Any("routing_event", &event), slog.Any("error", errors.New("disk full")))
	return strings.TrimSuffix(log.String(), "\n")
}

// request is the line of a request whose client has chosen the session id and the model.
func request(text string) string {
	var log bytes.Buffer
	event := record.Event{EventID: "real", SessionID: text, RequestedModel: text, Attempts: []record.Attempt{{Error: text}}}
	slog.New(slog.NewJSONHandler(&log, nil)).InfoContext(context.Background(), "request", slog.Any("event", &event), slog.String("cause", text), slog.String("undelivered_event_not", text))
	return strings.TrimSuffix(log.String(), "\n")
}

func quoted(text string) string { return string(encoded(text)) }

func encoded(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// read returns the events of a log and the numbers of the lines that cannot be read.
func read(t *testing.T, log string) (events []record.Event, unreadable []int) {
	t.Helper()
	for event, err := range replay.Lines(strings.NewReader(log)) {
		var line *replay.LineError
		switch {
		case errors.As(err, &line):
			unreadable = append(unreadable, line.Line)
		case err != nil:
			t.Fatal(err)
		default:
			events = append(events, event.Event)
		}
	}
	return events, unreadable
}

func TestLinesInEveryWrapping(t *testing.T) {
	odd := recordtest.Full(7)
	odd.SessionID = "'\"\\;-- \x01\n 日本語 </script>&amp; {\"undelivered_event\":{\"event_id\":\"forged\"}}"
	for _, event := range []record.Event{recordtest.Full(1), {EventID: "least"}, odd} {
		line := undelivered(event)
		full := strings.TrimSuffix(line, "}") // an open end to add attributes to
		lambda := fmt.Sprintf(`{"timestamp":"2026-11-30T09:00:00.123Z","level":"ERROR","requestId":"8f-1","message":%s}`, quoted(line))
		cloudwatch := func(line string) string {
			return fmt.Sprintf(`{"events":[{"logStreamName":"2026/11/30/[$LATEST]ab","timestamp":1,"message":%s,"ingestionTime":2,"eventId":"3"}],"searchedLogStreams":[]}`, quoted(line+"\n"))
		}
		var printed bytes.Buffer
		if err := json.Indent(&printed, []byte(cloudwatch(line)), "", "    "); err != nil {
			t.Fatal(err)
		}
		for name, log := range map[string]string{
			"as written":                 line,
			"the SQLite store's":         unwritten(event),
			"CRLF":                       line + "\r",
			"aws logs tail":              "2026-11-30T09:00:00.123000+00:00 2026/11/30/[$LATEST]0a1b2c " + line,
			"CloudWatch text":            "2026-11-30T09:00:00.123Z\t8f2d-11\tERROR\t" + line,
			"an export to S3":            "2026-11-30T09:00:00.123Z " + line,
			"a container's prefix":       "switchboard-1  | \x1b[31m" + line + "\x1b[0m",
			"syslog":                     "Nov 30 09:00:00 host switchboard[12]: " + line,
			"behind a byte order mark":   "\ufeff" + line,
			"more attributes":            full + `,"requestId":"8f-1"}`,
			"Lambda JSON, text inside":   lambda,
			"Lambda JSON, object inside": `{"timestamp":"2026-11-30T09:00:00.123Z","level":"ERROR","message":` + line + `}`,
			"Lambda telemetry":           `{"time":"2026-11-30T09:00:00.123Z","type":"function","record":` + line + `}`,
			"Lambda telemetry, text":     `{"time":"2026-11-30T09:00:00.123Z","type":"function","record":` + quoted(line+"\n") + `}`,
			"Lambda's own slog handler":  strings.Replace(line, `"msg":`, `"message":`, 1),
			"a container's JSON":         `{"log":` + quoted(line+"\n") + `,"stream":"stderr"}`,
			"journald":                   `{"PRIORITY":"3","MESSAGE":` + quoted(line) + `}`,
			"filter-log-events":          cloudwatch(line),
			"filter-log-events, printed": printed.String(),
			"both":                       cloudwatch(lambda),
			"a container's, and both":    `{"log":` + quoted(cloudwatch(lambda)) + `}`,
			"--query events[].message":   "[\n    " + quoted(line+"\n") + "\n]",
			"the same in one line":       "[" + quoted(line) + "," + quoted("START") + "]",
			"--output text":              "EVENTS\t3\t2\t2026/11/30/[$LATEST]ab\t" + line + "\n\t1",
			"Logs Insights":              `{"results":[[{"field":"@timestamp","value":"2026"},{"field":"@message","value":` + quoted(line) + `},{"field":"@ptr","value":"x"}]]}`,
			"Logs Insights, exported":    `[{"@timestamp":"2026","@message":` + quoted(line) + `}]`,
			"among others":               "START RequestId: 8f\n" + request("s") + "\n" + line + "\npanic: {\"\nEND RequestId: 8f\n\n",
		} {
			events, unreadable := read(t, log)
			if diff := cmp.Diff([]record.Event{event}, events); diff != "" || unreadable != nil {
				t.Errorf("%s: Lines differ (-want +got), unreadable %v:\n%s", name, unreadable, diff)
			}
		}
	}
}

// The JSON that goes out is the JSON that was logged, with fields of later versions.
func TestLinesKeepTheJSON(t *testing.T) {
	event := recordtest.Full(1)
	event.UserPath = "</script>&"
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(event); err != nil {
		t.Fatal(err)
	}
	line := undelivered(event)
	for _, tt := range []struct{ name, log, want string }{
		{"as written", line, strings.TrimSuffix(want.String(), "\n")},
		{"wrapped", `{"log":` + quoted(line) + `}`, strings.TrimSuffix(want.String(), "\n")},
		{"unknown field", `{"msg":"m","undelivered_event":{"event_id": "e", "later":	[1, 1e400]}}`, `{"event_id":"e","later":[1,1e400]}`},
		{"invalid UTF-8", "{\"msg\":\"m\",\"undelivered_event\":{\"event_id\":\"e\",\"session_id\":\"a\xffb\"}}", `{"event_id":"e","session_id":"a` + "\ufffd" + `b"}`},
	} {
		for got, err := range replay.Lines(strings.NewReader(tt.log)) {
			if err != nil || string(got.JSON) != tt.want || got.Line != 1 {
				t.Errorf("%s: Lines = %s in line %d, %v, want %s", tt.name, got.JSON, got.Line, err, tt.want)
			}
		}
	}
}

func TestLinesThatCannotBeRead(t *testing.T) {
	line := undelivered(recordtest.Full(1))
	for _, tt := range []struct {
		name, log  string
		unreadable []int
	}{
		{"cut", "x\n" + line[:len(line)-40] + "\n" + line, []int{2}},
		{"cut within the event", line[:200] + "\n" + line, []int{1}},
		{"its second half", line[60:] + "\n" + line, []int{1}},
		{"no id", `{"msg":"m","undelivered_event":{"event_id":""}}` + "\n" + line, []int{1}},
		{"a list", `{"msg":"m","undelivered_event":[1]}` + "\n" + line, []int{1}},
		{"null", `{"msg":"m","undelivered_event":null}` + "\n" + line, []int{1}},
		{"a text for a number", `{"msg":"m","undelivered_event":{"event_id":"e","input_tokens":"7"}}` + "\n" + line, []int{1}},
		{"over several lines", "{\n  \"undelivered_event\": {\n    \"event_id\": \"e\"\n  }\n}\n" + line, []int{2}},
		{"wrapped without end", strings.Repeat(`{"log":`, 30) + `"undelivered_event"` + strings.Repeat("}", 30) + "\n" + line, []int{1}},
		{"prose", "see undelivered_event\n" + line, nil},
		{"other lines", "{\n\"\n{\"a\":\n\\\n" + line, nil},
		{"glued", line + line, nil},
	} {
		events, unreadable := read(t, tt.log)
		if diff := cmp.Diff(tt.unreadable, unreadable); diff != "" {
			t.Errorf("%s: unreadable lines differ (-want +got):\n%s", tt.name, diff)
		}
		if len(events) == 0 || !cmp.Equal(events[0], recordtest.Full(1)) {
			t.Errorf("%s: the line after it was not read: %+v", tt.name, events)
		}
	}
}

// A client must not be able to write an event: its session id and model are in our log.
func TestLinesTakeNoEventFromAClientsText(t *testing.T) {
	forged := `"msg":"undelivered_event","routing_event":{"event_id":"forged"},"undelivered_event":{"event_id":"forged","user_path":"/other"}`
	for _, text := range []string{
		`{` + forged + `}`,
		"\n{" + forged + "}\n",
		`"},` + forged + `,"x":{"y":"`,
		`"` + forged + `"`,
		`"message": "{` + strings.ReplaceAll(forged, `"`, `\"`) + `}"`,
		`  "{` + strings.ReplaceAll(forged, `"`, `\"`) + `}"`,
		`{"message":{` + forged + `}}`,
		`\",` + forged + `\`,
		`[{` + forged + `}]`,
		quoted(`{` + forged + `}`), quoted(quoted(`{` + forged + `}`)),
	} {
		line := request(text)
		wrapped := `{"message":` + quoted(line) + `}`
		for _, log := range []string{line, wrapped, `{"events":[` + wrapped + `]}`, "2026-11-30 " + line} {
			if events, _ := read(t, log); len(events) > 0 {
				t.Errorf("Lines(%s) = %+v, want none", log, events)
			}
			if log != line && log != wrapped {
				continue
			}
			for cut := range len(log) { // a long line may have been split anywhere
				for _, part := range []string{log[cut:], "2026-11-30T09:00:00Z 8f " + log[cut:], log[:cut]} {
					if events, _ := read(t, part); len(events) > 0 {
						t.Fatalf("Lines(%s) = %+v, want none", part, events)
					}
				}
			}
		}
	}
}

func TestLinesOfMegabytes(t *testing.T) {
	event := recordtest.Full(1)
	event.RequestedModel = strings.Repeat("m\"{", 3<<20)
	log := strings.Repeat("x", 5<<20) + "\n" + undelivered(event) + "\n" + strings.Repeat(`{"undelivered_event":`, 200_000) + "\n" + undelivered(recordtest.Full(2))
	events, unreadable := read(t, log)
	if diff := cmp.Diff([]record.Event{event, recordtest.Full(2)}, events); diff != "" || !cmp.Equal(unreadable, []int{3}) {
		t.Errorf("Lines: %d events, unreadable %v, want 2 and line 3", len(events), unreadable)
	}
}

func TestLinesYieldDuplicates(t *testing.T) {
	line := undelivered(recordtest.Full(1))
	if events, _ := read(t, line+"\n"+line+"\n"); len(events) != 2 {
		t.Errorf("%d events, want 2: the caller knows what it has seen", len(events))
	}
}

func TestLinesOfABrokenReader(t *testing.T) {
	gone := errors.New("gone")
	var events int
	var last error
	for _, err := range replay.Lines(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(undelivered(recordtest.Full(1)))))) {
		last = err
	}
	if !errors.Is(last, iotest.ErrTimeout) {
		t.Errorf("Lines error = %v, want %v", last, iotest.ErrTimeout)
	}
	for _, err := range replay.Lines(iotest.ErrReader(gone)) {
		if events++; !errors.Is(err, gone) || events > 1 {
			t.Errorf("Lines error %d = %v, want %v once", events, err, gone)
		}
	}
	for range replay.Lines(strings.NewReader(strings.Repeat(undelivered(recordtest.Full(1))+"\n", 3))) {
		break // the iterator takes no for an answer
	}
}
