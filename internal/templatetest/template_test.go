// Package templatetest keeps template.yaml, the SAM stack, in agreement with the code that
// runs in it.
//
// Not here: what cfn-lint finds (`make template-lint`), and whether the stack can be
// deployed (e2e/deploy).
package templatetest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

const root = "../../"

// stack is the template as CloudFormation sees it with certain parameters: conditions are
// decided, resources that are not made are gone, and a reference to another resource is
// text, as in Fn::Sub: ${SessionTable.Arn}.
type stack struct {
	parameters map[string]any // as declared
	resources  map[string]resource
	outputs    map[string]any
	values     map[string]string // of the parameters
	conditions map[string]any
}

type resource struct {
	kind       string // AWS::DynamoDB::Table
	properties map[string]any
	attributes map[string]any // DeletionPolicy, Metadata, …
}

// noValue is what a property becomes that is left out.
type noValue struct{}

// deploy decides the template for the defaults and what is given, as NAME=value.
func deploy(t *testing.T, given ...string) stack {
	t.Helper()
	text, err := os.ReadFile(root + "template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Docs) != 1 {
		t.Fatalf("template.yaml has %d documents, want 1", len(file.Docs))
	}
	whole := object(t, plain(t, file.Docs[0].Body), "template.yaml")
	s := stack{
		parameters: object(t, whole["Parameters"], "Parameters"),
		values:     map[string]string{"AWS::StackName": "stack", "AWS::Partition": "aws", "AWS::Region": "region", "AWS::AccountId": "account", "AWS::URLSuffix": "amazonaws.com"},
		conditions: object(t, whole["Conditions"], "Conditions"),
		resources:  map[string]resource{},
	}
	for name, declared := range s.parameters {
		s.values[name] = fmt.Sprint(object(t, declared, name)["Default"])
	}
	for _, pair := range given {
		name, value, _ := strings.Cut(pair, "=")
		if _, known := s.parameters[name]; !known {
			t.Fatalf("template.yaml has no parameter %s", name)
		}
		s.values[name] = value
	}
	globals := object(t, object(t, whole["Globals"], "Globals")["Function"], "Globals.Function")
	for name, declared := range object(t, whole["Resources"], "Resources") {
		all := object(t, declared, name)
		if condition, conditional := all["Condition"]; conditional && !s.holds(t, condition) {
			continue
		}
		properties := object(t, s.decide(t, all["Properties"]), name+".Properties")
		kind := fmt.Sprint(all["Type"])
		if kind == "AWS::Serverless::Function" {
			inherit(properties, object(t, s.decide(t, globals), "Globals"))
		}
		s.resources[name] = resource{kind, properties, all}
	}
	s.outputs = object(t, s.decide(t, whole["Outputs"]), "Outputs")
	return s
}

// interfaceOf is what the console shows of the parameters.
func interfaceOf(t *testing.T) map[string]any {
	t.Helper()
	file, err := parser.ParseBytes([]byte(read(t, "template.yaml")), 0)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, at(plain(t, file.Docs[0].Body), "Metadata", "AWS::CloudFormation::Interface"), "Metadata")
}

// inherit lays Globals below a function, one level deep, as SAM does for maps.
func inherit(into, from map[string]any) {
	for key, value := range from {
		mine, have := into[key]
		if !have {
			into[key] = value
			continue
		}
		a, aMap := mine.(map[string]any)
		b, bMap := value.(map[string]any)
		if aMap && bMap {
			inherit(a, b)
		}
	}
}

// plain is a YAML node as JSON would have it, with !Ref and the like as {"Fn": …}.
func plain(t *testing.T, node ast.Node) any {
	t.Helper()
	switch n := node.(type) {
	case *ast.MappingNode:
		m := map[string]any{}
		for _, entry := range n.Values {
			key := fmt.Sprint(plain(t, entry.Key.(ast.Node)))
			if _, twice := m[key]; twice {
				t.Fatalf("template.yaml: %s: twice %s", entry.GetPath(), key)
			}
			m[key] = plain(t, entry.Value)
		}
		return m
	case *ast.MappingValueNode:
		return map[string]any{fmt.Sprint(plain(t, n.Key.(ast.Node))): plain(t, n.Value)}
	case *ast.SequenceNode:
		list := []any{}
		for _, value := range n.Values {
			list = append(list, plain(t, value))
		}
		return list
	case *ast.TagNode:
		name := strings.TrimPrefix(n.Start.Value, "!")
		if name != "Ref" {
			name = "Fn::" + name
		}
		return map[string]any{name: plain(t, n.Value)}
	case *ast.AnchorNode, *ast.AliasNode:
		t.Fatalf("template.yaml: %s: CloudFormation does not know anchors and aliases", node.GetPath())
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.NullNode:
		return nil
	case ast.ScalarNode:
		return n.GetValue()
	}
	t.Fatalf("template.yaml: %s: a %s", node.GetPath(), node.Type())
	return nil
}

