package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"switchboard/internal/provider"
)

// parallelSecrets bounds how many secrets are asked for at the same time.
const parallelSecrets = 8

// answer is what Source.Secrets said to a reference.
type answer struct {
	text string
	err  error
}

// reference tells whether a text is the name of a secret in AWS instead of the secret.
func reference(s string) bool {
	return strings.HasPrefix(s, "ssm:") || strings.HasPrefix(s, "secretsmanager:")
}

// ask resolves a reference; each is asked for once.
func (l *loader) ask(ref string) (string, error) {
	a, have := l.resolved[ref]
	if !have {
		a.text, a.err = l.src.Secrets(ref)
		l.resolved[ref] = a
	}
	if a.err != nil { // its text begins with the reference, as ours does
		return "", fmt.Errorf("%s", strings.TrimPrefix(strings.ReplaceAll(a.err.Error(), "\n", " "), ref+": "))
	}
	return a.text, nil
}

// remote resolves a reference that stands in the place of a key.
func (l *loader) remote(at place, ref string) (string, bool) {
	if _, name, _ := strings.Cut(ref, ":"); strings.Trim(name, "/# ") == "" {
		l.fail(at, "a reference without a name; write ssm:/path or secretsmanager:name#key")
		return "", false
	}
	if l.src.Secrets == nil {
		instead := "write env:NAME here"
		if at.line == 0 {
			instead = "set it to the key itself"
		}
		l.fail(at, "ssm: and secretsmanager: only work on AWS; %s", instead)
		return "", false
	}
	text, err := l.ask(ref)
	if err != nil {
		l.fail(at, "%s cannot be read: %v", ref, err)
		return "", false
	}
	text, ok := l.clean(at, text)
	if ok && text == "" {
		l.fail(at, "%s is empty; store a key there", ref)
		return "", false
	}
	return text, ok
}

// given is a key that a variable holds, or the one that it refers to. "" with true: there is
// none.
func (l *loader) given(at place, name string) (string, bool) {
	text := strings.TrimSpace(l.getenv(name))
	if reference(text) {
		return l.remote(at, text)
	}
	return l.clean(at, text)
}

// prefetch asks for the secrets of file and environment at the same time: one after the
// other, each costs the start of a function a round trip. What it finds in a wrong place is
// asked for in vain; what is wrong with an answer is said where the key belongs.
func (l *loader) prefetch(root ast.Node) {
	if l.src.Secrets == nil {
		return
	}
	refs := l.references(root)
	if len(refs) < 2 {
		return
	}
	answers := make([]answer, len(refs))
	var group sync.WaitGroup
	places := make(chan struct{}, parallelSecrets)
	for i, ref := range refs {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			answers[i].text, answers[i].err = l.src.Secrets(ref)
		})
	}
	group.Wait()
	for i, ref := range refs {
		l.resolved[ref] = answers[i]
	}
}

// references lists what file and environment refer to, each once.
func (l *loader) references(root ast.Node) []string {
	var refs []string
	add := func(text string) {
		text = strings.TrimSpace(text)
		if reference(text) && !slices.Contains(refs, text) {
			if _, have := l.resolved[text]; !have {
				refs = append(refs, text)
			}
		}
	}
	add(l.getenv("SWITCHBOARD_ADMIN_KEY"))
	for _, vendor := range provider.Vendors() {
		for name := range keyVariables(vendor) {
			add(l.getenv(name))
		}
	}
	if root != nil {
		ast.Walk(scalars(func(text string) {
			if name, env := strings.CutPrefix(text, "env:"); env {
				text = l.getenv(name)
			}
			add(text)
		}), root)
	}
	return refs
}

// scalars visits every text of a document.
type scalars func(text string)

// Visit implements ast.Visitor.
func (s scalars) Visit(n ast.Node) ast.Visitor {
	if t, ok := n.(*ast.StringNode); ok {
		s(t.Value)
	}
	return s
}

// keyVariables are the names a vendor's keys have in the environment, with their ids:
// OPENAI_API_KEY, OPENAI_API_KEY_2, …
func keyVariables(vendor provider.Vendor) func(yield func(name, id string) bool) {
	return func(yield func(name, id string) bool) {
		if vendor.Env == "" {
			return
		}
		for n := 1; n <= probedKeys; n++ {
			id := strconv.Itoa(n)
			name := vendor.Env + "_API_KEY"
			if n > 1 {
				name += "_" + id
			}
			if !yield(name, id) {
				return
			}
		}
	}
}
