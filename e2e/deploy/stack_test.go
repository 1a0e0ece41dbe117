//go:build deploy

package deploy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Keys of the rig. None of these texts may show up in a log, a variable or an event.
const (
	clientKey   = "ck-deploy-0123456789abcdef0123456789abcdef"
	adminKey    = "ak-deploy-fedcba9876543210fedcba9876543210"
	nextAdmin   = "ak-deploy-0f1e2d3c4b5a69780f1e2d3c4b5a6978" // a parameter; comes before the digest
	userPath    = "/team/deploy"
	firstKey    = "sk-deploy-first-AAAABBBBCCCC"
	secondKey   = "sk-deploy-second-DDDDEEEEFFFF"
	configName  = "/switchboard/deploy/config"
	openaiName  = "/switchboard/deploy/openai"
	adminName   = "/switchboard/deploy/admin"
	secretName  = "switchboard/deploy"
	stackName   = "switchboard-deploy"
	secretField = "anthropic"
)

// upstream is a provider on this machine, the one of the other end-to-end tests.
type upstream struct{ address string }

func startUpstream(t *testing.T) *upstream {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "upstream")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../upstream").CombinedOutput(); err != nil {
		t.Fatalf("go build ../upstream: %v\n%s", err, out)
	}
	cmd := exec.Command(binary, "-name", "a", "-keys", firstKey+","+secondKey)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &upstream{strings.TrimSpace(line)}
}

// control replaces the upstream's behaviour.
func (u *upstream) control(t *testing.T, behaviour string) {
	t.Helper()
	response, err := http.Post("http://"+u.address+"/ctl", "application/json", strings.NewReader(behaviour))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("ctl %s: %s", behaviour, response.Status)
	}
}

// keys are the credentials that the upstream has seen.
func (u *upstream) keys(t *testing.T) map[string]bool {
	t.Helper()
	response, err := http.Get("http://" + u.address + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var list []struct{ Key string }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, one := range list {
		keys[one.Key] = true
	}
	return keys
}

// store puts configuration and keys where an owner puts them: in the Parameter Store and
// the Secrets Manager. One provider is called by two identities, so that one may fail.
func (m *ministack) store(t *testing.T, a, b *upstream) {
	t.Helper()
	digest := func(key string) string {
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:])
	}
	configuration := fmt.Sprintf(`
auth:
  keys: [{name: deploy, sha256: %s, user_path: %s}]
  admin: {sha256: %s}
providers:
  a:
    type: openai
    base_url: http://%s/v1
    api_keys: ["ssm:%s"]
    models: [{id: m-oai, pricing: {input_per_mtok: 2.00, cached_input_per_mtok: 0.50, output_per_mtok: 8.00}}]
  b:
    type: openai
    base_url: http://%s/v1
    api_keys: ["secretsmanager:%s#%s"]
    models: [{id: m-oai, pricing: {input_per_mtok: 2.00, cached_input_per_mtok: 0.50, output_per_mtok: 8.00}}]
virtual_models:
  - {source: spread, strategy: round_robin, targets: [{model: a/m-oai}, {model: b/m-oai}]}
`, digest(clientKey), userPath, digest(adminKey), a.address, openaiName, b.address, secretName, secretField)
	for name, value := range map[string]string{configName: configuration, openaiName: firstKey, adminName: nextAdmin} {
		m.call(t, "ssm", "AmazonSSM.PutParameter", map[string]any{"Name": name, "Value": value, "Type": "SecureString", "Overwrite": true})
	}
	m.call(t, "secretsmanager", "secretsmanager.CreateSecret", map[string]any{
		"Name": secretName, "SecretString": fmt.Sprintf(`{"anthropic":%q}`, secondKey),
		"ClientRequestToken": "01234567-89ab-cdef-0123-456789abcdef",
	})
}

// deployed is a stack and what its outputs say.
type deployed struct {
	*ministack
	build   string // sam's
	outputs map[string]string
}

