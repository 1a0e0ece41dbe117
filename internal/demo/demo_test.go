package demo

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

func post(t *testing.T, d *Providers, path, body string) (int, string) {
	t.Helper()
	response, err := http.Post("http://"+d.listener.Addr().String()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestAnswersOnEverySurface(t *testing.T) {
	d, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{` + messages + `}`, `"prompt_tokens"`},
		{"/v1/chat/completions", `{"stream":true,` + messages + `}`, "data: [DONE]"},
		{"/v1/responses", `{"input":"hi"}`, `"status":"completed"`},
		{"/v1/responses", `{"stream":true,"input":"hi"}`, "event: response.completed"},
		{"/v1/messages", `{` + messages + `}`, `"stop_reason":"end_turn"`},
		{"/v1/messages", `{"stream":true,` + messages + `}`, "event: message_stop"},
		{"/v1/messages/count_tokens", `{` + messages + `}`, `"input_tokens"`},
		{"/v1/embeddings", `{"input":"hi"}`, `"embedding"`},
	} {
		for _, name := range []string{"demo-one", "demo-two"} {
			status, text := post(t, d, "/"+name+tt.path, tt.body)
			if status != http.StatusOK || !strings.Contains(text, tt.want) {
				t.Errorf("%s %s = %d %s, want %s", name, tt.path, status, text, tt.want)
			}
		}
	}
}

func TestCachesAreApartAndFailureIsOnes(t *testing.T) {
	d, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const body = `{"messages":[{"role":"user","content":"a question that is long enough to have tokens"}]}`
	post(t, d, "/demo-one/v1/chat/completions", body)
	if _, warm := post(t, d, "/demo-one/v1/chat/completions", body); strings.Contains(warm, `"cached_tokens":0}`) {
		t.Errorf("the second turn read nothing from the cache: %s", warm)
	}
	if _, cold := post(t, d, "/demo-two/v1/chat/completions", body); !strings.Contains(cold, `"cached_tokens":0}`) {
		t.Errorf("the other provider has the cache too: %s", cold)
	}
	d.Fail("demo-one")
	if status, _ := post(t, d, "/demo-one/v1/chat/completions", body); status != http.StatusTooManyRequests {
		t.Errorf("the failing one answers %d", status)
	}
	if status, _ := post(t, d, "/demo-two/v1/chat/completions", body); status != http.StatusOK {
		t.Errorf("the other one answers %d", status)
	}
	if !bytes.Contains([]byte(d.YAML()), []byte(d.listener.Addr().String()+"/demo-two/v1")) {
		t.Errorf("YAML = %s", d.YAML())
	}
}
