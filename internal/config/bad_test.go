package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	digestA   = "8d2c62d6a4c33b1a6eff2bcf0ba5dd1a4d1fb6a2a0ec7e5a5f5e6b9a4be35f10"
	digestB   = "1f6b1f0f3a8a4c6b9c1d0a5e7d3b2c4f6e8a9b0c1d2e3f405162738495a6b7c8"
	emptySHA  = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	goodAuth  = "auth: {keys: [{name: a, sha256: " + digestA + ", user_path: /a}]}\n"
	goodOne   = "providers: {o: {type: openai, api_keys: [env:K], models: [m]}}\n"
	secretKey = "sk-test-AAAABBBBCCCCDDDD1234"
)

// complete adds the sections that every file needs and the text does not have. They come
// last, so that lines count from the text's own beginning.
func complete(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, good := range []string{goodAuth, goodOne} {
		section, _, _ := strings.Cut(good, " ")
		if !strings.Contains("\n"+text, "\n"+section) {
			text += good
		}
	}
	return text
}

// loadText loads a file named switchboard.yaml with that text.
func loadText(t testing.TB, text string, vars ...string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Source{Path: path, Getenv: env(append([]string{"K=key-of-the-test"}, vars...)...)})
	if err != nil {
		err = shortened{strings.ReplaceAll(err.Error(), path, "switchboard.yaml")}
	}
	return c, err
}

type shortened struct{ text string }

func (s shortened) Error() string { return s.text }

