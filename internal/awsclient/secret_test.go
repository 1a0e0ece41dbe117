package awsclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"
)

// vault answers GetParameter and GetSecretValue, after the answers in first are used up.
type vault struct {
	t          *testing.T
	parameters map[string]string
	secrets    map[string]string
	first      []func(http.ResponseWriter)

	mu    sync.Mutex
	asked []string // "ssm /path"
}

func newVault(t *testing.T) (*vault, *Env) {
	t.Helper()
	v := &vault{t: t, parameters: map[string]string{}, secrets: map[string]string{}}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	return v, mustFromEnv(t, "AWS_ENDPOINT_URL="+server.URL)
}

func (v *vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in struct {
		Name, SecretId string
		WithDecryption bool
	}
	if err := json.Unmarshal(body, &in); err != nil {
		v.t.Errorf("request body %q: %v", body, err)
	}
	service, target, name := "ssm", "AmazonSSM.GetParameter", in.Name
	if in.SecretId != "" {
		service, target, name = "secretsmanager", "secretsmanager.GetSecretValue", in.SecretId
	}
	if got := r.Header.Get("X-Amz-Target"); got != target || r.Method != http.MethodPost || r.URL.Path != "/" || in.WithDecryption != (service == "ssm") {
		v.t.Errorf("%s %s: %s %s with decryption %v, want %s", r.Method, r.URL, got, body, in.WithDecryption, target)
	}
	if got := r.Header.Get("Content-Type"); got != "application/x-amz-json-1.1" {
		v.t.Errorf("Content-Type = %q", got)
	}
	v.checkSignature(r, body, service)
	v.mu.Lock()
	v.asked = append(v.asked, service+" "+name)
	var answer func(http.ResponseWriter)
	if len(v.first) > 0 {
		answer, v.first = v.first[0], v.first[1:]
	}
	v.mu.Unlock()
	if answer != nil {
		answer(w)
		return
	}
	text, have := v.parameters[name]
	out := any(map[string]any{"Parameter": map[string]any{"Name": name, "Type": "SecureString", "Value": text, "Version": 1}})
	missing := "ParameterNotFound"
	if service == "secretsmanager" {
		text, have = v.secrets[name]
		out, missing = map[string]any{"Name": name, "SecretString": text}, "ResourceNotFoundException"
	}
	if !have {
		refuse(400, missing)(w)
		return
	}
	json.NewEncoder(w).Encode(out)
}

// checkSignature signs the request again, as AWS would, and compares.
func (v *vault) checkSignature(r *http.Request, body []byte, service string) {
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		v.t.Error(err)
		return
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > time.Minute {
		v.t.Errorf("X-Amz-Date = %q, want now", r.Header.Get("X-Amz-Date"))
	}
	for _, name := range []string{"Content-Type", "X-Amz-Target"} {
		again.Header.Set(name, r.Header.Get(name))
	}
	sum := sha256.Sum256(body)
	credentials, _ := mustFromEnv(v.t).credentials.Retrieve(r.Context())
	if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), service, "eu-west-1", at); err != nil {
		v.t.Error(err)
	}
	if got, want := r.Header.Get("Authorization"), again.Header.Get("Authorization"); got != want || !strings.Contains(want, "/eu-west-1/"+service+"/aws4_request") {
		v.t.Errorf("Authorization = %s\nwant            %s", got, want)
	}
	if got := r.Header.Get("X-Amz-Security-Token"); got != testToken {
		v.t.Errorf("X-Amz-Security-Token = %q, want the session token", got)
	}
}

func (v *vault) calls() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.asked)
}

// refuse answers as the JSON protocol does.
func refuse(status int, code string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.ssm#%s","message":"User: arn:aws:sts::1:assumed-role/r is not authorized, %s"}`, code, hiddenValue)
	}
}

const hiddenValue = "sk-hidden-AAAABBBBCCCC"

