package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/provider"
)

// vault answers references, counts, and knows how many were asked for at the same time.
type vault struct {
	texts map[string]string

	mu         sync.Mutex
	asked      []string
	now, most  int
	gate       chan struct{} // when not nil: answers wait until it is closed
	gateAt     int           // it is closed when so many have been asked
	errorAfter string
}

func (v *vault) secret(ref string) (string, error) {
	v.mu.Lock()
	v.asked = append(v.asked, ref)
	v.now++
	v.most = max(v.most, v.now)
	if v.gate != nil && len(v.asked) == v.gateAt {
		close(v.gate)
	}
	v.mu.Unlock()
	if v.gate != nil {
		<-v.gate
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now--
	if text, have := v.texts[ref]; have {
		return text, nil
	}
	return "", errors.New(ref + ": ParameterNotFound" + v.errorAfter)
}

// Secrets are asked for at the same time, each once, wherever they are named: the answers
// here only come when all of the first eight have been asked for.
func TestSecretsAreAskedForAtTheSameTime(t *testing.T) {
	v := &vault{texts: map[string]string{}, gate: make(chan struct{}), gateAt: parallelSecrets}
	var refs []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		ref := "ssm:/" + name
		refs = append(refs, ref)
		v.texts[ref] = "key " + name
	}
	text := complete("providers: {o: {type: openai, models: [m], api_keys: ['ssm:/a', env:B, {id: c, key: 'ssm:/c'}, 'ssm:/d', 'ssm:/e', 'ssm:/f', 'ssm:/g', 'ssm:/h', 'ssm:/i']}, p: {type: anthropic, models: [m]}, q: {type: openai, models: [m], api_keys: ['ssm:/a']}}\n")
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Source{Path: path, Secrets: v.secret, Getenv: env("B= ssm:/b\n", "ANTHROPIC_API_KEY_2=ssm:/j", "SWITCHBOARD_ADMIN_KEY=ssm:/a")})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(v.asked)
	if diff := cmp.Diff(refs, v.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if v.most != parallelSecrets {
		t.Errorf("%d at the same time, want %d", v.most, parallelSecrets)
	}
	var keys []provider.Key
	for _, p := range c.Providers {
		keys = append(keys, p.Keys...)
	}
	want := []provider.Key{
		key("1", "key a"), key("2", "key b"), key("c", "key c"), key("4", "key d"), key("5", "key e"), key("6", "key f"), key("7", "key g"), key("8", "key h"), key("9", "key i"),
		key("2", "key j"), key("1", "key a"),
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("Keys (-want +got):\n%s", diff)
	}
	if c.Auth.Admin == nil {
		t.Error("Admin = nil, want the digest of what SWITCHBOARD_ADMIN_KEY refers to")
	}
}

func TestReferencesInVariables(t *testing.T) {
	nowhere(t)
	for _, tt := range []struct {
		name string
		vars []string
		want string // the error; empty: none
	}{
		{"key", []string{"OPENAI_API_KEY=ssm:/k"}, ""},
		{"two keys", []string{"OPENAI_API_KEY=ssm:/k", "OPENAI_API_KEY_2=secretsmanager:s#k"}, ""},
		{"admin key", []string{"OPENAI_API_KEY=literal", "SWITCHBOARD_ADMIN_KEY=ssm:/k"}, ""},
		{"missing", []string{"OPENAI_API_KEY=ssm:/nope"}, "environment: OPENAI_API_KEY: ssm:/nope cannot be read: ParameterNotFound"},
		{"missing, among others", []string{"OPENAI_API_KEY=ssm:/k", "ANTHROPIC_API_KEY=ssm:/nope"}, "environment: ANTHROPIC_API_KEY: ssm:/nope cannot be read: ParameterNotFound"},
		{"empty", []string{"OPENAI_API_KEY=ssm:/empty"}, "environment: OPENAI_API_KEY: ssm:/empty is empty; store a key there"},
		{"no name", []string{"OPENAI_API_KEY=ssm:/"}, "environment: OPENAI_API_KEY: a reference without a name; write ssm:/path or secretsmanager:name#key"},
		{"the same key", []string{"OPENAI_API_KEY=ssm:/k", "OPENAI_API_KEY_2=ssm:/same"}, "environment: OPENAI_API_KEY_2: the same key as OPENAI_API_KEY; set each key once"},
		{"missing admin key", []string{"OPENAI_API_KEY=literal", "SWITCHBOARD_ADMIN_KEY=ssm:/nope"}, "environment: SWITCHBOARD_ADMIN_KEY: ssm:/nope cannot be read: ParameterNotFound"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &vault{texts: map[string]string{"ssm:/k": secretKey, "ssm:/same": secretKey, "secretsmanager:s#k": "other key", "ssm:/empty": " "}}
			_, err := Load(Source{Getenv: env(tt.vars...), Secrets: v.secret})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Load = %s\nwant   %s", got, tt.want)
			}
		})
	}
	_, err := Load(Source{Getenv: env("OPENAI_API_KEY=ssm:/k")})
	if want := "environment: OPENAI_API_KEY: ssm: and secretsmanager: only work on AWS; set it to the key itself"; err == nil || err.Error() != want {
		t.Errorf("Load without AWS = %v, want %s", err, want)
	}
}