func TestBadFiles(t *testing.T) {
	tests := []struct {
		name, file string
		vars       []string
		want       []string // without "switchboard.yaml:"
	}{
		{
			name: "misspelt key of a provider",
			file: "providers:\n  openai-main:\n    type: openai\n    base_ulr: https://x.example/v1\n    api_keys: []\n    models: [m]\n",
			want: []string{`4:5: providers.openai-main.base_ulr: unknown key; did you mean "base_url"?`},
		},
		{
			name: "misspelt key at the top",
			file: "lisen: 127.0.0.1:1\n",
			want: []string{`1:1: lisen: unknown key; did you mean "listen"?`},
		},
		{
			name: "a key like no other lists the known ones",
			file: "routing: {zzzzzz: 3}\n",
			want: []string{`1:11: routing.zzzzzz: unknown key; known here: max_attempts`},
		},
		{
			name: "in a list within a list",
			file: "virtual_models:\n  - source: s\n    targets:\n      - {model: o/m, wieght: 2}\n",
			want: []string{`4:22: virtual_models[0].targets[0].wieght: unknown key; did you mean "weight"?`},
		},
		{
			name: "key given twice",
			file: "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n",
			want: []string{`2:1: listen: given twice; it is in line 1 already`},
		},
		{
			name: "provider identity given twice",
			file: "providers:\n  o: {type: openai, api_keys: [], models: [m]}\n  o: {type: openai, api_keys: [], models: [m]}\n",
			want: []string{`3:3: providers.o: given twice; it is in line 2 already`},
		},
		{
			name: "wrong types",
			file: "listen: [a]\nlog_level: true\nsession: [x]\nrouting: {max_attempts: many}\nlimits: {max_body: {}}\ntimeouts: 5s\nvirtual_models: {a: b}\nproviders:\n  o: {type: openai, api_keys: env:K, models: m, session_sticky_keys: 'yes'}\n",
			want: []string{
				`1:9: listen: found a list where text belongs`,
				`2:12: log_level: found true or false where text belongs; put it in quotes if it is meant`,
				`3:1: session: found a list where a mapping (key: value) belongs`,
				`4:25: routing.max_attempts: not a whole number from 1 to 100`,
				`5:20: limits.max_body: found a mapping where a size belongs; write for example 32MiB`,
				`6:1: timeouts: found text where a mapping (key: value) belongs`,
				`7:1: virtual_models: found a mapping where a list belongs`,
				`9:21: providers.o.api_keys: found text where a list belongs`,
				`9:38: providers.o.models: found text where a list belongs`,
				`9:70: providers.o.session_sticky_keys: found text where true or false belongs`,
			},
		},
		{
			name: "durations",
			file: "timeouts: {connect: 5, first_byte: -1s, first_byte_unary: 0s, idle: soon}\nsession: {idle_ttl: 500ms}\n",
			want: []string{
				`1:21: timeouts.connect: "5" is not a duration above zero; write for example 500ms, 30s or 6h`,
				`1:36: timeouts.first_byte: "-1s" is not a duration above zero; write for example 500ms, 30s or 6h`,
				`1:59: timeouts.first_byte_unary: "0s" is not a duration above zero; write for example 500ms, 30s or 6h`,
				`1:69: timeouts.idle: "soon" is not a duration above zero; write for example 500ms, 30s or 6h`,
				`2:21: session.idle_ttl: 500ms is less than a second; the store counts in seconds`,
			},
		},
		{
			name: "degrade",
			file: "degrade:\n  server_error: 10m\n  server_error_max: 5m\n  server_error_after: 0\n  overload: 10m\n",
			want: []string{
				`3:21: degrade.server_error_max: 5m0s is less than server_error, which is 10m0s; write at least that`,
				`4:23: degrade.server_error_after: not a whole number from 1 to 1000`,
			},
		},
		{
			name: "sizes and counts",
			file: "limits: {max_body: 32GiB, max_session_id: 0}\nrouting: {max_attempts: -1}\n",
			want: []string{
				`1:20: limits.max_body: "32GiB" is not a size above zero; write a whole number with B, KB, KiB, MB or MiB, for example 32MiB`,
				`1:43: limits.max_session_id: not a whole number from 1 to 2048`,
				`2:25: routing.max_attempts: not a whole number from 1 to 100`,
			},
		},
		{
			name: "enums",
			file: "log_level: warning\nauth: {mode: key}\nproviders:\n  o: {type: opnai, billing_model: paid, surfaces: [chat, openai-chat-completions, openai-chat-completions], api_keys: [], models: [m]}\nvirtual_models: [{source: s, strategy: roundrobin, targets: [{model: o/m}]}]\n",
			want: []string{
				`1:12: log_level: "warning" is not known; one of debug, info, warn, error; did you mean "warn"?`,
				`2:14: auth.mode: "key" is not known; one of keys, none, iam; did you mean "keys"?`,
				`4:13: providers.o.type: "opnai" is not known; one of openai, anthropic, gemini, groq, xai, deepseek, mistral, together, fireworks, cerebras, openrouter, opencode, azure, bedrock, ollama, vllm, lmstudio; did you mean "openai"?`,
				`4:35: providers.o.billing_model: "paid" is not known; one of subscription, pay_as_you_go, free`,
				`4:52: providers.o.surfaces[0]: "chat" is not known; one of openai-chat-completions, openai-responses, anthropic-messages, openai-embeddings; did you mean "openai-chat-completions"?`,
				`4:83: providers.o.surfaces[2]: openai-chat-completions is listed twice`,
				`5:40: virtual_models[0].strategy: "roundrobin" is not known; one of round_robin, cost, failover, adaptive; did you mean "round_robin"?`,
			},
		},
		{
			name: "addresses",
			file: "listen: 8080\nproviders:\n" +
				"  a: {type: openai, api_keys: [], models: [m], base_url: api.example/v1}\n" +
				"  b: {type: openai, api_keys: [], models: [m], base_url: 'https://u:secret-pw@x.example/v1'}\n" +
				"  c: {type: openai, api_keys: [], models: [m], base_url: 'https://x.example/v1?key=secret-pw'}\n" +
				"  d: {type: openai, api_keys: [], models: [m], base_url: 'https://x.example/v1#f'}\n" +
				"  e: {type: openai, api_keys: [], models: [m], base_url: 'ftp://x.example/v1'}\n" +
				"  f: {type: openai, api_keys: [], models: [m], base_url: ''}\n" +
				"  g: {type: openai, api_keys: [], models: [m], base_url: 'https://x.example:99999/v1'}\n",
			want: []string{
				`1:9: listen: "8080" is not an address to listen on; write host:port, for example 127.0.0.1:8080`,
				`3:58: providers.a.base_url: not an absolute http or https URL; write for example https://api.openai.com/v1`,
				`4:58: providers.b.base_url: a URL with user or password; put the credential into api_keys`,
				`5:58: providers.c.base_url: a URL with a query; leave it out`,
				`6:58: providers.d.base_url: a URL with a fragment; leave it out`,
				`7:58: providers.e.base_url: not an absolute http or https URL; write for example https://api.openai.com/v1`,
				`8:58: providers.f.base_url: not an absolute http or https URL; write for example https://api.openai.com/v1`,
				`9:58: providers.g.base_url: a URL with a port that does not exist; write for example https://api.openai.com/v1`,
			},
		},
		{
			name: "upstream is switchboard itself",
			file: "listen: :8080\nauth: {keys: [{sha256: " + digestA + "}]}\nproviders: {o: {type: openai, api_keys: [], models: [m], base_url: 'http://localhost:8080/v1'}}\n",
			want: []string{`3:68: providers.o.base_url: this is where switchboard itself listens; write the provider's own address`},
		},
		{
			name: "provider identities and required keys",
			file: "providers:\n  '': {type: openai, api_keys: [], models: [m]}\n  a/b: {type: openai, api_keys: [], models: [m]}\n  \"a\\nb\": {type: openai, api_keys: [], models: [m]}\n  c: {api_keys: [], models: []}\n",
			want: []string{
				`2:3: providers."": the provider identity is empty; write for example openai-main`,
				`3:3: providers."a/b": the provider identity has a / in it, which separates provider and model; write for example openai-main`,
				`4:3: providers."a\nb": the provider identity has a control character; write for example openai-main`,
				`5:3: providers.c.type: missing; one of openai, anthropic, gemini, groq, xai, deepseek, mistral, together, fireworks, cerebras, openrouter, opencode, azure, bedrock, ollama, vllm, lmstudio`,
				`5:29: providers.c.models: empty; list at least one model, or leave the key out for the catalog's list`,
			},
		},
		{
			name: "no provider in the file",
			file: "providers: {}\n",
			want: []string{`1:1: providers: no provider; add one, or leave the key out to take them from OPENAI_API_KEY and the like`},
		},
		{
			name: "models",
			file: "providers:\n  o:\n    type: openai\n    api_keys: []\n    models: [m, '', {id: m}, {upstream_model: x}, [y]]\n",
			want: []string{
				`5:17: providers.o.models[1]: the model name is empty; write for example gpt-5`,
				`5:21: providers.o.models[2]: the model "m" is listed twice`,
				`5:30: providers.o.models[3].id: missing; the name that clients use`,
				`5:51: providers.o.models[4]: found a list where text belongs`,
			},
		},
		{
			name: "prices",
			file: "providers:\n  o:\n    type: openai\n    api_keys: []\n    models:\n      - id: m\n        pricing:\n          input_per_mtok: -1\n          output_per_mtok: cheap\n          cached_input_per_mtok: 0.0000000001\n          audio_input_per_mtok: []\n          service_tiers: {flex: {factor: half}, batch: {}}\n          above_input_tokens: {0: {input_per_mtok: 1}, 200k: {input_per_mtok: 1}, 5: {}}\n",
			want: []string{
				`8:27: providers.o.models[0].pricing.input_per_mtok: must be a decimal number like 0.075; write US dollars per million tokens, for example 2.50`,
				`9:28: providers.o.models[0].pricing.output_per_mtok: must be a decimal number like 0.075; write US dollars per million tokens, for example 2.50`,
				`10:34: providers.o.models[0].pricing.cached_input_per_mtok: must have at most nine decimals; write US dollars per million tokens, for example 2.50`,
				`11:33: providers.o.models[0].pricing.audio_input_per_mtok: found a list where a price belongs; write US dollars per million tokens, for example 2.50`,
				`12:42: providers.o.models[0].pricing.service_tiers.flex.factor: must be a decimal number like 0.075; write what the standard price is multiplied by, for example 0.5`,
				`12:49: providers.o.models[0].pricing.service_tiers.batch: empty; write a factor or prices`,
				`13:32: providers.o.models[0].pricing.above_input_tokens.0: not a number of tokens above zero; write for example 200000`,
				`13:56: providers.o.models[0].pricing.above_input_tokens.200k: not a number of tokens above zero; write for example 200000`,
				`13:83: providers.o.models[0].pricing.above_input_tokens.5: empty; write the prices that differ`,
			},
		},
		{
			name: "api keys",
			file: "providers:\n  o:\n    type: openai\n    models: [m]\n    api_keys: [env:K, env:K, {id: '1', key: env:L}, {id: x}, {id: '', key: env:L}, env:, '', $K, ssm:/a, [z], true]\n",
			vars: []string{"L=another key"},
			want: []string{
				`5:23: providers.o.api_keys[1]: the same key as providers.o.api_keys[0]; list each key once`,
				`5:30: providers.o.api_keys[2]: the key id "1" is taken already; give it another id`,
				`5:53: providers.o.api_keys[3].key: missing; env:NAME`,
				`5:67: providers.o.api_keys[4].id: the key id is empty; write for example second`,
				`5:84: providers.o.api_keys[5]: env: without the name of a variable after it; write for example env:OPENAI_API_KEY`,
				`5:90: providers.o.api_keys[6]: an empty key; write env:NAME, or api_keys: [] when none is needed`,
				`5:94: providers.o.api_keys[7]: neither a key nor a reference to one; write env:NAME, ssm:/path or secretsmanager:name#key`,
				`5:98: providers.o.api_keys[8]: ssm: and secretsmanager: only work on AWS; write env:NAME here`,
				`5:106: providers.o.api_keys[9]: found a list where text belongs`,
				`5:111: providers.o.api_keys[10]: found true or false where text belongs; put it in quotes if it is meant`,
			},
		},
		{
			name: "a space after env: makes a mapping",
			file: "providers: {o: {type: openai, models: [m], api_keys: [env: K]}}\n",
			want: []string{
				`1:55: providers.o.api_keys[0].env: unknown key; known here: id, key`,
				`1:55: providers.o.api_keys[0].key: missing; env:NAME`,
			},
		},
		{
			name: "key with a line break inside",
			file: "providers: {o: {type: openai, models: [m], api_keys: [env:L]}}\n",
			vars: []string{"L=one\ntwo"},
			want: []string{`1:55: providers.o.api_keys[0]: the key has a control character in it; store it on one line`},
		},
		{
			name: "client keys",
			file: "auth:\n  keys:\n    - {name: a, sha256: " + digestA + "}\n    - {name: a, sha256: " + strings.ToUpper(digestB) + "}\n    - {name: b, sha256: " + strings.ToUpper(digestA) + "}\n    - {name: c, sha256: ''}\n    - {name: d, sha256: " + secretKey + "}\n    - {name: e, sha256: " + emptySHA + "}\n    - {name: f}\n    - {name: '', sha256: " + digestB + "}\n",
			want: []string{
				`4:7: auth.keys[1].name: "a" is the name of auth.keys[0] already; choose another`,
				`5:25: auth.keys[2].sha256: the same key as auth.keys[0]; each client needs its own`,
				`6:25: auth.keys[3].sha256: not a SHA-256 digest of 64 hex digits; switchboard key new prints a key and its digest`,
				`7:25: auth.keys[4].sha256: not a SHA-256 digest of 64 hex digits; switchboard key new prints a key and its digest`,
				`8:25: auth.keys[5].sha256: the digest of an empty key, which would let everybody in; switchboard key new prints a key and its digest`,
				`9:7: auth.keys[6].sha256: missing; the digest of the key; switchboard key new prints one`,
				`10:14: auth.keys[7].name: the name is empty; write for example alpha`,
				`10:26: auth.keys[7].sha256: the same key as auth.keys[1]; each client needs its own`,
			},
		},
		{
			name: "user paths",
			file: "auth:\n  keys:\n    - {name: a, sha256: " + digestA + ", user_path: team}\n    - {name: b, sha256: " + digestB + ", user_path: \"/a\\u0000b\"}\n",
			want: []string{
				`3:102: auth.keys[0].user_path: "team" is a user path that does not begin with /; write for example /team/app`,
				`4:102: auth.keys[1].user_path: "/a\x00b" is a user path with a control character; write for example /team/app`,
			},
		},
		{
			// S-SEC-04
			name: "no client keys",
			file: "auth: {keys: []}\n",
			want: []string{`1:8: auth.keys: no client key, so nobody could call; add one made by switchboard key new, or set auth.mode: none on a loopback address`},
		},
		{
			name: "no auth section",
			file: "listen: 127.0.0.1:1\n" + goodOne + "#\nauth:\n",
			want: []string{`4:1: auth.keys: no client key, so nobody could call; add one made by switchboard key new, or set auth.mode: none on a loopback address`},
		},
		{
			name: "open to the network",
			file: "auth: {mode: none}\nlisten: 0.0.0.0:8080\n",
			want: []string{`1:14: auth.mode: none would let everybody in, listening on "0.0.0.0:8080"; use keys, or listen on 127.0.0.1`},
		},
		{
			name: "open on Lambda",
			file: "auth: {mode: none}\n",
			vars: []string{"AWS_LAMBDA_FUNCTION_NAME=route"},
			want: []string{`1:14: auth.mode: none would let everybody in, on Lambda; use keys, or iam with a Function URL of AuthType AWS_IAM`},
		},
		{
			name: "iam where nobody checks it",
			file: "auth: {mode: iam}\nlisten: ':8080'\n",
			want: []string{`1:14: auth.mode: iam would let everybody in, listening on ":8080": only a Lambda Function URL checks IAM; use keys`},
		},
		{
			name: "admin key of a client",
			file: "auth: {keys: [{name: a, sha256: " + digestA + "}], admin: {sha256: " + digestA + "}}\n",
			want: []string{`1:117: auth.admin.sha256: a client key is the admin key as well; the admin API needs a key of its own`},
		},
		{
			name: "admin key that is empty",
			file: "auth: {keys: [{name: a, sha256: " + digestA + "}], admin: {sha256: ''}}\n",
			want: []string{`1:117: auth.admin.sha256: not a SHA-256 digest of 64 hex digits; switchboard key new prints a key and its digest`},
		},
		{
			name: "virtual models",
			file: "virtual_models:\n  - {source: a, targets: []}\n  - {targets: [{model: o/m}]}\n  - {source: b, targets: [o/m, {weight: 0}]}\n  - {source: c, targets: [{model: o/m}]}\n  - {source: c, targets: [{model: o/m}]}\n  - {source: d, targets: [{model: o/m}], user_paths: [team, '']}\n",
			want: []string{
				`2:26: virtual_models[0].targets: empty; write at least one {model: provider/model}`,
				`3:5: virtual_models[1].source: missing; the name that clients use`,
				`4:27: virtual_models[2].targets[0]: found text where {model: provider/model, weight: 1} belongs`,
				`4:32: virtual_models[2].targets[1].model: missing; provider/model, or another name of yours`,
				`4:41: virtual_models[2].targets[1].weight: not a whole number from 1 to 1000`,
				`6:14: virtual_models[4].source: "c" is defined in line 5 already`,
				`7:55: virtual_models[5].user_paths[0]: "team" is a user path that does not begin with /; write for example /team/app`,
				`7:61: virtual_models[5].user_paths[1]: empty; write for example /team/app, or "/" for everybody`,
			},
		},
		{
			name: "session header rules",
			file: "session:\n  headers:\n    - X-My\n    - {transform: session-uuid}\n",
			want: []string{
				`3:7: session.headers[0]: found text where a mapping (key: value) belongs`,
				`4:7: session.headers[1].header: missing; the name of a header`,
			},
		},
		{
			name: "nothing where something belongs",
			file: "listen:\nproviders:\n  o: {type: openai, models: , api_keys: }\n",
			want: []string{
				`1:1: listen: found nothing where text belongs`,
				`3:21: providers.o.models: found nothing where a list belongs`,
				`3:31: providers.o.api_keys: found nothing where a list belongs`,
			},
		},
		{
			name: "no YAML",
			file: "auth:\n  keys: [a\nlisten: b: c\n",
			want: []string{`3:1: this is not valid YAML: ',' or ']' must be specified`},
		},
		{
			name: "alias of nothing",
			file: "auth: *nope\n",
			want: []string{`1:7: an alias (*name) without an anchor (&name) of its name before it`},
		},
		{
			name: "key text where a name belongs",
			file: "providers:\n  o:\n    type: openai\n    " + secretKey + ": x\n    api_keys:\n      - " + secretKey + ": x\n    models: [m]\n" + secretKey + ": y\nlog_level: " + secretKey + "\n",
			want: []string{
				`4:5: providers.o: unknown key (not shown); known here: type, base_url, surfaces, api_keys, session_sticky_keys, billing_model, stream_options, session_hint, resource, api_version, region, translation, models`,
				`6:9: providers.o.api_keys[0]: unknown key (not shown); known here: id, key`,
				`6:9: providers.o.api_keys[0].key: missing; env:NAME`,
				`8:1: unknown key (not shown); known here: listen, session_db_path, log_level, auth, session, providers, virtual_models, translation, models_endpoint, routing, timeouts, degrade, limits`,
				`9:12: log_level: the value (not shown) is not known; one of debug, info, warn, error`,
			},
		},
		{
			name: "lines that end in CR LF, after a byte order mark",
			file: "\ufefflisten: 127.0.0.1:1\r\nroutng: 5\r\nlog_level: x\r\n",
			want: []string{
				`2:1: routng: unknown key; did you mean "routing"?`,
				`3:12: log_level: "x" is not known; one of debug, info, warn, error`,
			},
		},
		{
			name: "two documents",
			file: goodAuth + "---\n" + goodOne,
			want: []string{`3:1: a second YAML document; write one`},
		},
		{
			name: "no mapping",
			file: "- auth:\n- providers:\n",
			want: []string{`1:1: found a list where a mapping (key: value) belongs`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := complete(tt.file)
			if strings.HasPrefix(tt.name, "no mapping") {
				text = tt.file
			}
			_, err := loadText(t, text, tt.vars...)
			var want []string
			for _, line := range tt.want {
				want = append(want, "switchboard.yaml:"+line)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
				t.Errorf("Load of\n%s\n(-want +got):\n%s", text, diff)
			}
			for _, secret := range []string{secretKey, "secret-pw", "key-of-the-test"} {
				if strings.Contains(got, secret) {
					t.Errorf("the error shows %q", secret)
				}
			}
		})
	}
}