func TestSecret(t *testing.T) {
	v, e := newVault(t)
	v.parameters["/switchboard/openai"] = "sk-one\n"
	v.parameters["name"] = "plain"
	v.parameters["arn:aws:ssm:eu-west-1:1:parameter/p"] = "by arn"
	v.parameters["/empty"] = ""
	v.secrets["keys"] = `{"openai":"sk-two","n":42,"yes":true,"empty":"","list":["x"],"nested":{"a":1},"nothing":null,"a#b":"hash","uni":"\u00e9"}`
	v.secrets["prod/whole"] = "not JSON: " + hiddenValue
	v.secrets["arn:aws:secretsmanager:eu-west-1:1:secret:keys-AbCdEf"] = `{"k":"by arn"}`
	for _, tt := range []struct{ ref, want, wantErr string }{
		{ref: "ssm:/switchboard/openai", want: "sk-one\n"},
		{ref: "ssm:name", want: "plain"},
		{ref: "ssm:arn:aws:ssm:eu-west-1:1:parameter/p", want: "by arn"},
		{ref: "ssm:/empty", want: ""},
		{ref: "secretsmanager:keys#openai", want: "sk-two"},
		{ref: "secretsmanager:keys#n", want: "42"},
		{ref: "secretsmanager:keys#yes", want: "true"},
		{ref: "secretsmanager:keys#empty", want: ""},
		{ref: "secretsmanager:keys#a#b", want: "hash"},
		{ref: "secretsmanager:keys#uni", want: "é"},
		{ref: "secretsmanager:prod/whole", want: "not JSON: " + hiddenValue},
		{ref: "secretsmanager:arn:aws:secretsmanager:eu-west-1:1:secret:keys-AbCdEf#k", want: "by arn"},

		{ref: "ssm:/nope", wantErr: "ssm:/nope: ParameterNotFound: there is none of that name in this region"},
		{ref: "secretsmanager:nope#k", wantErr: "secretsmanager:nope#k: ResourceNotFoundException: there is none of that name in this region"},
		{ref: "secretsmanager:keys#nope", wantErr: "secretsmanager:keys#nope: the secret has no key of that name"},
		{ref: "secretsmanager:keys#list", wantErr: "secretsmanager:keys#list: that key of the secret holds no text"},
		{ref: "secretsmanager:keys#nested", wantErr: "secretsmanager:keys#nested: that key of the secret holds no text"},
		{ref: "secretsmanager:keys#nothing", wantErr: "secretsmanager:keys#nothing: that key of the secret holds no text"},
		{ref: "secretsmanager:prod/whole#k", wantErr: "secretsmanager:prod/whole#k: the secret is no JSON object; leave #k out to take it whole"},
		{ref: "secretsmanager:keys#", wantErr: "secretsmanager:keys#: no key after #; write secretsmanager:name#key"},
		{ref: "secretsmanager:#k", wantErr: "secretsmanager:#k: a reference without a name; write ssm:/path or secretsmanager:name#key"},
		{ref: "ssm:", wantErr: "ssm:: a reference without a name; write ssm:/path or secretsmanager:name#key"},
		{ref: "env:X", wantErr: "env:X: not a reference to a secret; write ssm:/path or secretsmanager:name#key"},
	} {
		t.Run(tt.ref, func(t *testing.T) {
			got, err := e.Secret(t.Context(), tt.ref)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tt.want || text != tt.wantErr {
				t.Errorf("Secret(%s) = %q, %v, want %q, %s", tt.ref, got, err, tt.want, tt.wantErr)
			}
		})
	}
}

