//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// A response can be continued from the moment its id is known, also by a client that does
// not wait for the end of the stream. Round robin would send the next turn elsewhere, and
// the fake provider knows a response only under the key that made it.
func TestPreviousResponseAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		boards func(s *stack) []gateway // what one served, the next continues
		stream bool
	}{
		{"plain", oneProcess, false},
		{"streamed", oneProcess, true},
		{"plain over two processes", twoProcesses, false},
		{"streamed over two processes", twoProcesses, true},
		{"plain over environments", functionEnvironments, false},
		{"streamed over environments", functionEnvironments, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			boards := tt.boards(newStack(t))
			previous, home := "", ""
			for turn := range 40 {
				if turn%10 == 0 {
					previous, home = "", ""
				}
				r := request{board: boards[turn%len(boards)], path: "/v1/responses", stream: tt.stream, body: fmt.Sprintf(
					`{"model":"spread","stream":%v,"input":"turn %d","previous_response_id":%s}`, tt.stream, turn, encode(previous))}
				id, provider := r.responseID(t)
				if home != "" && provider != home {
					t.Errorf("turn %d: served by %s, but %s lives on %s", turn, provider, previous, home)
				}
				previous, home = id, provider
			}
		})
	}
}

func oneProcess(s *stack) []gateway           { return []gateway{s.board()} }
func twoProcesses(s *stack) []gateway         { return []gateway{s.board(), s.board()} }
func functionEnvironments(s *stack) []gateway { return []gateway{s.function()} } // takes them in turn

func encode(text string) string {
	if text == "" {
		return "null"
	}
	return `"` + text + `"`
}

// responseID sends r and returns as soon as the id is known: for a stream, with its last
// event, before its end has been read.
func (r request) responseID(t *testing.T) (id, provider string) {
	t.Helper()
	if !r.stream {
		a := r.ok(t)
		var response struct{ ID string }
		if err := json.Unmarshal(a.body, &response); err != nil {
			t.Fatal(err)
		}
		return response.ID, a.provider()
	}
	response, err := r.open(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := &running{Response: response}
	for line := range lines.all(t) {
		data, found := bytes.CutPrefix(line, []byte("data: "))
		if !found || !bytes.Contains(data, []byte(`"response.completed"`)) {
			continue
		}
		var event struct{ Response struct{ ID string } }
		if err := json.Unmarshal(data, &event); err != nil {
			t.Fatal(err)
		}
		return event.Response.ID, response.Header.Get("X-Switchboard-Provider")
	}
	t.Fatalf("status %d, no response.completed in the stream", response.StatusCode)
	return "", ""
}
