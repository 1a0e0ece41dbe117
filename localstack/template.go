package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// template is template.yaml as it is written: nothing of it is resolved. Values are
// map[string]any, []any, string, int64, uint64, float64, bool, nil, and call.
type template struct {
	parameters map[string]any // name -> its Default
	conditions map[string]any
	globals    map[string]any // of functions
	resources  map[string]resource
	order      []string // of the resources' logical ids
	outputs    []output
}

type resource struct {
	kind       string // AWS::DynamoDB::Table
	condition  string // empty: always there
	properties map[string]any
}

type output struct {
	name  string
	value any
}

// call is an intrinsic function, in its short or its long form.
type call struct {
	name string // Ref, GetAtt, Sub, If, …
	arg  any
	line int
}

func readTemplate(path string) (*template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := parseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parseTemplate(text []byte) (*template, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) != 1 {
		return nil, errors.New("not one YAML document")
	}
	root, err := toValue(file.Docs[0].Body)
	if err != nil {
		return nil, err
	}
	t := &template{
		parameters: map[string]any{}, conditions: mapping(root, "Conditions"), globals: mapping(root, "Globals", "Function"),
		resources: map[string]resource{},
	}
	for name, p := range mapping(root, "Parameters") {
		t.parameters[name] = mapping(p)["Default"]
	}
	for name, r := range mapping(root, "Resources") {
		kind, _ := mapping(r)["Type"].(string)
		condition, _ := mapping(r)["Condition"].(string)
		t.resources[name] = resource{kind: kind, condition: condition, properties: mapping(r, "Properties")}
	}
	t.order = keysOf(file.Docs[0].Body, "Resources")
	for _, name := range keysOf(file.Docs[0].Body, "Outputs") {
		t.outputs = append(t.outputs, output{name, mapping(root, "Outputs", name)["Value"]})
	}
	return t, nil
}

// mapping walks down by keys; nil where there is none.
func mapping(v any, path ...string) map[string]any {
	m, _ := v.(map[string]any)
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// keysOf lists the keys of a top-level section in their order.
func keysOf(root ast.Node, section string) (keys []string) {
	for _, v := range pairs(root) {
		if v.Key.GetToken().Value != section {
			continue
		}
		for _, inner := range pairs(v.Value) {
			keys = append(keys, inner.Key.GetToken().Value)
		}
	}
	return keys
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func toValue(n ast.Node) (any, error) {
	switch n := n.(type) {
	case nil:
		return nil, nil
	case *ast.MappingNode, *ast.MappingValueNode:
		return toMap(n)
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, item := range n.Values {
			v, err := toValue(item)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case *ast.TagNode:
		arg, err := toValue(n.Value)
		if err != nil {
			return nil, err
		}
		return call{strings.TrimPrefix(n.Start.Value, "!"), arg, n.Start.Position.Line}, nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode:
		return n.Value, nil
	case *ast.FloatNode:
		return n.Value, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.NullNode:
		return nil, nil
	}
	return nil, fmt.Errorf("line %d: %s is not understood here", n.GetToken().Position.Line, n.Type())
}

func toMap(n ast.Node) (any, error) {
	m := map[string]any{}
	for _, pair := range pairs(n) {
		if c, ok := pseudoInFlow(pair); ok {
			return c, nil
		}
		key := pair.Key.GetToken().Value
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice", pair.Key.GetToken().Position.Line, key)
		}
		v, err := toValue(pair.Value)
		if err != nil {
			return nil, err
		}
		name, function := strings.CutPrefix(key, "Fn::")
		if len(pairs(n)) == 1 && (function || key == "Ref") {
			return call{name, v, pair.Key.GetToken().Position.Line}, nil
		}
		m[key] = v
	}
	return m, nil
}

// pseudoInFlow mends what the parser makes of {a: !Ref AWS::Region}: a map with the key
// "!Ref AWS" and the value ":Region".
func pseudoInFlow(pair *ast.MappingValueNode) (call, bool) {
	tag, ok := pair.Key.(*ast.TagNode)
	if !ok || tag.Value == nil {
		return call{}, false
	}
	rest, ok := pair.Value.(*ast.StringNode)
	if !ok {
		return call{}, false
	}
	return call{strings.TrimPrefix(tag.Start.Value, "!"), tag.Value.GetToken().Value + ":" + rest.Value, tag.Start.Position.Line}, true
}
