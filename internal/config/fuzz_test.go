package config

import (
	"os"
	"strings"
	"testing"

	"switchboard/internal/provider"
)

// Whatever the file says, Load neither panics nor shows a key that it was given.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	for _, text := range []string{
		"", "{", "a: *b", "<<: {listen: 1}", "&a [*a]", "? [x]\n: y", "listen: !!str 5", "providers: &a {<<: *a}",
		complete("listen: [\n"), complete(""), "auth:\n  keys: [{sha256: SECRET}]\n",
		"providers: {o: {type: openai, api_keys: [SECRET, SECRET, {key: SECRET, id: x}, {SECRET: y}, env:SECRET], models: [m]}}",
		"providers: {o: {type: openai, api_keys: {SECRET: y}}}", "providers: {o: {type: openai, api_keys: [env:K, env:K]}}",
		"providers: {o: {type: openai, api_keys: SECRET}}", "providers: {o: {type: openai, api_keys: [[SECRET]]}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "SECRET", secretKey)
		l := newLoader(Source{Getenv: env("K="+secretKey, "SWITCHBOARD_ADMIN_KEY="+secretKey)})
		l.file = "switchboard.yaml"
		for _, v := range provider.Vendors() { // decoding the catalog is all the time there is
			l.catalogs[v.Type] = []provider.Model{{ID: "m", Upstream: "m"}}
		}
		if l.readFile([]byte(text)) {
			l.readEnvironment()
			l.finish(true)
		}
		err := l.problems.err(l.file, l.secrets)
		if err == nil {
			return
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, "switchboard.yaml:") && !strings.HasPrefix(line, "environment: ") {
				t.Errorf("a problem without a place: %q", line)
			}
		}
		if strings.Contains(err.Error(), secretKey) {
			t.Errorf("the error of\n%s\nshows a key: %v", text, err)
		}
	})
}

// The start of a Lambda pays for this once per instance. Compare with benchstat.
func BenchmarkLoadExample(b *testing.B) {
	b.ReportAllocs()
	src := Source{Path: exampleFile, Getenv: env(exampleKeys()...)}
	for b.Loop() {
		if _, err := Load(src); err != nil {
			b.Fatal(err)
		}
	}
}
