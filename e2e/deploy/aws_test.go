//go:build deploy

package deploy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// sign signs a request as the account's owner.
func sign(t *testing.T, r *http.Request, service string, body []byte) {
	t.Helper()
	digest := sha256.Sum256(body)
	hash := hex.EncodeToString(digest[:])
	if service == "s3" {
		r.Header.Set("X-Amz-Content-Sha256", hash)
	}
	err := v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, r, hash, service, region, time.Now())
	if err != nil {
		t.Fatal(err)
	}
}

// send makes a signed call and returns the body of its answer, which must be a good one.
func (m *ministack) send(t *testing.T, service, method, path, contentType, target string, body []byte) []byte {
	t.Helper()
	status, text := m.try(t, service, method, path, contentType, target, body)
	if status >= 300 {
		t.Fatalf("%s %s %s %s: %d: %s", service, method, path, target, status, text)
	}
	return text
}

// try is send for a call that may be refused.
func (m *ministack) try(t *testing.T, service, method, path, contentType, target string, body []byte) (status int, text []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, m.endpoint+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	sign(t, r, service, body)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		t.Fatalf("%s %s %s %s: %v", service, method, path, target, err)
	}
	return response.StatusCode, text
}

// call makes a call of a service that speaks JSON; target is for example AmazonSSM.PutParameter.
func (m *ministack) call(t *testing.T, service, target string, input map[string]any) map[string]any {
	t.Helper()
	body, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	version := "1.1"
	if strings.HasPrefix(target, "DynamoDB_") {
		version = "1.0"
	}
	return decode(t, m.send(t, service, http.MethodPost, "/", "application/x-amz-json-"+version, target, body))
}

// get is a call of a service that speaks REST and JSON.
func (m *ministack) get(t *testing.T, service, path string) map[string]any {
	t.Helper()
	return decode(t, m.send(t, service, http.MethodGet, path, "", "", nil))
}

// query is a call of a service that speaks forms and XML.
func (m *ministack) query(t *testing.T, service string, form url.Values) string {
	t.Helper()
	return string(m.send(t, service, http.MethodPost, "/", "application/x-www-form-urlencoded", "", []byte(form.Encode())))
}

func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if len(text) == 0 {
		return m
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return m
}

// objects are the bucket's below a prefix: key -> content, decompressed where it is.
func (m *ministack) objects(t *testing.T, bucket, prefix string) map[string][]byte {
	t.Helper()
	var list struct {
		Contents    []struct{ Key string }
		IsTruncated bool
	}
	text := m.send(t, "s3", http.MethodGet, "/"+bucket+"?list-type=2&prefix="+url.QueryEscape(prefix), "", "", nil)
	if err := xml.Unmarshal(text, &list); err != nil {
		t.Fatalf("list of %s: %v: %s", bucket, err, text)
	}
	if list.IsTruncated {
		t.Fatalf("%s has more objects than one list shows", bucket)
	}
	all := map[string][]byte{}
	for _, object := range list.Contents {
		content := m.send(t, "s3", http.MethodGet, (&url.URL{Path: "/" + bucket + "/" + object.Key}).EscapedPath(), "", "", nil)
		if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
			reader, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if content, err = io.ReadAll(reader); err != nil {
				t.Fatal(err)
			}
		}
		all[object.Key] = content
	}
	return all
}

// items are all rows of a table, with the types of their values taken off.
func (m *ministack) items(t *testing.T, table string) []map[string]string {
	t.Helper()
	var rows []map[string]string
	list, _ := m.call(t, "dynamodb", "DynamoDB_20120810.Scan", map[string]any{"TableName": table, "ConsistentRead": true})["Items"].([]any)
	for _, item := range list {
		row := map[string]string{}
		for name, typed := range item.(map[string]any) {
			for _, value := range typed.(map[string]any) {
				row[name] = fmt.Sprint(value)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// at follows keys into decoded JSON; nil where there is nothing.
func at(value any, path ...string) any {
	for _, key := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
