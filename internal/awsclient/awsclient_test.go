package awsclient

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
)

const (
	testID     = "AKIDEXAMPLE"
	testSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	testToken  = "IQoJb3JpZ2luX2VjEXAMPLETOKEN"
)

// env is a getenv over NAME=value pairs, with a region and credentials unless they are
// given; a pair without a value takes one of them away.
func env(pairs ...string) func(string) string {
	set := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": testID, "AWS_SECRET_ACCESS_KEY": testSecret, "AWS_SESSION_TOKEN": testToken,
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return func(name string) string { return set[name] }
}

func mustFromEnv(t testing.TB, pairs ...string) *Env {
	t.Helper()
	e, err := FromEnv(env(pairs...))
	if err != nil {
		t.Fatalf("FromEnv(%q) = %v", pairs, err)
	}
	t.Cleanup(e.client.CloseIdleConnections)
	return e
}

func TestFromEnvRegion(t *testing.T) {
	for _, tt := range []struct {
		pairs []string
		want  string
	}{
		{nil, "eu-west-1"},
		{[]string{"AWS_REGION= us-east-1\n"}, "us-east-1"},
		{[]string{"AWS_REGION", "AWS_DEFAULT_REGION=ap-south-1"}, "ap-south-1"},
		{[]string{"AWS_DEFAULT_REGION=ap-south-1"}, "eu-west-1"},
	} {
		e := mustFromEnv(t, tt.pairs...)
		if e.Region() != tt.want || e.Config("dynamodb").Region != tt.want {
			t.Errorf("FromEnv(%q): region %s, config %s, want %s", tt.pairs, e.Region(), e.Config("dynamodb").Region, tt.want)
		}
	}
}

func TestFromEnvCredentials(t *testing.T) {
	e := mustFromEnv(t)
	want := aws.Credentials{AccessKeyID: testID, SecretAccessKey: testSecret, SessionToken: testToken, Source: "environment"}
	for _, service := range []string{"dynamodb", "firehose", "s3", "nobody"} {
		got, err := e.Config(service).Credentials.Retrieve(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: Retrieve = %v (-want +got):\n%s", service, err, diff)
		}
	}
	// Static ones come before a container's, which are not even asked for.
	e = mustFromEnv(t, "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:1/never")
	if got, err := e.Config("s3").Credentials.Retrieve(t.Context()); err != nil || got.Source != "environment" {
		t.Errorf("Retrieve = %+v, %v, want those of the environment", got, err)
	}
}

