package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// atoms is what a request means, whichever surface it is in: what is said in order, without
// the borders of messages, and its settings.
func atoms(t failing, body []byte) []string {
	t.Helper()
	var root map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, body)
	}
	r := reader{root: root}
	r.settings()
	r.texts("system", root["system"])
	for _, m := range list(root["messages"]) {
		r.message(m.(map[string]any))
	}
	return r.out
}

type reader struct {
	root map[string]any
	out  []string
}

func (r *reader) add(format string, args ...any) { r.out = append(r.out, fmt.Sprintf(format, args...)) }

func list(v any) []any { l, _ := v.([]any); return l }

func object(v any) map[string]any { o, _ := v.(map[string]any); return o }

func firstNonNil(all ...any) any {
	for _, v := range all {
		if v != nil {
			return v
		}
	}
	return nil
}

func compact(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func (r *reader) settings() {
	root := r.root
	r.add("limit %v", firstNonNil(root["max_completion_tokens"], root["max_tokens"]))
	stop := firstNonNil(root["stop"], root["stop_sequences"])
	if text, ok := stop.(string); ok {
		stop = []any{text}
	}
	r.add("settings %v %v %v %v", root["temperature"], root["top_p"], root["stream"], compact(stop))
	r.add("user %v", firstNonNil(root["user"], object(root["metadata"])["user_id"]))
	r.add("schema %s", compact(firstNonNil(object(object(root["response_format"])["json_schema"])["schema"],
		object(object(root["output_config"])["format"])["schema"])))
	for _, tool := range list(root["tools"]) {
		f := object(firstNonNil(object(tool)["function"], tool))
		r.add("tool %v %v %s %v", f["name"], f["description"], compact(firstNonNil(f["parameters"], f["input_schema"])), f["strict"])
	}
	choice, alone := root["tool_choice"], root["parallel_tool_calls"] == false
	if c := object(choice); c != nil {
		alone = alone || c["disable_parallel_tool_use"] == true
		choice = firstNonNil(object(c["function"])["name"], c["name"], c["type"])
	}
	if choice == "required" {
		choice = "any"
	}
	if choice == "auto" {
		choice = nil
	}
	r.add("choice %v %v", choice, alone)
}

func (r *reader) texts(role string, content any) {
	if text, ok := content.(string); ok {
		content = []any{map[string]any{"type": "text", "text": text}}
	}
	for _, part := range list(content) {
		r.part(role, object(part))
	}
}

func (r *reader) part(role string, p map[string]any) {
	switch p["type"] {
	case "text":
		if strings.TrimSpace(p["text"].(string)) != "" {
			r.add("%s says %q", role, p["text"])
		}
	case "image_url":
		r.add("%s shows %v", role, object(p["image_url"])["url"])
	case "image":
		s := object(p["source"])
		if s["type"] == "url" {
			r.add("%s shows %v", role, s["url"])
		} else {
			r.add("%s shows data:%v;base64,%v", role, s["media_type"], s["data"])
		}
	case "file":
		r.add("%s files %v %v", role, object(p["file"])["filename"], object(p["file"])["file_data"])
	case "document":
		s := object(p["source"])
		r.add("%s files %v data:%v;base64,%v", role, p["title"], s["media_type"], s["data"])
	case "thinking":
		r.add("%s thinks %q %v", role, p["thinking"], p["signature"])
	case "redacted_thinking":
		r.add("%s thinks %v", role, p["data"])
	case "tool_use":
		r.add("%s calls %v %v %s", role, p["id"], p["name"], compact(p["input"]))
	case "tool_result":
		r.add("result %v", p["tool_use_id"])
		r.texts("tool", p["content"])
	default:
		r.add("%s %v", role, p)
	}
}

func (r *reader) message(m map[string]any) {
	role := m["role"].(string)
	switch role {
	case "developer":
		role = "system"
	case "tool":
		r.add("result %v", m["tool_call_id"])
	}
	for _, b := range list(m["thinking_blocks"]) {
		r.part(role, object(b))
	}
	r.texts(role, m["content"])
	for _, c := range list(m["tool_calls"]) {
		f := object(object(c)["function"])
		var input any
		decoder := json.NewDecoder(strings.NewReader(f["arguments"].(string)))
		decoder.UseNumber()
		if decoder.Decode(&input) != nil {
			input = map[string]any{}
		}
		r.add("%s calls %v %v %s", role, object(c)["id"], f["name"], compact(input))
	}
}
