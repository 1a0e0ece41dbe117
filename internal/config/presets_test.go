package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/provider"
)

// presetOf is what presets differ in.
type presetOf struct {
	BaseURL, APIVersion string
	Streams, Hint, Open bool
	Models              []string
}

func presetsOf(c *Config) map[string]presetOf {
	got := map[string]presetOf{}
	for _, p := range c.Providers {
		one := presetOf{BaseURL: p.BaseURL, APIVersion: p.APIVersion, Streams: p.StreamOptions, Hint: p.SessionHint, Open: p.NoAuth}
		for _, m := range p.Models {
			one.Models = append(one.Models, m.ID+"="+m.Upstream)
		}
		got[p.Identity] = one
	}
	return got
}

func TestPresetsInAFile(t *testing.T) {
	tests := []struct {
		text string
		vars []string
		want presetOf
	}{
		{text: "{type: mistral, api_keys: [k]}", want: presetOf{BaseURL: "https://api.mistral.ai/v1"}},
		{text: "{type: mistral, api_keys: [k], stream_options: true}", want: presetOf{BaseURL: "https://api.mistral.ai/v1", Streams: true}},
		{text: "{type: together, api_keys: [k], models: [a/b]}", want: presetOf{BaseURL: "https://api.together.xyz/v1", Streams: true, Models: []string{"a/b=a/b"}}},
		{text: "{type: openai, api_keys: [k], models: [m]}", want: presetOf{BaseURL: "https://api.openai.com/v1", Streams: true, Models: []string{"m=m"}}},
		{text: "{type: openai, api_keys: [k], models: [m], session_hint: true}", want: presetOf{BaseURL: "https://api.openai.com/v1", Streams: true, Hint: true, Models: []string{"m=m"}}},
		{text: "{type: openrouter, api_keys: [k], models: [m]}", want: presetOf{BaseURL: "https://openrouter.ai/api/v1", Streams: true, Hint: true, Models: []string{"m=m"}}},
		{text: "{type: openrouter, api_keys: [k], models: [m], session_hint: false}", want: presetOf{BaseURL: "https://openrouter.ai/api/v1", Streams: true, Models: []string{"m=m"}}},
		{text: "{type: ollama}", want: presetOf{BaseURL: "http://127.0.0.1:11434/v1", Streams: true, Open: true}},
		{text: "{type: vllm}", vars: []string{"VLLM_API_KEY=k"}, want: presetOf{BaseURL: "http://127.0.0.1:8000/v1", Streams: true}},
		{text: "{type: lmstudio, api_keys: [k], base_url: 'http://10.0.0.5:1234/v1'}", want: presetOf{BaseURL: "http://10.0.0.5:1234/v1", Streams: true}},
		{
			text: "{type: azure, api_keys: [k], resource: my-res, api_version: 2024-10-21, models: [gpt-5, {id: big, upstream_model: dep}]}",
			want: presetOf{BaseURL: "https://my-res.openai.azure.com/openai", APIVersion: "2024-10-21", Streams: true, Models: []string{"gpt-5=gpt-5", "big=dep"}},
		},
		{
			text: "{type: azure, api_keys: [k], resource: my-res, api_version: v1, models: [d]}",
			want: presetOf{BaseURL: "https://my-res.openai.azure.com/openai/v1", Streams: true, Models: []string{"d=d"}},
		},
		{
			text: "{type: azure, api_keys: [k], base_url: 'https://gw.example/azure/openai/v1/', models: [d]}",
			want: presetOf{BaseURL: "https://gw.example/azure/openai/v1", Streams: true, Models: []string{"d=d"}},
		},
		{
			text: "{type: azure, api_keys: [k], base_url: 'https://r.openai.azure.com', api_version: 2025-03-01-preview, models: [d]}",
			want: presetOf{BaseURL: "https://r.openai.azure.com/openai", APIVersion: "2025-03-01-preview", Streams: true, Models: []string{"d=d"}},
		},
		{text: "{type: bedrock, api_keys: [k], region: eu-west-1}", vars: []string{"AWS_REGION=us-east-1"}, want: presetOf{BaseURL: "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", Streams: true}},
		{text: "{type: bedrock, api_keys: [k]}", vars: []string{"AWS_REGION=us-east-1"}, want: presetOf{BaseURL: "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", Streams: true}},
		{text: "{type: bedrock, api_keys: [k]}", vars: []string{"AWS_REGION=us-east-1", "BEDROCK_REGION=us-west-2"}, want: presetOf{BaseURL: "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1", Streams: true}},
		{text: "{type: bedrock, api_keys: [k], base_url: 'https://bedrock-mantle.us-east-1.api.aws/v1'}", want: presetOf{BaseURL: "https://bedrock-mantle.us-east-1.api.aws/v1", Streams: true}},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			c, err := loadText(t, goodAuth+"providers: {p: "+tt.text+"}\n", tt.vars...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, presetsOf(c)["p"]); diff != "" || len(c.Warnings) > 0 {
				t.Errorf("Load(%s), warnings %q (-want +got):\n%s", tt.text, c.Warnings, diff)
			}
		})
	}
}

