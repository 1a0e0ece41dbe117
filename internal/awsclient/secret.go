package awsclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	secretAttempt = 2500 * time.Millisecond // of one call
	secretPause   = 100 * time.Millisecond  // before the second
	maxAnswer     = 1 << 20                 // a secret has at most 64 KiB
)

// secrets are the answers of this process, by reference without the part after #, so that
// two keys of one secret cost one call.
type secrets struct {
	mu        sync.Mutex
	documents map[string]*document
}

// document is one stored text. Its lock is held while it is asked for: whoever wants the
// same one waits for the answer instead of asking again.
type document struct {
	mu    sync.Mutex
	known bool
	text  string
}

// Secret resolves "ssm:/path" (a parameter, decrypted) and "secretsmanager:name#key" (a
// field of a JSON secret; the whole text without #key). A call is made once more when it
// fails in passing, and takes five seconds at most. Answers are kept, errors are not. Its
// error begins with the reference and has AWS's error code in it, never a value.
func (e *Env) Secret(ctx context.Context, ref string) (string, error) {
	q, err := queryOf(ref)
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	text, err := e.document(ctx, q)
	if err == nil && q.field != "" {
		text, err = fieldOf(text, q.field)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	return text, nil
}

// query is a reference, taken apart.
type query struct {
	service string // ssm, secretsmanager
	name    string
	field   string // of a JSON secret; empty: the whole text
}

func queryOf(ref string) (query, error) {
	service, name, _ := strings.Cut(ref, ":")
	q := query{service: service, name: strings.TrimSpace(name)}
	switch service {
	case "ssm":
	case "secretsmanager":
		name, field, given := strings.Cut(q.name, "#")
		if q.name, q.field = name, field; given && field == "" {
			return query{}, errors.New("no key after #; write secretsmanager:name#key")
		}
	default:
		return query{}, errors.New("not a reference to a secret; write ssm:/path or secretsmanager:name#key")
	}
	if q.name == "" {
		return query{}, errors.New("a reference without a name; write ssm:/path or secretsmanager:name#key")
	}
	return q, nil
}

func (e *Env) document(ctx context.Context, q query) (string, error) {
	e.secrets.mu.Lock()
	id := q.service + ":" + q.name
	d := e.secrets.documents[id]
	if d == nil {
		d = &document{}
		e.secrets.documents[id] = d
	}
	e.secrets.mu.Unlock()

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known {
		return d.text, nil
	}
	text, err := e.fetch(ctx, q)
	if err != nil {
		return "", err
	}
	d.text, d.known = text, true
	return text, nil
}

// fetch asks twice at most.
func (e *Env) fetch(ctx context.Context, q query) (string, error) {
	text, err := e.ask(ctx, q)
	var refused *refusal
	if err == nil || ctx.Err() != nil || errors.As(err, &refused) && !refused.passing() {
		return text, err
	}
	pause := time.NewTimer(secretPause)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return "", err
	case <-pause.C:
	}
	return e.ask(ctx, q)
}

// ask makes one signed call of the services' JSON protocol. Their clients would do the same
// with another megabyte of code.
func (e *Env) ask(ctx context.Context, q query) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, secretAttempt)
	defer cancel()
	target, input := "AmazonSSM.GetParameter", any(struct {
		Name           string
		WithDecryption bool
	}{q.name, true})
	if q.service == "secretsmanager" {
		target, input = "secretsmanager.GetSecretValue", struct{ SecretId string }{q.name}
	}
	body, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address(q.service), bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", target)
	credentials, err := e.credentials.Retrieve(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), q.service, e.region, time.Now()); err != nil {
		return "", err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return "", reason(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", refusalOf(response, answer)
	}
	return textOf(q.service, answer)
}

// address is the service's: the environment's, or AWS's own in the region's partition.
func (e *Env) address(service string) string {
	if at := e.override(service); at != "" {
		return at + "/"
	}
	suffix := "amazonaws.com"
	switch prefix, _, _ := strings.Cut(e.region, "-"); prefix {
	case "cn":
		suffix = "amazonaws.com.cn"
	case "eusc":
		suffix = "amazonaws.eu"
	}
	return "https://" + service + "." + e.region + "." + suffix + "/"
}
