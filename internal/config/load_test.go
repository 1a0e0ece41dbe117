package config

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/auth"
	"switchboard/internal/provider"
	"switchboard/internal/route"
	"switchboard/internal/wire"
)

func mustLoad(t testing.TB, text string, vars ...string) *Config {
	t.Helper()
	c, err := loadText(t, complete(text), vars...)
	if err != nil {
		t.Fatalf("Load of\n%s\n= %v", complete(text), err)
	}
	return c
}

func key(id, text string) provider.Key {
	return provider.Key{ID: id, Text: text, Print: provider.KeyPrint(text)}
}

func nano(n int64) *provider.NanoUSD { return &n }

func TestProviderIsReadWhole(t *testing.T) {
	c := mustLoad(t, `
providers:
  openai-main:
    type: openai
    base_url: https://x.example/v1/
    surfaces: [openai-responses, openai-chat-completions]
    api_keys: [env:K, {id: second, key: env:L}, literal-key-text]
    session_sticky_keys: false
    billing_model: subscription
    stream_options: false
    models:
      - llama3:8b
      - id: m-big
        upstream_model: real-big-1
        pricing: {input_per_mtok: 2.00, cached_input_per_mtok: 0.50, cache_write_per_mtok: 0, cache_write_1h_per_mtok: 0,
                  output_per_mtok: 8.00, audio_input_per_mtok: 32, audio_output_per_mtok: 64,
                  service_tiers: {flex: {factor: 0.5}, fast: {input_per_mtok: 7}}, above_input_tokens: {300000: {output_per_mtok: 9}, 200000: {input_per_mtok: 6.00}}}
`, "L=  second key\n")
	want := &provider.Provider{
		Identity: "openai-main", Type: "openai", BaseURL: "https://x.example/v1",
		Translate: true, CacheMarkers: true, TranslatedMaxTokens: 8192,
		Surfaces:   []wire.Surface{wire.Responses, wire.Chat},
		Keys:       []provider.Key{key("1", "key-of-the-test"), key("second", "second key"), key("3", "literal-key-text")},
		StickyKeys: false, Billing: provider.Subscription, StreamOptions: false,
		Models: []provider.Model{
			{ID: "llama3:8b", Upstream: "llama3:8b"},
			{ID: "m-big", Upstream: "real-big-1", Pricing: &provider.Pricing{
				Rates: provider.Rates{
					Input: nano(2e9), CachedInput: nano(5e8), CacheWrite: nano(0), CacheWrite1h: nano(0), Output: nano(8e9),
					AudioInput: nano(32e9), AudioOutput: nano(64e9),
				},
				ServiceTiers: map[string]provider.Tier{
					"flex": {Numerator: 1, Denominator: 2},
					"fast": {Numerator: 1, Denominator: 1, Rates: provider.Rates{Input: nano(7e9)}},
				},
				Above: []provider.AboveTier{
					{Tokens: 200000, Rates: provider.Rates{Input: nano(6e9)}},
					{Tokens: 300000, Rates: provider.Rates{Output: nano(9e9)}},
				},
			}},
		},
	}
	if diff := cmp.Diff([]*provider.Provider{want}, c.Providers); diff != "" {
		t.Errorf("Providers (-want +got):\n%s", diff)
	}
}

func TestProviderDefaults(t *testing.T) {
	c := mustLoad(t, "providers: {a: {type: anthropic, api_keys: []}}\n")
	p := c.Providers[0]
	vendor, _ := provider.VendorOf("anthropic")
	if p.BaseURL != vendor.BaseURL || !cmp.Equal(p.Surfaces, vendor.Surfaces) || !p.NoAuth || !p.StickyKeys || !p.StreamOptions || p.Billing != provider.PayAsYouGo {
		t.Errorf("provider = %+v, want the vendor's defaults without auth", p)
	}
	if diff := cmp.Diff(provider.CatalogModels(vendor), p.Models); diff != "" {
		t.Errorf("Models without models: (-catalog +got):\n%s", diff)
	}
}