// The start says exactly what is missing, and where.
func TestPresetsThatLackSomething(t *testing.T) {
	tests := []struct{ text, want string }{
		{"{type: azure, api_keys: [k]}", "resource: missing; write my-resource for https://my-resource.openai.azure.com, or the whole address as base_url"},
		{"{type: azure, api_keys: [k], models: [d]}", "api_version: missing; write that of your deployments, for example 2024-10-21, or v1"},
		{"{type: azure, api_keys: [k], resource: r, api_version: 2024-10-21}", "models: missing; list your deployments, for example [gpt-5, {id: gpt-4o, upstream_model: my-deployment}]"},
		{"{type: azure, api_keys: [k], resource: r, models: [d]}", "api_version: missing"},
		{"{type: azure, api_keys: [k], resource: 'https://r.openai.azure.com', api_version: v1, models: [d]}", "is not the name of a resource"},
		{"{type: azure, api_keys: [k], resource: r, base_url: 'https://r.example', api_version: v1, models: [d]}", "resource: there is a base_url too"},
		{"{type: azure, api_keys: [k], resource: r, api_version: 'a&b', models: [d]}", "is not an api-version"},
		{"{type: azure, api_keys: [k], base_url: 'https://r.openai.azure.com/openai/v1', api_version: 2024-10-21, models: [d]}", "which has no versions"},
		{"{type: bedrock, api_keys: [k]}", "region: missing; write for example us-east-1, or set BEDROCK_REGION or AWS_REGION"},
		{"{type: bedrock, api_keys: [k], region: 'us east'}", "is not a region"},
		{"{type: openai, api_keys: [k], region: us-east-1}", "region: only type bedrock has regions"},
		{"{type: openai, api_keys: [k], resource: r}", "resource: only type azure has resources"},
		{"{type: groq, api_keys: [k], api_version: v1}", "api_version: only type azure has an api-version"},
		{"{type: groq, api_keys: [k], session_hint: true}", "session_hint: type groq takes no hint of the session"},
	}
	for _, tt := range tests {
		_, err := loadText(t, goodAuth+"providers: {p: "+tt.text+"}\n")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Load(%s) = %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestPresetsOfTheEnvironment(t *testing.T) {
	nowhere(t)
	c, err := Load(Source{Getenv: env(
		"GROQ_API_KEY=k1", "GROQ_API_KEY_2=k2", "MISTRAL_API_KEY=k3", "TOGETHER_API_KEY=k4", "TOGETHER_BASE_URL=http://127.0.0.1:9/v1",
		"OLLAMA_BASE_URL=http://127.0.0.1:11434", "VLLM_BASE_URL=http://127.0.0.1:8000/v1", "VLLM_API_KEY=k5",
		"AZURE_API_KEY=k6", "AZURE_RESOURCE=res", "AZURE_API_VERSION=2024-10-21", "AZURE_DEPLOYMENTS= gpt-5, gpt-4o=mine ,",
		"BEDROCK_API_KEY=k7", "AWS_REGION=us-east-1", "LMSTUDIO_MODELS=x",
	)})
	if err != nil {
		t.Fatal(err)
	}
	got := presetsOf(c)
	for _, name := range []string{"groq"} { // the catalog's
		one := got[name]
		if len(one.Models) == 0 {
			t.Errorf("%s has no models", name)
		}
		one.Models = nil
		got[name] = one
	}
	want := map[string]presetOf{
		"groq":     {BaseURL: "https://api.groq.com/openai/v1", Streams: true},
		"mistral":  {BaseURL: "https://api.mistral.ai/v1"},
		"together": {BaseURL: "http://127.0.0.1:9/v1", Streams: true},
		"ollama":   {BaseURL: "http://127.0.0.1:11434/v1", Streams: true, Open: true},
		"vllm":     {BaseURL: "http://127.0.0.1:8000/v1", Streams: true},
		"azure":    {BaseURL: "https://res.openai.azure.com/openai", APIVersion: "2024-10-21", Streams: true, Models: []string{"gpt-5=gpt-5", "gpt-4o=mine"}},
		"bedrock":  {BaseURL: "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", Streams: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
	for _, p := range c.Providers {
		if p.Type == "azure" && (p.Models[1].Pricing == nil || !p.Models[1].ListPrice) {
			t.Errorf("azure: the deployment mine of gpt-4o has no price: %+v", p.Models[1])
		}
	}
	if _, err := c.Catalog(); err != nil {
		t.Errorf("Catalog() = %v", err)
	}
}

func TestPresetsOfTheEnvironmentThatLackSomething(t *testing.T) {
	nowhere(t)
	tests := []struct {
		vars []string
		want []string
	}{
		{[]string{"AZURE_API_KEY=k"}, []string{"environment: AZURE_RESOURCE: missing", "environment: AZURE_API_VERSION: missing", "environment: AZURE_DEPLOYMENTS: missing; list your deployments, for example gpt-5,gpt-4o=my-deployment"}},
		{[]string{"AZURE_API_KEY=k", "AZURE_RESOURCE=r", "AZURE_API_VERSION=v1", "AZURE_DEPLOYMENTS=a,a=b"}, []string{"environment: AZURE_DEPLOYMENTS: the model \"a\" is listed twice"}},
		{[]string{"AZURE_API_KEY=k", "AZURE_RESOURCE=r", "AZURE_API_VERSION=v1", "AZURE_DEPLOYMENTS=a="}, []string{"environment: AZURE_DEPLOYMENTS: \"a=\" is not a deployment"}},
		{[]string{"BEDROCK_API_KEY=k"}, []string{"environment: BEDROCK_REGION: missing; write for example us-east-1"}},
		{[]string{"OLLAMA_BASE_URL=localhost"}, []string{"environment: OLLAMA_BASE_URL: not a"}},
	}
	for _, tt := range tests {
		_, err := Load(Source{Getenv: env(tt.vars...)})
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Load with %q = %v, want %s", tt.vars, err, want)
			}
		}
		if err != nil && strings.Count(err.Error(), "\n")+1 != len(tt.want) {
			t.Errorf("Load with %q = %v, want %d problems", tt.vars, err, len(tt.want))
		}
	}
}

// Every type can be written down with no more than a key, except where the address is the
// operator's own.
func TestEveryTypeStartsFromItsKeyAlone(t *testing.T) {
	for _, v := range provider.Vendors() {
		if v.Deployments {
			continue
		}
		c, err := loadText(t, goodAuth+"providers: {p: {type: "+v.Type+"}}\n", v.Env+"_API_KEY=k", "AWS_REGION=us-east-1")
		if err != nil || len(c.Warnings) > 0 || len(c.Providers) != 1 {
			t.Errorf("Load of type %s = %v, %v", v.Type, c, err)
			continue
		}
		if p := c.Providers[0]; len(p.Keys) != 1 || p.NoAuth || strings.Contains(p.BaseURL, "{") || (len(p.Models) == 0) != v.OwnModels {
			t.Errorf("type %s: %+v", v.Type, p)
		}
	}
}