func TestFromEnvEndpoints(t *testing.T) {
	const general, own = "http://127.0.0.1:4566", "https://own.example:8443/base"
	tests := []struct {
		name    string
		pairs   []string
		service string
		want    string // empty: AWS's
	}{
		{"none", nil, "dynamodb", ""},
		{"general", []string{"AWS_ENDPOINT_URL=" + general}, "dynamodb", general},
		{"general for a service that is not listed", []string{"AWS_ENDPOINT_URL=" + general}, "sts", general},
		{"slash at the end", []string{"AWS_ENDPOINT_URL= " + general + "/ "}, "s3", general},
		{"own before general", []string{"AWS_ENDPOINT_URL=" + general, "AWS_ENDPOINT_URL_DYNAMODB=" + own}, "dynamodb", own},
		{"own of another service", []string{"AWS_ENDPOINT_URL=" + general, "AWS_ENDPOINT_URL_DYNAMODB=" + own}, "firehose", general},
		{"own alone", []string{"AWS_ENDPOINT_URL_DYNAMODB=" + own}, "s3", ""},
		{"ignored", []string{"AWS_ENDPOINT_URL=" + general, "AWS_ENDPOINT_URL_S3=" + own, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true"}, "s3", ""},
		{"ignored in capitals", []string{"AWS_ENDPOINT_URL=" + general, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=TRUE"}, "s3", ""},
		{"not ignored", []string{"AWS_ENDPOINT_URL=" + general, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=false"}, "s3", general},
		{"a wrong one is ignored too", []string{"AWS_ENDPOINT_URL=nonsense", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true"}, "s3", ""},
	}
	for service, name := range endpointVariables() {
		tests = append(tests, struct {
			name    string
			pairs   []string
			service string
			want    string
		}{"own of " + service, []string{"AWS_ENDPOINT_URL=" + general, name + "=" + own}, service, own})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := mustFromEnv(t, tt.pairs...)
			got := aws.ToString(e.Config(tt.service).BaseEndpoint)
			if got != tt.want {
				t.Errorf("Config(%s).BaseEndpoint = %q, want %q", tt.service, got, tt.want)
			}
		})
	}
}

// Every fault is named at once, by its variable, without a value.
func TestFromEnvFaults(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pairs []string
		want  []string // one line each
	}{
		{"no region", []string{"AWS_REGION"}, []string{"AWS_REGION is not set"}},
		{"region of two hosts", []string{"AWS_REGION=x.evil.example/"}, []string{"AWS_REGION is not the name"}},
		{"region in capitals", []string{"AWS_REGION=EU-WEST-1"}, []string{"AWS_REGION is not the name"}},
		{"region with a blank", []string{"AWS_REGION=eu west"}, []string{"AWS_REGION is not the name"}},
		{"half a key", []string{"AWS_SECRET_ACCESS_KEY"}, []string{"AWS_SECRET_ACCESS_KEY is not set"}},
		{"the other half", []string{"AWS_ACCESS_KEY_ID"}, []string{"AWS_ACCESS_KEY_ID is not set"}},
		{"no credentials", []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, []string{"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set"}},
		{"container in the clear", []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://evil.example/x"}, []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI is neither"}},
		{"container elsewhere", []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONTAINER_CREDENTIALS_FULL_URI=file:///etc/passwd"}, []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI is neither"}},
		{"container path", []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=.evil.example"}, []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin"}},
		{"endpoint without a scheme", []string{"AWS_ENDPOINT_URL=localhost:4566"}, []string{"AWS_ENDPOINT_URL is not an address"}},
		{"endpoint with a password", []string{"AWS_ENDPOINT_URL_S3=http://u:hunter22@x.example"}, []string{"AWS_ENDPOINT_URL_S3 is not an address"}},
		{"endpoint with a query", []string{"AWS_ENDPOINT_URL_SECRETS_MANAGER=http://x.example/?a=b"}, []string{"AWS_ENDPOINT_URL_SECRETS_MANAGER is not an address"}},
		{"all", []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL=x"}, []string{"AWS_REGION is", "AWS_ACCESS_KEY_ID is", "AWS_ENDPOINT_URL is"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := FromEnv(env(tt.pairs...))
			if err == nil {
				t.Fatalf("FromEnv = nil, want %q", tt.want)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("FromEnv = %v, want %d lines", err, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("FromEnv: line %d = %s, want it to begin %s", i, lines[i], want)
				}
			}
			for _, hidden := range []string{testID, testSecret, testToken, "hunter22", "evil.example"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("FromEnv = %v, want no value in it", err)
				}
			}
		})
	}
}

func TestClientsShareConnectionsAndFollowNothing(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	e := mustFromEnv(t)
	if e.Config("dynamodb").HTTPClient != e.Config("firehose").HTTPClient {
		t.Error("two services have two HTTP clients, want one")
	}
	response, err := e.client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusTemporaryRedirect || calls != 1 {
		t.Errorf("Get = %d after %d calls, want the redirect itself", response.StatusCode, calls)
	}
}

func BenchmarkFromEnv(b *testing.B) {
	getenv := env("AWS_ENDPOINT_URL=http://127.0.0.1:4566")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromEnv(getenv); err != nil {
			b.Fatal(err)
		}
	}
}

var _ aws.CredentialsProvider = static{}