// A model's price comes from the catalog by the name sent upstream, unless it is given.
func TestPriceComesFromTheCatalog(t *testing.T) {
	vendor, _ := provider.VendorOf("openai")
	known := provider.CatalogModels(vendor)[0]
	text := fmt.Sprintf("providers: {o: {type: openai, api_keys: [], models: [%q, {id: mine, upstream_model: %q}, {id: free, upstream_model: %q, pricing: {input_per_mtok: 0}}, unheard-of]}}\n", known.ID, known.Upstream, known.Upstream)
	got := mustLoad(t, text).Providers[0].Models
	want := []provider.Model{
		{ID: known.ID, Upstream: known.Upstream, Pricing: known.Pricing, ListPrice: true},
		{ID: "mine", Upstream: known.Upstream, Pricing: known.Pricing, ListPrice: true},
		{ID: "free", Upstream: known.Upstream, Pricing: &provider.Pricing{Rates: provider.Rates{Input: nano(0)}}},
		{ID: "unheard-of", Upstream: "unheard-of"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Models (-want +got):\n%s", diff)
	}
}

// S-SEC-02: a provider whose key is missing stays without keys, which routing leaves out.
func TestSSEC02EmptyVariableIsAWarning(t *testing.T) {
	tests := []struct {
		name, keys string
		vars       []string
		want       []provider.Key
		warnings   []string
	}{
		{
			"one of two", "[env:NOPE, env:K]", nil,
			[]provider.Key{key("2", "key-of-the-test")},
			[]string{"provider o: the environment variable NOPE of providers.o.api_keys[0] is empty, so this key is left out"},
		},
		{
			"all", "[env:NOPE, {id: x, key: env:BLANK}]",
			[]string{"BLANK= \n"},
			nil,
			[]string{
				"provider o: the environment variable NOPE of providers.o.api_keys[0] is empty, so this key is left out",
				"provider o: the environment variable BLANK of providers.o.api_keys[1].key is empty, so this key is left out",
				"provider o has no usable key and is left out",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := mustLoad(t, "providers: {o: {type: openai, models: [m], api_keys: "+tt.keys+"}}\n", tt.vars...)
			if diff := cmp.Diff(tt.want, c.Providers[0].Keys); diff != "" {
				t.Errorf("Keys (-want +got):\n%s", diff)
			}
			if c.Providers[0].NoAuth {
				t.Error("NoAuth = true, want false: the upstream does need a key")
			}
			if diff := cmp.Diff(tt.warnings, c.Warnings); diff != "" {
				t.Errorf("Warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeysOfTheVendorsVariables(t *testing.T) {
	text := "providers: {o: {type: openai, models: [m]}}\n"
	c := mustLoad(t, text, "OPENAI_API_KEY=one", "OPENAI_API_KEY_3= three ")
	want := []provider.Key{key("1", "one"), key("3", "three")}
	if diff := cmp.Diff(want, c.Providers[0].Keys); diff != "" {
		t.Errorf("Keys (-want +got):\n%s", diff)
	}
	c = mustLoad(t, text)
	if want := []string{"provider o has no api_keys, OPENAI_API_KEY is empty, and so it is left out"}; !cmp.Equal(want, c.Warnings) {
		t.Errorf("Warnings = %q, want %q", c.Warnings, want)
	}
	_, err := loadText(t, complete(text), "OPENAI_API_KEY="+secretKey, "OPENAI_API_KEY_2="+secretKey)
	if want := "environment: OPENAI_API_KEY_2: the same key as OPENAI_API_KEY; set each key once"; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestAuthIsRead(t *testing.T) {
	c := mustLoad(t, "auth:\n  keys:\n    - {name: a, sha256: "+digestA+", user_path: /team/}\n    - {sha256: '"+strings.ToUpper(digestB)+"', user_path: /}\n  admin: {sha256: "+strings.Repeat("12", 32)+"}\n")
	a, _ := parseDigest(digestA)
	b, _ := parseDigest(digestB)
	admin, _ := parseDigest(strings.Repeat("12", 32)) // all digits: YAML reads a number
	want := Auth{Mode: ModeKeys, Keys: []auth.Key{{Name: "a", SHA256: a, UserPath: "/team"}, {Name: "2", SHA256: b}}, Admin: &admin}
	if diff := cmp.Diff(want, c.Auth); diff != "" {
		t.Errorf("Auth (-want +got):\n%s", diff)
	}
	c = mustLoad(t, "auth: {keys: [{sha256: "+digestA+"}], admin: {sha256: "+digestB+"}}\n", "SWITCHBOARD_ADMIN_KEY=the admin key")
	if want := sha256.Sum256([]byte("the admin key")); *c.Auth.Admin != want {
		t.Errorf("Admin = %x, want the digest of the variable, %x", *c.Auth.Admin, want)
	}
	c = mustLoad(t, "", "SWITCHBOARD_ADMIN_KEY= ")
	if c.Auth.Admin != nil {
		t.Errorf("Admin = %x with an empty variable, want none", *c.Auth.Admin)
	}
}

func TestAdminKeyMustNotBeAClientKey(t *testing.T) {
	digest := sha256.Sum256([]byte(secretKey))
	_, err := loadText(t, complete(fmt.Sprintf("auth: {keys: [{sha256: %x}]}\n", digest)), "SWITCHBOARD_ADMIN_KEY="+secretKey)
	if err == nil || !strings.HasPrefix(err.Error(), "environment: SWITCHBOARD_ADMIN_KEY: a client key is the admin key") || strings.Contains(err.Error(), secretKey) {
		t.Errorf("Load = %v, want that the admin key needs to be another", err)
	}
}

func TestNoneIsForLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:8080": true, "127.8.9.1:1": true, "localhost:8080": true, "LOCALHOST:1": true, "'[::1]:8080'": true, "127.0.0.1:0": true,
		"0.0.0.0:8080": false, "':8080'": false, "'[::]:8080'": false, "192.0.2.1:8080": false, "example.com:8080": false,
		"localhost.example:80": false, "'[::ffff:127.0.0.1]:80'": true, "'[::ffff:0.0.0.0]:80'": false,
	} {
		_, err := loadText(t, complete("auth: {mode: none}\nlisten: "+listen+"\n"))
		if (err == nil) != want {
			t.Errorf("Load with mode none and listen %s = %v, want it to start: %v", listen, err, want)
		}
	}
}

func TestSettingsAreRead(t *testing.T) {
	c := mustLoad(t, "timeouts: {connect: 1s, first_byte: 2s, first_byte_unary: 3s, idle: 4s}\nlimits: {max_body: 2MB, max_session_id: 9}\nrouting: {max_attempts: 7}\nsession: {idle_ttl: 1h30m}\ndegrade: {server_error: 10m, server_error_after: 1}\nsession_db_path: ./x.db\n")
	type settings struct {
		Connect, FirstByte, Unary, Idle, TTL, ServerError, ServerErrorMax time.Duration
		Body                                                              int64
		SessionID, Attempts, After                                        int
		DB                                                                string
	}
	got := settings{
		c.Timeouts.Connect, c.Timeouts.FirstByte, c.Timeouts.FirstByteUnary, c.Timeouts.Idle, c.IdleTTL,
		c.Degrade.ServerError, c.Degrade.ServerErrorMax, c.MaxBody, c.Session.MaxLength, c.MaxAttempts, c.Degrade.ServerErrorAfter, c.SessionDBPath,
	}
	want := settings{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 90 * time.Minute, 10 * time.Minute, 10 * time.Minute, 2000000, 9, 7, 1, "./x.db"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	c := mustLoad(t, `
providers:
  a: &a
    type: openai
    api_keys: []
    models: [&m {id: x, pricing: &p {input_per_mtok: 1, output_per_mtok: 2}}]
  b:
    <<: *a
    models: [*m, {id: y, pricing: {<<: *p, output_per_mtok: 3}}]
`)
	b := c.Providers[1]
	if b.Type != "openai" || !b.NoAuth || len(b.Models) != 2 || *b.Models[0].Pricing.Output != 2e9 || *b.Models[1].Pricing.Output != 3e9 || *b.Models[1].Pricing.Input != 1e9 {
		t.Errorf("provider b = %+v, want what a has but for the models", b)
	}
}

func TestVirtualModelsAreRead(t *testing.T) {
	c := mustLoad(t, "virtual_models:\n  - source: smart\n    targets: [{model: o/m, weight: 2}, {model: m}]\n  - {source: once, strategy: failover, session_affinity: false, targets: [{model: smart}], user_paths: [/team/a/, /], description: d, enabled: false}\n")
	want := []route.Virtual{
		{Source: "smart", Strategy: "round_robin", Affinity: true, Targets: []route.VirtualTarget{{Model: "o/m", Weight: 2}, {Model: "m", Weight: 1}}},
		{
			Source: "once", Strategy: "failover", Targets: []route.VirtualTarget{{Model: "smart", Weight: 1}},
			UserPaths: []string{"/team/a", "/"}, Description: "d", Disabled: true,
		},
	}
	if diff := cmp.Diff(want, c.Virtuals); diff != "" {
		t.Errorf("Virtuals (-want +got):\n%s", diff)
	}
}

func TestModelsEndpoint(t *testing.T) {
	for text, want := range map[string]bool{"": false, "models_endpoint: {only_virtual: true}\n": true} {
		if c := mustLoad(t, text); c.OnlyVirtual != want {
			t.Errorf("%q: OnlyVirtual = %v, want %v", text, c.OnlyVirtual, want)
		}
	}
	c, err := Load(Source{Getenv: env("OPENAI_API_KEY=k-one", "KEEP_ONLY_ALIASES_AT_MODELS_ENDPOINT=true")})
	if err != nil || !c.OnlyVirtual {
		t.Errorf("by the environment: %+v, %v, want only virtual models", c, err)
	}
}

// Every virtual model with a bad target is named, each where it stands.
func TestVirtualModelProblemsArePlaced(t *testing.T) {
	_, err := loadText(t, complete("virtual_models:\n  - {source: good, targets: [{model: o/m}]}\n  - {source: bad-one, targets: [{model: o/nope}]}\n  - {source: bad-two, targets: [{model: nobody}]}\n"))
	if err == nil {
		t.Fatal("Load = nil, want two problems")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 {
		t.Fatalf("Load = %v, want two problems", err)
	}
	for i, want := range []string{"switchboard.yaml:3:14: virtual_models[1].source: ", "switchboard.yaml:4:14: virtual_models[2].source: "} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("problem %d = %s, want it to begin %s", i, lines[i], want)
		}
	}
	_, err = loadText(t, complete("virtual_models:\n  - {source: a, targets: [{model: b}]}\n  - {source: b, targets: [{model: c}]}\n  - {source: c, targets: [{model: a}]}\n"))
	if err == nil || !strings.Contains(err.Error(), "virtual_models[") {
		t.Errorf("Load of a cycle = %v, want it to name a virtual model of it", err)
	}
}

// The example of the manual's first version, in one-line style, and the same kind of file
// written as JSON, which is YAML too.
func TestStylesOfWriting(t *testing.T) {
	vars := []string{"OPENAI_API_KEY=one", "OPENAI_API_KEY_2=two"}
	flow := `listen: 127.0.0.1:8080            # one machine only
session_db_path: ./sessions.db    # one machine only
auth:
  mode: keys                      # keys | none (loopback only) | iam
  keys:
    - {name: alpha, sha256: ` + digestA + `, user_path: /team/alpha}
  admin: {sha256: ` + digestB + `}          # or env SWITCHBOARD_ADMIN_KEY (the key itself)
session: {enabled: true, auto_detect: true, builtin_rules: true, idle_ttl: 6h, headers: [{header: X-My-Session}]}
providers:
  openai-main:                    # the provider identity
    type: openai                  # openai | anthropic | a preset (groq, openrouter, …)
    base_url: https://api.openai.com/v1    # with the version segment, for every type
    surfaces: [openai-chat-completions, openai-responses, openai-embeddings]   # default by type
    api_keys: [env:OPENAI_API_KEY, {id: second, key: env:OPENAI_API_KEY_2}]    # [] = none needed
    session_sticky_keys: true
    billing_model: pay_as_you_go  # subscription | pay_as_you_go | free
    stream_options: true
    models:                       # names, or objects; absent: the catalog's list for the type
      - m-oai
      - id: m-big
        upstream_model: real-big-1
        pricing: {input_per_mtok: 2.00, cached_input_per_mtok: 0.50, cache_write_per_mtok: 0, cache_write_1h_per_mtok: 0,
                  output_per_mtok: 8.00, audio_input_per_mtok: 32, audio_output_per_mtok: 64,
                  service_tiers: {flex: {factor: 0.5}}, above_input_tokens: {200000: {input_per_mtok: 6.00}}}
virtual_models:
  - source: smart
    strategy: round_robin         # round_robin | cost | failover | adaptive
    session_affinity: true
    targets: [{model: openai-main/m-oai, weight: 2}, {model: openai-main/m-big}]
routing: {max_attempts: 4}
timeouts: {connect: 5s, first_byte: 60s, first_byte_unary: 600s, idle: 120s}
degrade: {rate_limit: 60s, overload: 30s, server_error: 30s, server_error_max: 5m, server_error_after: 3, timeout: 10s, timeout_max: 2m}
limits: {max_body: 32MiB, max_session_id: 200}
`
	json := `{"listen":"127.0.0.1:8080","session_db_path":"./sessions.db","auth":{"mode":"keys","keys":[{"name":"alpha","sha256":"` + digestA + `","user_path":"/team/alpha"}],"admin":{"sha256":"` + digestB + `"}},
"session":{"headers":[{"header":"X-My-Session"}]},
"providers":{"openai-main":{"type":"openai","base_url":"https://api.openai.com/v1","api_keys":["env:OPENAI_API_KEY",{"id":"second","key":"env:OPENAI_API_KEY_2"}],
"models":["m-oai",{"id":"m-big","upstream_model":"real-big-1","pricing":{"input_per_mtok":2.00,"cached_input_per_mtok":0.50,"cache_write_per_mtok":0,"cache_write_1h_per_mtok":0,"output_per_mtok":8,
"audio_input_per_mtok":32,"audio_output_per_mtok":64,"service_tiers":{"flex":{"factor":0.5}},"above_input_tokens":{"200000":{"input_per_mtok":6.00}}}}]}},
"virtual_models":[{"source":"smart","targets":[{"model":"openai-main/m-oai","weight":2},{"model":"openai-main/m-big"}]}]}`
	first, err := loadText(t, flow, vars...)
	if err != nil {
		t.Fatalf("Load of the one-line style = %v", err)
	}
	second, err := loadText(t, json, vars...)
	if err != nil {
		t.Fatalf("Load of JSON = %v", err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the two styles differ (-YAML +JSON):\n%s", diff)
	}
	if want := []provider.Key{key("1", "one"), key("second", "two")}; !cmp.Equal(want, first.Providers[0].Keys) {
		t.Errorf("Keys = %v, want %v", first.Providers[0].Keys, want)
	}
}

// Texts with a colon, in every place where YAML lets them be plain.
func TestColonsInPlainTexts(t *testing.T) {
	for _, list := range []string{
		"[llama3:8b]", "[ llama3:8b , other ]", "[other, {id: llama3:8b}]", "[{upstream_model: x:y, id: llama3:8b}]", "['llama3:8b']", "\n      - llama3:8b\n    ", "\n      - id: llama3:8b\n    ",
	} {
		for _, text := range []string{
			"providers:\n  o:\n    type: openai\n    api_keys: [env:K]\n    models: " + list + "\n",
			"providers: {o: {type: openai, api_keys: [env:K], models: " + list + "}}\n",
		} {
			if strings.Contains(list, "\n") && strings.Contains(text, "{o:") {
				continue // block style does not go into braces
			}
			c, err := loadText(t, complete(text))
			if err != nil {
				t.Errorf("Load of\n%s= %v", text, err)
				continue
			}
			if _, ok := c.Providers[0].Model("llama3:8b"); !ok || c.Providers[0].Keys[0].Text != "key-of-the-test" {
				t.Errorf("Load of\n%s= %+v, want the model llama3:8b and the key", text, c.Providers[0])
			}
		}
	}
}