// decide works out functions; what only a deployment knows stays as text.
func (s stack) decide(t *testing.T, value any) any {
	t.Helper()
	switch v := value.(type) {
	case []any:
		list := []any{}
		for _, item := range v {
			if decided := s.decide(t, item); decided != any(noValue{}) {
				list = append(list, decided)
			}
		}
		return list
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				if name == "Ref" || strings.HasPrefix(name, "Fn::") {
					return s.call(t, name, argument)
				}
			}
		}
		m := map[string]any{}
		for key, item := range v {
			if decided := s.decide(t, item); decided != any(noValue{}) {
				m[key] = decided
			}
		}
		return m
	}
	return value
}

func (s stack) call(t *testing.T, name string, argument any) any {
	t.Helper()
	switch name {
	case "Ref":
		switch value, known := s.values[argument.(string)]; {
		case argument == "AWS::NoValue":
			return noValue{}
		case known && s.declaredType(argument.(string)) == "CommaDelimitedList":
			list := []any{}
			for item := range strings.SplitSeq(value, ",") {
				list = append(list, item)
			}
			return list
		case known:
			return value
		}
		return "${" + argument.(string) + "}"
	case "Fn::GetAtt":
		return "${" + argument.(string) + "}"
	case "Fn::Sub":
		text := argument.(string)
		for parameter, value := range s.values {
			text = strings.ReplaceAll(text, "${"+parameter+"}", value)
		}
		return text
	case "Fn::If":
		choice := argument.([]any)
		if s.holds(t, choice[0]) {
			return s.decide(t, choice[1])
		}
		return s.decide(t, choice[2])
	case "Fn::Join":
		var parts []string
		for _, part := range s.decide(t, argument.([]any)[1]).([]any) {
			parts = append(parts, fmt.Sprint(part))
		}
		return strings.Join(parts, fmt.Sprint(argument.([]any)[0]))
	case "Fn::Equals":
		pair := argument.([]any)
		return fmt.Sprint(s.decide(t, pair[0])) == fmt.Sprint(s.decide(t, pair[1]))
	case "Fn::Not":
		return !s.decide(t, argument.([]any)[0]).(bool)
	}
	t.Fatalf("template.yaml: the test knows no %s", name)
	return nil
}

func (s stack) declaredType(parameter string) string {
	declared, _ := s.parameters[parameter].(map[string]any)
	kind, _ := declared["Type"].(string)
	return kind
}

func (s stack) holds(t *testing.T, condition any) bool {
	t.Helper()
	definition, known := s.conditions[condition.(string)]
	if !known {
		t.Fatalf("template.yaml: no condition %v", condition)
	}
	return s.decide(t, definition).(bool)
}

// of is the resource of a name, which must be of that kind.
func (s stack) of(t *testing.T, kind, name string) map[string]any {
	t.Helper()
	r, made := s.resources[name]
	if !made || r.kind != kind {
		t.Fatalf("template.yaml: %s is %q, want a %s", name, r.kind, kind)
	}
	return r.properties
}

// all lists the names of a kind's resources.
func (s stack) all(kind string) []string {
	var names []string
	for name, r := range s.resources {
		if r.kind == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// at follows keys, and indexes as text, into a value; nil where there is nothing.
func at(value any, path ...string) any {
	for _, key := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// number is a decided value as a number: parameters are text.
func number(t *testing.T, value any) int {
	t.Helper()
	n, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil {
		t.Fatalf("template.yaml: %v is no number", value)
	}
	return n
}

func object(t *testing.T, value any, what string) map[string]any {
	t.Helper()
	m, ok := value.(map[string]any)
	if !ok {
		t.Fatalf("template.yaml: %s is %T, want a mapping", what, value)
	}
	return m
}

// texts is one text or a list of them as a list.
func texts(value any) []string {
	list, many := value.([]any)
	if !many {
		return []string{fmt.Sprint(value)}
	}
	var all []string
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// read is a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
