package main

import (
	"fmt"
	"strings"
)

// scope resolves the values of a template as CloudFormation would.
type scope struct {
	template   *template
	stack      string
	region     string
	account    string
	parameters map[string]string // given; they come before the defaults
	urls       map[string]string // of the functions, by logical id
}

// noValue is what !Ref AWS::NoValue is: the key or the item is left out.
type noValue struct{}

// deepest stops values that lead round in a circle.
const deepest = 64

func (s *scope) resolve(v any) (any, error) { return s.value(v, 0) }

func (s *scope) value(v any, depth int) (any, error) {
	if depth > deepest {
		return nil, fmt.Errorf("more than %d values inside each other: a circle", deepest)
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			one, err := s.value(inner, depth+1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			if _, left := one.(noValue); !left {
				out[key] = one
			}
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			one, err := s.value(inner, depth+1)
			if err != nil {
				return nil, err
			}
			if _, left := one.(noValue); !left {
				out = append(out, one)
			}
		}
		return out, nil
	case call:
		out, err := s.call(v, depth)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", v.line, v.name, err)
		}
		return out, nil
	}
	return v, nil
}

func (s *scope) call(c call, depth int) (any, error) {
	switch c.name {
	case "Ref":
		name, err := s.text(c.arg, depth)
		if err != nil {
			return nil, err
		}
		return s.ref(name)
	case "GetAtt":
		return s.getAtt(c.arg)
	case "Sub":
		return s.sub(c.arg, depth)
	case "Join":
		return s.join(c.arg, depth)
	case "If":
		return s.branch(c.arg, depth)
	case "Condition", "Equals", "Not", "And", "Or":
		return s.truth(c, depth)
	}
	return nil, fmt.Errorf("this function is not known here")
}

// text resolves v and writes it as CloudFormation hands it over.
func (s *scope) text(v any, depth int) (string, error) {
	one, err := s.value(v, depth+1)
	if err != nil {
		return "", err
	}
	return scalar(one)
}

// scalar is a resolved value as text.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case map[string]any, []any, nil, noValue:
		return "", fmt.Errorf("%v is not a text", v)
	}
	return fmt.Sprint(v), nil
}

func (s *scope) ref(name string) (any, error) {
	if given, ok := s.parameters[name]; ok {
		return given, nil
	}
	if value, ok := s.template.parameters[name]; ok {
		return fallback(value, name)
	}
	switch name {
	case "AWS::NoValue":
		return noValue{}, nil
	case "AWS::Region":
		return s.region, nil
	case "AWS::AccountId":
		return s.account, nil
	case "AWS::StackName":
		return s.stack, nil
	case "AWS::Partition":
		return "aws", nil
	case "AWS::URLSuffix":
		return "amazonaws.com", nil
	}
	if _, ok := s.template.resources[name]; ok {
		return s.physical(name), nil
	}
	return nil, fmt.Errorf("%s is no parameter and no resource", name)
}

// fallback is a parameter's default, which is text whatever it looks like.
func fallback(value any, name string) (any, error) {
	if value == nil {
		return nil, fmt.Errorf("the parameter %s has no default: give it with --parameter %s=…", name, name)
	}
	return scalar(value)
}

// physical names a resource. CloudFormation adds random letters; here the names are stable.
func (s *scope) physical(logical string) string {
	name := s.stack + "-" + logical
	if s.template.resources[logical].kind == "AWS::S3::Bucket" {
		return strings.ToLower(name)
	}
	return name
}

func (s *scope) getAtt(arg any) (any, error) {
	path, _ := arg.(string)
	if list, ok := arg.([]any); ok && len(list) == 2 {
		path = fmt.Sprint(list[0], ".", list[1])
	}
	logical, attribute, _ := strings.Cut(path, ".")
	if function, ok := strings.CutSuffix(logical, "Url"); ok && attribute == "FunctionUrl" && s.template.resources[function].kind == "AWS::Serverless::Function" {
		return s.urls[function], nil
	}
	resource, ok := s.template.resources[logical]
	if !ok {
		return nil, fmt.Errorf("%s is no resource", logical)
	}
	if attribute != "Arn" {
		return nil, fmt.Errorf("the attribute %s is not known here", path)
	}
	return s.arn(resource.kind, s.physical(logical)), nil
}

func (s *scope) arn(kind, name string) string {
	at := func(service, rest string) string {
		return fmt.Sprintf("arn:aws:%s:%s:%s:%s", service, s.region, s.account, rest)
	}
	switch kind {
	case "AWS::S3::Bucket":
		return "arn:aws:s3:::" + name
	case "AWS::DynamoDB::Table":
		return at("dynamodb", "table/"+name)
	case "AWS::KinesisFirehose::DeliveryStream":
		return at("firehose", "deliverystream/"+name)
	case "AWS::Serverless::Function":
		return at("lambda", "function:"+name)
	case "AWS::Logs::LogGroup":
		return at("logs", "log-group:"+name+":*")
	case "AWS::IAM::Role":
		return "arn:aws:iam::" + s.account + ":role/" + name
	}
	return at(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(kind, "AWS::"), "::", "-")), name)
}

// sub replaces ${Name}, ${Name.Attribute} and ${Local}; ${!Literal} stays as ${Literal}.
func (s *scope) sub(arg any, depth int) (any, error) {
	locals := map[string]any{}
	if list, ok := arg.([]any); ok && len(list) == 2 {
		arg, locals = list[0], mapping(list[1])
	}
	rest, ok := arg.(string)
	if !ok {
		return nil, fmt.Errorf("it wants a text")
	}
	var out strings.Builder
	for {
		before, tail, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(tail, "}")
		if !closed {
			return nil, fmt.Errorf("${ without }")
		}
		text, err := s.placeholder(strings.TrimSpace(name), locals, depth)
		if err != nil {
			return nil, err
		}
		out.WriteString(text)
		rest = after
	}
}

func (s *scope) placeholder(name string, locals map[string]any, depth int) (string, error) {
	if literal, ok := strings.CutPrefix(name, "!"); ok {
		return "${" + literal + "}", nil
	}
	if local, ok := locals[name]; ok {
		return s.text(local, depth)
	}
	if strings.Contains(name, ".") {
		return s.text(call{name: "GetAtt", arg: name}, depth)
	}
	return s.text(call{name: "Ref", arg: name}, depth)
}

func (s *scope) join(arg any, depth int) (any, error) {
	list, _ := arg.([]any)
	if len(list) != 2 {
		return nil, fmt.Errorf("it wants a separator and a list")
	}
	separator, err := s.text(list[0], depth)
	if err != nil {
		return nil, err
	}
	items, err := s.value(list[1], depth+1)
	if err != nil {
		return nil, err
	}
	if text, ok := items.(string); ok { // a CommaDelimitedList parameter
		return strings.Join(strings.Split(text, ","), separator), nil
	}
	parts := []string{}
	all, _ := items.([]any)
	for _, item := range all {
		text, err := scalar(item)
		if err != nil {
			return nil, err
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, separator), nil
}