func TestSecretBinary(t *testing.T) {
	v, e := newVault(t)
	v.first = []func(http.ResponseWriter){func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"Name":"b","SecretBinary":"eyJrIjoidiJ9"}`)
	}}
	if got, err := e.Secret(t.Context(), "secretsmanager:b#k"); got != "v" || err != nil {
		t.Errorf("Secret = %q, %v, want v", got, err)
	}
}

// One call serves every key of a secret and everybody who asks at the same time; an error
// is asked again.
func TestSecretIsAskedOnce(t *testing.T) {
	v, e := newVault(t)
	v.secrets["keys"] = `{"a":"A","b":"B"}`
	v.parameters["/p"] = "P"
	var group sync.WaitGroup
	for i := range 24 {
		ref := []string{"secretsmanager:keys#a", "secretsmanager:keys#b", "ssm:/p"}[i%3]
		group.Go(func() {
			if _, err := e.Secret(context.Background(), ref); err != nil {
				t.Errorf("Secret(%s) = %v", ref, err)
			}
		})
	}
	group.Wait()
	got := v.calls()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"secretsmanager keys", "ssm /p"}, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if _, err := e.Secret(t.Context(), "ssm:/later"); err == nil {
		t.Fatal("Secret(ssm:/later) = nil, want an error")
	}
	v.parameters["/later"] = "L"
	if got, err := e.Secret(t.Context(), "ssm:/later"); got != "L" || err != nil {
		t.Errorf("Secret(ssm:/later) = %q, %v, want L once it is there", got, err)
	}
}

func TestSecretIsTriedTwice(t *testing.T) {
	cut := func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }
	body := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { fmt.Fprint(w, text) }
	}
	for _, tt := range []struct {
		name    string
		first   []func(http.ResponseWriter)
		calls   int
		wantErr string // empty: served
	}{
		{"throttled", []func(http.ResponseWriter){refuse(400, "ThrottlingException")}, 2, ""},
		{"too many", []func(http.ResponseWriter){refuse(429, "Whatever")}, 2, ""},
		{"500", []func(http.ResponseWriter){refuse(500, "InternalServerError")}, 2, ""},
		{"internal with 400", []func(http.ResponseWriter){refuse(400, "InternalServiceError")}, 2, ""},
		{"503 as a page", []func(http.ResponseWriter){func(w http.ResponseWriter) { http.Error(w, "<html>", http.StatusServiceUnavailable) }}, 2, ""},
		{"cut", []func(http.ResponseWriter){cut}, 2, ""},
		{"throttled twice", []func(http.ResponseWriter){refuse(400, "ThrottlingException"), refuse(400, "ThrottlingException")}, 2, "ThrottlingException (status 400)"},
		{"503 twice", []func(http.ResponseWriter){refuse(503, ""), refuse(503, "")}, 2, "status 503"},
		{"denied", []func(http.ResponseWriter){refuse(400, "AccessDeniedException")}, 1, "AccessDeniedException: the role may not read it"},
		{"expired", []func(http.ResponseWriter){refuse(403, "ExpiredTokenException")}, 1, "ExpiredTokenException (status 403)"},
		{"a code that is none", []func(http.ResponseWriter){refuse(400, "sk-x y"+strings.Repeat("z", 80))}, 1, "status 400"},
		{"no JSON", []func(http.ResponseWriter){body("<html>"), body("<html>")}, 2, "the answer is not JSON"},
		{"no value", []func(http.ResponseWriter){body("{}"), body("{}")}, 2, "the answer has no value in it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, e := newVault(t)
			v.parameters["/p"] = "P"
			v.first = tt.first
			got, err := e.Secret(t.Context(), "ssm:/p")
			if n := len(v.calls()); n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
			switch {
			case tt.wantErr == "" && (err != nil || got != "P"):
				t.Errorf("Secret = %q, %v, want P", got, err)
			case tt.wantErr != "" && (err == nil || err.Error() != "ssm:/p: "+tt.wantErr):
				t.Errorf("Secret = %q, %v, want ssm:/p: %s", got, err, tt.wantErr)
			}
			if err != nil && strings.Contains(err.Error(), hiddenValue) {
				t.Errorf("Secret = %v, want AWS's message left out", err)
			}
		})
	}
}

func TestSecretEndsWithItsContext(t *testing.T) {
	v, e := newVault(t)
	ctx, cancel := context.WithCancel(t.Context())
	v.first = []func(http.ResponseWriter){func(w http.ResponseWriter) { cancel(); panic(http.ErrAbortHandler) }}
	if _, err := e.Secret(ctx, "ssm:/p"); err == nil || len(v.calls()) != 1 {
		t.Errorf("Secret = %v after %d calls, want an error after one", err, len(v.calls()))
	}
}

func TestSecretWithoutAnybodyThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	e := mustFromEnv(t, "AWS_ENDPOINT_URL_SSM="+server.URL)
	_, err := e.Secret(t.Context(), "ssm:/p")
	if err == nil || !strings.HasPrefix(err.Error(), "ssm:/p: ") || strings.Contains(err.Error(), "http://") {
		t.Errorf("Secret = %v, want the reference and why, no URL", err)
	}
}

func TestAddress(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1":      "https://ssm.eu-west-1.amazonaws.com/",
		"us-gov-west-1":  "https://ssm.us-gov-west-1.amazonaws.com/",
		"cn-north-1":     "https://ssm.cn-north-1.amazonaws.com.cn/",
		"eusc-de-east-1": "https://ssm.eusc-de-east-1.amazonaws.eu/",
	} {
		if got := mustFromEnv(t, "AWS_REGION="+region).address("ssm"); got != want {
			t.Errorf("address(ssm) in %s = %s, want %s", region, got, want)
		}
	}
	if got, want := mustFromEnv(t, "AWS_ENDPOINT_URL=http://x.example/").address("secretsmanager"), "http://x.example/"; got != want {
		t.Errorf("address(secretsmanager) = %s, want %s", got, want)
	}
}
