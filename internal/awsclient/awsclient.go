// Package awsclient gives AWS clients what they need, from the environment alone.
package awsclient

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Env is what the environment says about AWS: region, credentials, endpoints, roots. It is
// safe for concurrent use and meant to live as long as the process.
//
// Not here: profiles, SSO, instance metadata, and so the SDK's config package, which reads
// them. It costs 10 ms of every cold start and 2 MB, and a function needs none of them.
type Env struct {
	region      string
	credentials aws.CredentialsProvider
	endpoint    string            // of every service without one of its own; empty: AWS's
	endpoints   map[string]string // by service
	client      *http.Client
	roots       func() (*x509.CertPool, error)
	secrets     secrets
}

// FromEnv reads the environment: AWS_REGION, else AWS_DEFAULT_REGION; AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else AWS_CONTAINER_CREDENTIALS_FULL_URI or
// _RELATIVE_URI; AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>, unless
// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is true. It opens neither file nor connection. Its
// error names every variable that is wrong, never a value.
func FromEnv(getenv func(string) string) (*Env, error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	e := &Env{roots: sync.OnceValues(func() (*x509.CertPool, error) { return Roots(getenv) })}
	e.client = newClient(e.awsRoots(get("AWS_CA_BUNDLE")))
	e.secrets.documents = map[string]*document{}

	var problems []error
	e.region = get("AWS_REGION")
	if e.region == "" {
		e.region = get("AWS_DEFAULT_REGION")
	}
	switch {
	case e.region == "":
		problems = append(problems, errors.New("AWS_REGION is not set; set it to the region of the stack, for example eu-west-1"))
	case !hostLabel(e.region):
		problems = append(problems, errors.New("AWS_REGION is not the name of a region; write for example eu-west-1"))
	}
	var err error
	if e.credentials, err = credentials(get, e.client); err != nil {
		problems = append(problems, err)
	}
	if !strings.EqualFold(get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		problems = append(problems, e.readEndpoints(get)...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return e, nil
}

// endpointVariables are the SDK's names of what overrides a service's endpoint.
func endpointVariables() map[string]string {
	return map[string]string{
		"athena":         "AWS_ENDPOINT_URL_ATHENA",
		"dynamodb":       "AWS_ENDPOINT_URL_DYNAMODB",
		"firehose":       "AWS_ENDPOINT_URL_FIREHOSE",
		"s3":             "AWS_ENDPOINT_URL_S3",
		"secretsmanager": "AWS_ENDPOINT_URL_SECRETS_MANAGER",
		"ssm":            "AWS_ENDPOINT_URL_SSM",
	}
}

func (e *Env) readEndpoints(get func(string) string) (problems []error) {
	read := func(name string) string {
		text := get(name)
		if text == "" {
			return ""
		}
		at, err := url.Parse(text)
		if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
			problems = append(problems, fmt.Errorf("%s is not an address of a service; write for example http://127.0.0.1:4566", name))
		}
		return strings.TrimRight(text, "/")
	}
	e.endpoint = read("AWS_ENDPOINT_URL")
	e.endpoints = map[string]string{}
	for service, name := range endpointVariables() {
		if at := read(name); at != "" {
			e.endpoints[service] = at
		}
	}
	return problems
}

// Config is what a client of the service ("dynamodb", "firehose", "s3", "athena") is made
// of. All of them share one HTTP client, and so its connections.
func (e *Env) Config(service string) aws.Config {
	cfg := aws.Config{Region: e.region, Credentials: e.credentials, HTTPClient: e.client}
	if at := e.override(service); at != "" {
		cfg.BaseEndpoint = &at
	}
	return cfg
}

// Region is the region of the process.
func (e *Env) Region() string { return e.region }

// Roots are the system's trusted roots, for whoever else calls out: loaded at the first
// call, once. To have them in time, call it in a goroutine at the start and again when they
// are needed.
func (e *Env) Roots() (*x509.CertPool, error) { return e.roots() }

// override is where the environment says that the service is; empty: at AWS.
func (e *Env) override(service string) string {
	if at := e.endpoints[service]; at != "" {
		return at
	}
	return e.endpoint
}

// hostLabel tells whether a text can be one label of a host name: a region is put into one.
func hostLabel(s string) bool {
	return len(s) <= 63 && !strings.HasPrefix(s, "-") && !strings.HasSuffix(s, "-") && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}
