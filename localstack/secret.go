package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// secret stores a text at ssm:/path or secretsmanager:name, over what is there.
func (c *clients) secret(ctx context.Context, reference, text string) error {
	service, name, _ := strings.Cut(reference, ":")
	if service == "ssm" {
		return c.call(ctx, "ssm", "AmazonSSM.PutParameter", map[string]any{"Name": name, "Value": text, "Type": "SecureString", "Overwrite": true})
	}
	err := c.call(ctx, service, "secretsmanager.CreateSecret", map[string]any{"Name": name, "SecretString": text})
	if err != nil && strings.Contains(err.Error(), "ResourceExistsException") {
		err = c.call(ctx, service, "secretsmanager.PutSecretValue", map[string]any{"SecretId": name, "SecretString": text})
	}
	return err
}

// call signs and sends one request of a JSON protocol. Two operations are not worth two SDKs.
func (c *clients) call(ctx context.Context, service, target string, in map[string]any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, *c.config.BaseEndpoint+"/", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", target)
	who, err := c.config.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, who, request, hex.EncodeToString(sum[:]), service, c.config.Region, time.Now()); err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", target, response.StatusCode, answer)
	}
	return err
}
