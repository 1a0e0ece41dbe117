package awsclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// textOf reads the stored text out of an answer.
func textOf(service string, answer []byte) (string, error) {
	var out struct {
		Parameter    struct{ Value *string } // of ssm
		SecretString *string
		SecretBinary []byte // base64 in JSON
	}
	if json.Unmarshal(answer, &out) != nil {
		return "", errors.New("the answer is not JSON")
	}
	text := out.Parameter.Value
	if service == "secretsmanager" {
		if text = out.SecretString; text == nil && out.SecretBinary != nil {
			text = new(string(out.SecretBinary))
		}
	}
	if text == nil {
		return "", errors.New("the answer has no value in it")
	}
	return *text, nil
}

// fieldOf reads a field of a JSON object: a text, or a number or boolean as it is written.
func fieldOf(text, field string) (string, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil {
		return "", errors.New("the secret is no JSON object; leave #" + field + " out to take it whole")
	}
	raw, have := fields[field]
	if !have {
		return "", errors.New("the secret has no key of that name")
	}
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		return s, nil
	}
	if c := raw[0]; c == '{' || c == '[' || c == 'n' {
		return "", errors.New("that key of the secret holds no text")
	}
	return string(raw), nil
}

// refusal is an answer that says no. AWS's message stays out: it could quote a name that
// nobody should see in a log, and the code says enough.
type refusal struct {
	status int
	code   string
}

func refusalOf(response *http.Response, body []byte) *refusal {
	var answer struct {
		Type string `json:"__type"`
		Code string `json:"code"`
	}
	_ = json.Unmarshal(body, &answer) // what is no JSON has no code
	code := response.Header.Get("X-Amzn-Errortype")
	for _, other := range []string{answer.Type, answer.Code} {
		if code == "" {
			code = other
		}
	}
	code, _, _ = strings.Cut(code, ":")
	code = code[strings.LastIndex(code, "#")+1:]
	if len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		code = ""
	}
	return &refusal{response.StatusCode, code}
}

// Error implements error.
func (r *refusal) Error() string {
	switch r.code {
	case "":
		return fmt.Sprintf("status %d", r.status)
	case "ParameterNotFound", "ResourceNotFoundException":
		return r.code + ": there is none of that name in this region"
	case "AccessDeniedException":
		return r.code + ": the role may not read it"
	}
	return fmt.Sprintf("%s (status %d)", r.code, r.status)
}

// passing tells whether the same call may succeed a moment later.
func (r *refusal) passing() bool {
	switch r.code {
	case "ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded",
		"InternalServerError", "InternalServiceError", "InternalServiceErrorException", "ServiceUnavailable":
		return true
	}
	return r.status >= 500 || r.status == http.StatusTooManyRequests
}
