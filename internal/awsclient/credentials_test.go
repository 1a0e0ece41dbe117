package awsclient

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// fromContainer is an environment whose credentials come from that address.
func fromContainer(t *testing.T, at string, pairs ...string) *Env {
	t.Helper()
	return mustFromEnv(t, append([]string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONTAINER_CREDENTIALS_FULL_URI=" + at}, pairs...)...)
}

func TestContainerCredentials(t *testing.T) {
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		pairs  []string
		token  string
		expiry time.Duration // from now; 0: none
		calls  int           // for two uses
	}{
		{"long-lived", []string{"AWS_CONTAINER_AUTHORIZATION_TOKEN=tok"}, "tok", time.Hour, 1},
		{"within the margin", []string{"AWS_CONTAINER_AUTHORIZATION_TOKEN=tok"}, "tok", expiryMargin - time.Minute, 2},
		{"expired", nil, "", -time.Minute, 2},
		{"for ever", nil, "", 0, 1},
		{"token in a file", []string{"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=" + tokenFile, "AWS_CONTAINER_AUTHORIZATION_TOKEN=other"}, "from-file", time.Hour, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				if got := r.Header.Get("Authorization"); got != tt.token {
					t.Errorf("Authorization = %q, want %q", got, tt.token)
				}
				expiration := ""
				if tt.expiry != 0 {
					expiration = `,"Expiration":"` + time.Now().Add(tt.expiry).UTC().Format(time.RFC3339) + `"`
				}
				fmt.Fprintf(w, `{"AccessKeyId":"%s","SecretAccessKey":"%s","Token":"%s"%s}`, testID, testSecret, testToken, expiration)
			}))
			defer server.Close()
			e := fromContainer(t, server.URL+"/v2/credentials", tt.pairs...)
			for range 2 {
				got, err := e.Config("dynamodb").Credentials.Retrieve(t.Context())
				if err != nil || got.AccessKeyID != testID || got.SecretAccessKey != testSecret || got.SessionToken != testToken {
					t.Fatalf("Retrieve = %+v, %v, want the container's", got, err)
				}
			}
			if calls != tt.calls {
				t.Errorf("two uses made %d calls, want %d", calls, tt.calls)
			}
		})
	}
}

func TestContainerFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"refused", 403, `{"message":"` + testSecret + `"}`, "container credentials: status 403"},
		{"no JSON", 200, testSecret, "container credentials: not an answer with credentials"},
		{"half", 200, `{"SecretAccessKey":"` + testSecret + `"}`, "container credentials: not an answer with credentials"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer server.Close()
			_, err := fromContainer(t, server.URL).Config("s3").Credentials.Retrieve(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), testSecret) {
				t.Errorf("Retrieve = %v, want %s", err, tt.want)
			}
		})
	}
	e := fromContainer(t, "http://127.0.0.1:1/?token=hidden", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/nowhere")
	if _, err := e.Config("s3").Credentials.Retrieve(t.Context()); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("Retrieve = %v, want an error without the address", err)
	}
}

func TestContainerAddress(t *testing.T) {
	for _, tt := range []struct {
		pairs []string
		want  string // empty: refused
	}{
		{[]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/x"}, "http://169.254.170.2/v2/x"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:9/x"}, "http://127.0.0.1:9/x"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://LOCALHOST:9/x"}, "http://LOCALHOST:9/x"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://[::1]:9/x"}, "http://[::1]:9/x"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.170.23/v1/credentials"}, "http://169.254.170.23/v1/credentials"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://[fd00:ec2::23]/v1/credentials"}, "http://[fd00:ec2::23]/v1/credentials"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=https://anywhere.example/x"}, "https://anywhere.example/x"},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.169.254/x"}, ""},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1.evil.example/x"}, ""},
		{[]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=ftp://127.0.0.1/x"}, ""},
	} {
		got, err := containerAddress(env(tt.pairs...))
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("containerAddress(%q) = %q, %v, want %q", tt.pairs, got, err, tt.want)
		}
	}
}

var _ aws.CredentialsProvider = (*container)(nil)