func TestFileInAWS(t *testing.T) {
	for _, ref := range []string{"ssm:/switchboard", "secretsmanager:switchboard"} {
		v := &vault{texts: map[string]string{ref: complete("providers: {o: {type: openai, models: [m], api_keys: ['ssm:/k']}}\n"), "ssm:/k": "k-one"}}
		c, err := Load(Source{Function: Route, Getenv: env(routeVars("SWITCHBOARD_CONFIG=" + ref)...), Secrets: v.secret})
		if err != nil || c.Providers[0].Keys[0].Text != "k-one" {
			t.Errorf("Load of %s = %v, want the file and its key", ref, err)
		}
		_, err = Load(Source{Getenv: env("SWITCHBOARD_CONFIG=" + ref), Secrets: (&vault{errorAfter: "\nx"}).secret})
		if want := ref + ": ParameterNotFound x (named by SWITCHBOARD_CONFIG)"; err == nil || err.Error() != want {
			t.Errorf("Load of %s = %v, want %s", ref, err, want)
		}
	}
}

func TestSecretsOfAWS(t *testing.T) {
	text := complete("providers: {o: {type: openai, models: [m], api_keys: ['ssm:/path', 'secretsmanager:name#key']}, p: {type: openai, models: [m], api_keys: ['ssm:/path']}}\n")
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked []string
	var mu sync.Mutex // they are asked for at the same time
	load := func(answers map[string]string) (*Config, error) {
		return Load(Source{Path: path, Secrets: func(ref string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, ref)
			if answer, ok := answers[ref]; ok {
				return answer, nil
			}
			return "", errors.New("access denied")
		}})
	}
	c, err := load(map[string]string{"ssm:/path": "from-ssm\n", "secretsmanager:name#key": "from-sm"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []provider.Key{key("1", "from-ssm"), key("2", "from-sm")}; !cmp.Equal(want, c.Providers[0].Keys) {
		t.Errorf("Keys = %v, want %v", c.Providers[0].Keys, want)
	}
	if len(asked) != 2 {
		t.Errorf("asked for %q, want each reference once", asked)
	}
	_, err = load(map[string]string{"ssm:/path": ""})
	for _, want := range []string{"ssm:/path is empty; store a key there", "secretsmanager:name#key cannot be read: access denied"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load = %v, want %q in it", err, want)
		}
	}
	_, err = load(map[string]string{"ssm:/path": secretKey, "secretsmanager:name#key": secretKey})
	if err == nil || !strings.Contains(err.Error(), "the same key as") || strings.Contains(err.Error(), secretKey) {
		t.Errorf("Load = %v, want a complaint about the same key without its text", err)
	}
}

func TestFileItselfAtSSM(t *testing.T) {
	c, err := Load(Source{Path: "ssm:/switchboard", Getenv: env("K=k"), Secrets: func(ref string) (string, error) {
		return complete("listen: 127.0.0.1:7\n"), nil
	}})
	if err != nil || c.Listen != "127.0.0.1:7" {
		t.Errorf("Load = %v, %v, want what is stored at ssm:/switchboard", c, err)
	}
	if _, err := Load(Source{Path: "ssm:/switchboard"}); err == nil || !strings.Contains(err.Error(), "only works on AWS") {
		t.Errorf("Load without AWS = %v, want that it only works there", err)
	}
}
