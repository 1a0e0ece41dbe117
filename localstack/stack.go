package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stack is what of the template this machine makes: the rest (roles, policies, logs,
// alarms) only means something on AWS.
type stack struct {
	tables    []table
	buckets   []string
	streams   []stream
	functions []function
	skipped   []string // "Logical (Type)" of the rest
}

type table struct {
	name       string
	attributes map[string]string // name -> type of the key attributes
	hash, rng  string
	ttl        string // empty: none
}

type stream struct {
	name, bucket, prefix, errorPrefix, compression string
	sizeMB, seconds                                int // 0: the service's default
}

type function struct {
	logical, name string
	env           map[string]string
	timeout       time.Duration
	memoryMB      int
	url           bool
	cors          bool // the Function URL would answer CORS requests itself
}

// build resolves the resources of a template.
func (s *scope) build() (*stack, error) {
	out := &stack{}
	for _, logical := range s.template.order {
		r := s.template.resources[logical]
		if r.condition != "" {
			there, err := s.condition(r.condition, 0)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", logical, err)
			}
			if !there {
				continue
			}
		}
		if err := s.add(out, logical, r); err != nil {
			return nil, fmt.Errorf("%s: %w", logical, err)
		}
	}
	return out, nil
}

func (s *scope) add(out *stack, logical string, r resource) error {
	name := s.physical(logical)
	switch r.kind {
	case "AWS::DynamoDB::Table":
		one, err := s.table(name, r.properties)
		out.tables = append(out.tables, one)
		return err
	case "AWS::S3::Bucket":
		given, err := s.optional(r.properties["BucketName"], name)
		out.buckets = append(out.buckets, given)
		return err
	case "AWS::KinesisFirehose::DeliveryStream":
		one, err := s.stream(name, r.properties)
		out.streams = append(out.streams, one)
		return err
	case "AWS::Serverless::Function":
		one, err := s.function(logical, r.properties)
		out.functions = append(out.functions, one)
		return err
	}
	out.skipped = append(out.skipped, logical+" ("+r.kind+")")
	return nil
}

// optional resolves a text that may be missing.
func (s *scope) optional(v any, otherwise string) (string, error) {
	if v == nil {
		return otherwise, nil
	}
	one, err := s.resolve(v)
	if _, left := one.(noValue); err != nil || left {
		return otherwise, err
	}
	return scalar(one)
}

// number resolves a number, which a parameter hands over as text.
func (s *scope) number(v any, otherwise int) (int, error) {
	text, err := s.optional(v, strconv.Itoa(otherwise))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

func (s *scope) table(name string, properties map[string]any) (table, error) {
	t := table{name: name, attributes: map[string]string{}}
	var err error
	if t.name, err = s.optional(properties["TableName"], name); err != nil {
		return t, err
	}
	keys, err := s.resolve(properties["KeySchema"])
	if err != nil {
		return t, err
	}
	list, _ := keys.([]any)
	for _, key := range list {
		attribute, _ := mapping(key)["AttributeName"].(string)
		if mapping(key)["KeyType"] == "RANGE" {
			t.rng = attribute
		} else {
			t.hash = attribute
		}
	}
	definitions, err := s.resolve(properties["AttributeDefinitions"])
	if err != nil {
		return t, err
	}
	list, _ = definitions.([]any)
	for _, definition := range list {
		attribute, _ := mapping(definition)["AttributeName"].(string)
		t.attributes[attribute], _ = mapping(definition)["AttributeType"].(string)
	}
	if t.hash == "" || t.attributes[t.hash] == "" {
		return t, fmt.Errorf("the table has no hash key")
	}
	ttl := mapping(properties, "TimeToLiveSpecification")
	if ttl["Enabled"] == true {
		t.ttl, err = s.optional(ttl["AttributeName"], "")
	}
	return t, err
}

func (s *scope) stream(name string, properties map[string]any) (stream, error) {
	to := mapping(properties, "ExtendedS3DestinationConfiguration")
	hints := mapping(to, "BufferingHints")
	out := stream{name: name}
	bucket := ""
	for _, field := range []struct {
		from any
		to   *string
	}{
		{to["BucketARN"], &bucket}, {to["Prefix"], &out.prefix}, {to["ErrorOutputPrefix"], &out.errorPrefix}, {to["CompressionFormat"], &out.compression},
	} {
		text, err := s.optional(field.from, "")
		if err != nil {
			return out, err
		}
		*field.to = text
	}
	out.bucket = strings.TrimPrefix(bucket, "arn:aws:s3:::")
	if out.bucket == "" {
		return out, fmt.Errorf("the delivery stream has no bucket")
	}
	var err error
	if out.sizeMB, err = s.number(hints["SizeInMBs"], 0); err != nil {
		return out, err
	}
	out.seconds, err = s.number(hints["IntervalInSeconds"], 0)
	return out, err
}

func (s *scope) function(logical string, properties map[string]any) (function, error) {
	properties = merge(s.template.globals, properties)
	f := function{logical: logical, env: map[string]string{}}
	var err error
	if f.name, err = s.optional(properties["FunctionName"], s.physical(logical)); err != nil {
		return f, err
	}
	seconds, err := s.number(properties["Timeout"], 3)
	if err != nil {
		return f, fmt.Errorf("timeout: %w", err)
	}
	f.timeout = time.Duration(seconds) * time.Second
	if f.memoryMB, err = s.number(properties["MemorySize"], 128); err != nil {
		return f, fmt.Errorf("memory: %w", err)
	}
	variables, err := s.resolve(mapping(properties, "Environment", "Variables"))
	if err != nil {
		return f, err
	}
	for name, value := range mapping(variables) {
		if f.env[name], err = scalar(value); err != nil {
			return f, fmt.Errorf("%s: %w", name, err)
		}
	}
	url, err := s.resolve(properties["FunctionUrlConfig"])
	if err != nil {
		return f, err
	}
	f.url = url != nil
	f.cors = mapping(url)["Cors"] != nil
	return f, nil
}

// merge lays own over globals as SAM does: maps key by key, the rest as a whole.
func merge(globals, own map[string]any) map[string]any {
	out := maps.Clone(globals)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range own {
		if inner, ok := value.(map[string]any); ok {
			value = merge(mapping(out[key]), inner)
		}
		out[key] = value
	}
	return out
}

// variables are the function's environment, NAME=value, sorted.
func (f function) variables() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.env)) {
		out = append(out, name+"="+f.env[name])
	}
	return out
}
