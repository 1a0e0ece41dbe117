package emulator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// ask sends one JSON request, as awsclient does without an SDK.
func ask(t *testing.T, c *Cloud, target, body string) (status int, answer map[string]any) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", target)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	mustDo(t, json.Unmarshal(w.Body.Bytes(), &answer))
	return w.Code, answer
}

func TestParameters(t *testing.T) {
	c := New(Options{})
	c.PutParameter("/switchboard/key", "sk-1")
	for _, tt := range []struct{ target, body, path, want string }{
		{"GetParameter", `{"Name":"/switchboard/key","WithDecryption":true}`, "Parameter.Value", "sk-1"},
		{"GetParameter", `{"Name":"/switchboard/key","WithDecryption":true}`, "Parameter.Type", "SecureString"},
		{"GetParameter", `{"Name":"/switchboard/key"}`, "Parameter.Value", "AQICAHencrypted"},
		{"GetParameter", `{"Name":"/none","WithDecryption":true}`, "__type", "ParameterNotFound"},
		{"PutParameter", `{"Name":"/plain","Value":"a: 1","Type":"String"}`, "Tier", "Standard"},
		{"PutParameter", `{"Name":"/plain","Value":"a: 2","Type":"String"}`, "__type", "ParameterAlreadyExists"},
		{"GetParameter", `{"Name":"/plain"}`, "Parameter.Value", "a: 1"},
		{"PutParameter", `{"Name":"/plain","Value":"a: 2","Overwrite":true}`, "Tier", "Standard"},
		{"GetParameter", `{"Name":"/plain"}`, "Parameter.Value", "a: 2"},
		{"GetParameter", `{"Name":"/plain"}`, "Parameter.ARN", "arn:aws:ssm:us-east-1:000000000000:parameter/plain"},
	} {
		if _, got := ask(t, c, "AmazonSSM."+tt.target, tt.body); at(got, tt.path) != tt.want {
			t.Errorf("%s(%s) = %v, want %s = %s", tt.target, tt.body, got, tt.path, tt.want)
		}
	}
}

func at(m map[string]any, path string) any {
	head, rest, deeper := strings.Cut(path, ".")
	if inner, ok := m[head].(map[string]any); ok && deeper {
		return at(inner, rest)
	}
	return m[head]
}

func TestSecrets(t *testing.T) {
	c := New(Options{})
	c.PutSecret("switchboard/keys", `{"openai":"sk-1"}`)
	const arn = "arn:aws:secretsmanager:us-east-1:000000000000:secret:switchboard/keys-AbCdEf"
	for _, tt := range []struct{ target, body, path, want string }{
		{"GetSecretValue", `{"SecretId":"switchboard/keys"}`, "SecretString", `{"openai":"sk-1"}`},
		{"GetSecretValue", `{"SecretId":"` + arn + `"}`, "SecretString", `{"openai":"sk-1"}`},
		{"GetSecretValue", `{"SecretId":"none"}`, "__type", "ResourceNotFoundException"},
		{"CreateSecret", `{"Name":"switchboard/keys","SecretString":"x"}`, "__type", "ResourceExistsException"},
		{"PutSecretValue", `{"SecretId":"none","SecretString":"x"}`, "__type", "ResourceNotFoundException"},
		{"PutSecretValue", `{"SecretId":"switchboard/keys","SecretString":"x"}`, "ARN", arn},
		{"GetSecretValue", `{"SecretId":"switchboard/keys"}`, "SecretString", "x"},
		{"CreateSecret", `{"Name":"new","SecretString":"y"}`, "Name", "new"},
		{"GetSecretValue", `{"SecretId":"new"}`, "SecretString", "y"},
	} {
		if _, got := ask(t, c, "secretsmanager."+tt.target, tt.body); at(got, tt.path) != tt.want {
			t.Errorf("%s(%s) = %v, want %s = %s", tt.target, tt.body, got, tt.path, tt.want)
		}
	}
}
