package emulator

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
)

// vault is named texts with versions: parameters, or secrets.
type vault struct {
	mu      *sync.Mutex
	entries map[string]entry
}

type entry struct {
	value   string
	kind    string // of a parameter: String, SecureString, StringList
	version int
}

func newVault() vault {
	return vault{mu: new(sync.Mutex), entries: map[string]entry{}}
}

func (v vault) get(name string) (entry, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.entries[name]
	return e, ok
}

// put stores the value when allowed says so of what is there.
func (v vault) put(name, value, kind string, allowed func(exists bool) bool) (entry, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, exists := v.entries[name]
	if !allowed(exists) {
		return old, false
	}
	e := entry{value: value, kind: kind, version: old.version + 1}
	v.entries[name] = e
	return e, true
}

func (v vault) all() map[string]entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.entries)
}

func always(bool) bool    { return true }
func ifNew(old bool) bool { return !old }
func ifOld(old bool) bool { return old }

// PutParameter stores a SecureString in Parameter Store, as a new version if it exists.
func (c *Cloud) PutParameter(name, value string) {
	c.params.put(name, value, "SecureString", always)
}

// PutSecret stores a secret in Secrets Manager, as a new version if it exists.
func (c *Cloud) PutSecret(name, value string) {
	c.secrets.put(name, value, "", always)
}

type parameter struct {
	Name, Type, Value, ARN string
	Version                int
}

type getParameter struct {
	Name           string
	WithDecryption bool
}

type putParameter struct {
	Name, Value, Type string
	Overwrite         bool
}

func (c *Cloud) serveParameters(w http.ResponseWriter, operation string, body []byte) {
	switch operation {
	case "GetParameter":
		answer(w, body, c.getParameter)
	case "PutParameter":
		answer(w, body, c.putParameter)
	default:
		writeError(w, apiError{Code: "UnknownOperationException", Message: "not here: AmazonSSM." + operation})
	}
}

func (c *Cloud) getParameter(in getParameter) (map[string]parameter, error) {
	e, ok := c.params.get(in.Name)
	if !ok {
		return nil, apiError{Code: "ParameterNotFound", Message: "no parameter " + in.Name}
	}
	value := e.value
	if e.kind == "SecureString" && !in.WithDecryption {
		value = "AQICAHencrypted" // whoever forgot to ask must not get the text here either
	}
	return map[string]parameter{"Parameter": {
		Name: in.Name, Type: e.kind, Value: value, Version: e.version,
		ARN: fmt.Sprintf("arn:aws:ssm:%s:%s:parameter/%s", c.options.Region, c.options.Account, trimSlash(in.Name)),
	}}, nil
}

func trimSlash(name string) string {
	if len(name) > 0 && name[0] == '/' {
		return name[1:]
	}
	return name
}

func (c *Cloud) putParameter(in putParameter) (map[string]any, error) {
	allowed := ifNew
	if in.Overwrite {
		allowed = always
	}
	kind := in.Type
	if kind == "" {
		kind = "String"
	}
	e, ok := c.params.put(in.Name, in.Value, kind, allowed)
	if !ok {
		return nil, apiError{Code: "ParameterAlreadyExists", Message: "The parameter already exists. To overwrite this value, set the overwrite option in the request to true."}
	}
	return map[string]any{"Version": e.version, "Tier": "Standard"}, nil
}

type secretIn struct {
	Name, SecretId, SecretString string
}

func (c *Cloud) serveSecrets(w http.ResponseWriter, operation string, body []byte) {
	switch operation {
	case "GetSecretValue":
		answer(w, body, c.getSecret)
	case "CreateSecret":
		answer(w, body, func(in secretIn) (map[string]any, error) {
			return c.putSecret(in.Name, in.SecretString, ifNew)
		})
	case "PutSecretValue":
		answer(w, body, func(in secretIn) (map[string]any, error) {
			return c.putSecret(in.SecretId, in.SecretString, ifOld)
		})
	default:
		writeError(w, apiError{Code: "UnknownOperationException", Message: "not here: secretsmanager." + operation})
	}
}

// getSecret finds a secret by its name or its ARN.
func (c *Cloud) getSecret(in secretIn) (map[string]any, error) {
	for name, e := range c.secrets.all() {
		if in.SecretId == name || in.SecretId == c.secretARN(name) {
			return map[string]any{"ARN": c.secretARN(name), "Name": name, "SecretString": e.value, "VersionId": fmt.Sprintf("version-%024d", e.version), "VersionStages": []string{"AWSCURRENT"}}, nil
		}
	}
	return nil, apiError{Code: "ResourceNotFoundException", Message: "Secrets Manager can't find the specified secret."}
}

func (c *Cloud) secretARN(name string) string {
	return fmt.Sprintf("arn:aws:secretsmanager:%s:%s:secret:%s-AbCdEf", c.options.Region, c.options.Account, name)
}

func (c *Cloud) putSecret(name, value string, allowed func(bool) bool) (map[string]any, error) {
	e, ok := c.secrets.put(name, value, "", allowed)
	switch {
	case !ok && e.version > 0:
		return nil, apiError{Code: "ResourceExistsException", Message: "The operation failed because the secret " + name + " already exists."}
	case !ok:
		return nil, apiError{Code: "ResourceNotFoundException", Message: "Secrets Manager can't find the specified secret."}
	}
	return map[string]any{"ARN": c.secretARN(name), "Name": name, "VersionId": fmt.Sprintf("version-%024d", e.version)}, nil
}