// deploy creates or updates the stack. Parameters are NAME=value.
func (d *deployed) deploy(t *testing.T, parameters ...string) {
	t.Helper()
	settings, err := filepath.Abs(filepath.Join(repository, "samconfig.toml")) // else sam looks beside the built template
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"deploy", "--config-file", settings, "--template-file", filepath.Join(d.build, "template.yaml"), "--stack-name", stackName,
		"--no-confirm-changeset", "--no-progressbar", "--parameter-overrides", "Architecture=" + architecture(), "Config=ssm:" + configName,
	}
	d.sam(t, append(args, parameters...)...)
	out := d.sam(t, "list", "stack-outputs", "--stack-name", stackName, "--output", "json")
	var list []struct{ OutputKey, OutputValue string }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("sam list stack-outputs: %v\n%s", err, out)
	}
	d.outputs = map[string]string{}
	for _, one := range list {
		d.outputs[one.OutputKey] = one.OutputValue
	}
}

// resources are the physical ids of the stack, by logical id.
func (d *deployed) resources(t *testing.T) map[string]string {
	t.Helper()
	out := d.sam(t, "list", "resources", "--stack-name", stackName, "--template-file", filepath.Join(d.build, "template.yaml"), "--output", "json")
	var list []struct{ LogicalResourceId, PhysicalResourceId string }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("sam list resources: %v\n%s", err, out)
	}
	ids := map[string]string{}
	for _, one := range list {
		ids[one.LogicalResourceId] = one.PhysicalResourceId
	}
	return ids
}

// request is one to a Function URL.
type request struct {
	output  string // RouteUrl, AdminUrl
	method  string // default POST
	path    string // default /v1/chat/completions
	key     string // as a Bearer token; "" is none
	apiKey  string // in x-api-key
	session string
	model   string // default spread
	stream  bool
	origin  string
	signed  bool // by an identity of the account
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) provider() string { return a.header.Get("X-Switchboard-Provider") }

func (d *deployed) do(t *testing.T, r request) answer {
	t.Helper()
	if r.output == "" {
		r.output = "RouteUrl"
	}
	if r.path == "" {
		r.path = "/v1/chat/completions"
	}
	if r.model == "" {
		r.model = "spread"
	}
	method, body := http.MethodPost, fmt.Appendf(nil, `{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, r.model, r.stream)
	if r.method != "" {
		method, body = r.method, nil
	}
	to, err := url.Parse(d.outputs[r.output])
	if err != nil || to.Host == "" {
		t.Fatalf("output %s is %q: %v", r.output, d.outputs[r.output], err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, d.endpoint+r.path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = to.Host // the emulator knows the function by it
	req.Header.Set("Content-Type", "application/json")
	if r.session != "" {
		req.Header.Set("X-Session-Id", r.session)
	}
	if r.origin != "" {
		req.Header.Set("Origin", r.origin)
	}
	if r.apiKey != "" {
		req.Header.Set("X-Api-Key", r.apiKey)
	}
	switch {
	case r.signed:
		sign(t, req, "lambda", body)
	case r.key != "":
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	client := http.Client{Timeout: patience}
	response, err := client.Do(req)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%+v: %v after %q", r, err, text)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// ok is do for a completion that must be served, with the client's key.
func (d *deployed) ok(t *testing.T, r request) answer {
	t.Helper()
	if r.key == "" && r.apiKey == "" {
		r.key = clientKey
	}
	a := d.do(t, r)
	if a.status != http.StatusOK {
		t.Fatalf("%+v: %d %s", r, a.status, a.body)
	}
	if r.stream && !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
		t.Errorf("%+v: the stream ends in %q", r, a.body[max(0, len(a.body)-60):])
	}
	return a
}

// eventually waits for what the emulator does on its own time.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("%s: did not happen within %v", what, patience)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// noKeys fails when any key is in a text.
func noKeys(t *testing.T, where, text string) {
	t.Helper()
	for _, key := range []string{clientKey, adminKey, nextAdmin, firstKey, secondKey} {
		if strings.Contains(text, key) {
			t.Errorf("%s holds the key %.12s…", where, key)
		}
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
