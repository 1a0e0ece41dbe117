package awsclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const (
	// ECS hands credentials out at this address.
	ecsHost = "http://169.254.170.2"
	// Credentials are renewed so long before they expire: a request that was signed just
	// before must still be under way in time.
	expiryMargin     = 5 * time.Minute
	credentialsLimit = 5 * time.Second
	maxCredentials   = 64 << 10
)

// credentials takes them from the environment. Lambda's do not change in a running process.
func credentials(get func(string) string, client *http.Client) (aws.CredentialsProvider, error) {
	id, secret := get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")
	switch {
	case id != "" && secret != "":
		return static{aws.Credentials{
			AccessKeyID: id, SecretAccessKey: secret, SessionToken: get("AWS_SESSION_TOKEN"), Source: "environment",
		}}, nil
	case id != "":
		return nil, errors.New("AWS_SECRET_ACCESS_KEY is not set, AWS_ACCESS_KEY_ID is; set both")
	case secret != "":
		return nil, errors.New("AWS_ACCESS_KEY_ID is not set, AWS_SECRET_ACCESS_KEY is; set both")
	}
	at, err := containerAddress(get)
	if err != nil {
		return nil, err
	}
	if at == "" {
		return nil, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and AWS_CONTAINER_CREDENTIALS_FULL_URI is not either")
	}
	container := &container{
		client: client, at: at,
		token: get("AWS_CONTAINER_AUTHORIZATION_TOKEN"), tokenFile: get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
	}
	return aws.NewCredentialsCache(container, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryMargin }), nil
}

type static struct{ credentials aws.Credentials }

// Retrieve implements aws.CredentialsProvider.
func (s static) Retrieve(context.Context) (aws.Credentials, error) { return s.credentials, nil }

// containerAddress is where a container (ECS, EKS, SnapStart) asks for credentials; empty:
// nowhere.
func containerAddress(get func(string) string) (string, error) {
	if path := get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		if !strings.HasPrefix(path, "/") {
			return "", errors.New("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with /")
		}
		return ecsHost + path, nil
	}
	text := get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if text == "" {
		return "", nil
	}
	at, err := url.Parse(text)
	if err != nil || at.Hostname() == "" || at.Scheme != "https" && (at.Scheme != "http" || !private(at.Hostname())) {
		return "", errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor the address of a container host")
	}
	return text, nil
}

// private tells whether credentials may come from that host in the clear: this machine, and
// the link-local addresses of ECS and EKS.
func private(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	switch host {
	case "169.254.170.2", "169.254.170.23", "fd00:ec2::23":
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// container asks a container host for credentials.
type container struct {
	client           *http.Client
	at               string
	token, tokenFile string
}

// Retrieve implements aws.CredentialsProvider. Its error has no secret in it.
func (c *container) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, credentialsLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at, nil)
	if err != nil {
		return aws.Credentials{}, errors.New("container credentials: not a usable address")
	}
	token := c.token
	if c.tokenFile != "" { // it changes: read it each time
		text, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return aws.Credentials{}, fmt.Errorf("container credentials: token: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("container credentials: %w", reason(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxCredentials))
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("container credentials: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return aws.Credentials{}, fmt.Errorf("container credentials: status %d", response.StatusCode)
	}
	return parseCredentials(body)
}

func parseCredentials(body []byte) (aws.Credentials, error) {
	var answer struct {
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
		Expiration      time.Time
	}
	if json.Unmarshal(body, &answer) != nil || answer.AccessKeyID == "" || answer.SecretAccessKey == "" {
		return aws.Credentials{}, errors.New("container credentials: not an answer with credentials")
	}
	return aws.Credentials{
		AccessKeyID: answer.AccessKeyID, SecretAccessKey: answer.SecretAccessKey, SessionToken: answer.Token,
		Source: "container", CanExpire: !answer.Expiration.IsZero(), Expires: answer.Expiration,
	}, nil
}

// reason takes the URL out of a transport error: it may carry a token.
func reason(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
