package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parsed(t *testing.T, text string) *template {
	t.Helper()
	tpl, err := parseTemplate([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func TestParseTemplate(t *testing.T) {
	tpl := parsed(t, `
Parameters:
  Size: {Type: Number, Default: 512}
  Free: {Type: String}
Conditions:
  Big: !Equals [!Ref Size, 1024]
Globals:
  Function: {Runtime: provided.al2023}
Resources:
  B:
    Type: AWS::S3::Bucket
    Condition: Big
    Properties:
      Name: !Sub "${AWS::StackName}-x"
      Long: {"Fn::GetAtt": [A, Arn]}
      Ref: {Ref: A}
      Two: {Ref: A, Other: 1}
      Text: |
        a
        b
      List: [1, -2, 1.5, true, null, "007", 2012-10-17]
  A:
    Type: AWS::DynamoDB::Table
Outputs:
  Z: {Value: !Ref A}
  Y: {Value: x}
`)
	if !cmp.Equal(tpl.parameters, map[string]any{"Size": uint64(512), "Free": nil}) {
		t.Errorf("parameters = %#v", tpl.parameters)
	}
	if !cmp.Equal(tpl.order, []string{"B", "A"}) || tpl.outputs[0].name != "Z" || tpl.outputs[1].value != "x" || tpl.globals["Runtime"] != "provided.al2023" {
		t.Errorf("order = %v, outputs = %v, globals = %v", tpl.order, tpl.outputs, tpl.globals)
	}
	b := tpl.resources["B"]
	want := map[string]any{
		"Name": call{"Sub", "${AWS::StackName}-x", 14},
		"Long": call{"GetAtt", []any{"A", "Arn"}, 15},
		"Ref":  call{"Ref", "A", 16},
		"Two":  map[string]any{"Ref": "A", "Other": uint64(1)},
		"Text": "a\nb\n",
		"List": []any{uint64(1), int64(-2), 1.5, true, nil, "007", "2012-10-17"},
	}
	if diff := cmp.Diff(want, b.properties, cmp.AllowUnexported(call{})); b.kind != "AWS::S3::Bucket" || b.condition != "Big" || diff != "" {
		t.Errorf("B = %s %s, %s", b.kind, b.condition, diff)
	}
}

func TestParseTemplateErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"a: [", ""},
		{"a: &x 1\nb: *x", "line 1"},
		{"a: 1\n---\nb: 2", "not one YAML document"},
	} {
		if _, err := parseTemplate([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("parseTemplate(%q) = %v, want an error with %q", tt.text, err, tt.want)
		}
	}
	if _, err := readTemplate(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("readTemplate(none) = nil")
	}
}

const resolvable = `
Parameters:
  Size: {Type: Number, Default: 512}
  Name: {Type: String, Default: ""}
  Origins: {Type: CommaDelimitedList, Default: ""}
  Needed: {Type: String}
Conditions:
  Named: !Not [!Equals [!Ref Name, ""]]
  Big: !Equals [!Ref Size, 512]
  Both: !And [!Condition Named, !Condition Big]
  Either: !Or [{Condition: Named}, !Condition Big]
  HasOrigins: !Not [!Equals [!Join ["", !Ref Origins], ""]]
  Circle: !Not [!Condition Circle]
Resources:
  Bucket: {Type: AWS::S3::Bucket}
  Table: {Type: AWS::DynamoDB::Table}
  Stream: {Type: AWS::KinesisFirehose::DeliveryStream}
  Fn: {Type: AWS::Serverless::Function}
  Role: {Type: AWS::IAM::Role}
  Logs: {Type: AWS::Logs::LogGroup}
  Other: {Type: AWS::Glue::Database}
  V:
    Type: Test
    Properties:
      Value: `

func resolveText(t *testing.T, expression string, given map[string]string) (any, error) {
	t.Helper()
	tpl := parsed(t, resolvable+expression+"\n")
	s := &scope{template: tpl, stack: "sb", region: "eu-west-1", account: "123456789012", parameters: given, urls: map[string]string{"Fn": "http://127.0.0.1:9000/"}}
	return s.resolve(tpl.resources["V"].properties["Value"])
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		expression string
		want       any
	}{
		{`plain`, "plain"},
		{`!Ref Size`, "512"},
		{`!Ref Name`, ""},
		{`!Ref AWS::Region`, "eu-west-1"},
		{`!Ref AWS::AccountId`, "123456789012"},
		{`!Ref AWS::StackName`, "sb"},
		{`!Sub "${AWS::Partition}/${AWS::URLSuffix}"`, "aws/amazonaws.com"},
		{`!Ref Bucket`, "sb-bucket"},
		{`!Ref Table`, "sb-Table"},
		{`!GetAtt Bucket.Arn`, "arn:aws:s3:::sb-bucket"},
		{`!GetAtt [Table, Arn]`, "arn:aws:dynamodb:eu-west-1:123456789012:table/sb-Table"},
		{`!GetAtt Stream.Arn`, "arn:aws:firehose:eu-west-1:123456789012:deliverystream/sb-Stream"},
		{`!GetAtt Fn.Arn`, "arn:aws:lambda:eu-west-1:123456789012:function:sb-Fn"},
		{`!GetAtt Role.Arn`, "arn:aws:iam::123456789012:role/sb-Role"},
		{`!GetAtt Logs.Arn`, "arn:aws:logs:eu-west-1:123456789012:log-group:sb-Logs:*"},
		{`!GetAtt Other.Arn`, "arn:aws:glue-database:eu-west-1:123456789012:sb-Other"},
		{`!GetAtt FnUrl.FunctionUrl`, "http://127.0.0.1:9000/"},
		{`{"Fn::Sub": "${Bucket.Arn}/*"}`, "arn:aws:s3:::sb-bucket/*"},
		{`!Sub "dt=${!dt}/${Size}-${ Name }x"`, "dt=${dt}/512-x"},
		{`!Sub ["${A}${Size}", {A: !Ref Bucket}]`, "sb-bucket512"},
		{`!Join ["-", [a, !Ref Size, 1]]`, "a-512-1"},
		{`!Join [",", !Ref Origins]`, ""},
		{`!If [Named, !Ref Nothing, taken]`, "taken"},
		{`!If [Big, [1, !If [Named, 2, !Ref AWS::NoValue]], x]`, []any{uint64(1)}},
		{`{a: !If [Named, 1, !Ref AWS::NoValue], b: 2}`, map[string]any{"b": uint64(2)}},
		{`!If [Both, y, n]`, "n"},
		{`!If [Either, y, n]`, "y"},
		{`!If [HasOrigins, y, n]`, "n"},
		{`!Equals [!Ref Size, "512"]`, true},
		{`!Equals [-1, "-1"]`, true},
	} {
		got, err := resolveText(t, tt.expression, nil)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("resolve(%s) = %v, %v, want %v", tt.expression, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		expression, want string
		given            map[string]string
	}{
		{`!Ref Needed`, "here", map[string]string{"Needed": "here"}},
		{`!If [Both, y, n]`, "y", map[string]string{"Name": "n"}},
		{`!If [Big, y, n]`, "n", map[string]string{"Size": "1024"}},
		{`!Join ["|", !Ref Origins]`, "a|b", map[string]string{"Origins": "a,b"}},
	} {
		if got, err := resolveText(t, tt.expression, tt.given); err != nil || got != tt.want {
			t.Errorf("resolve(%s) with %v = %v, %v, want %v", tt.expression, tt.given, got, err, tt.want)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	for _, tt := range []struct{ expression, want string }{
		{`!Ref Nothing`, "Nothing is no parameter"},
		{`!Ref Needed`, "--parameter Needed="},
		{`!GetAtt Nothing.Arn`, "no resource"},
		{`!GetAtt Bucket.DomainName`, "not known here"},
		{`!Sub "${Nothing}"`, "Nothing is no parameter"},
		{`!Sub "${Size"`, "without }"},
		{`!Sub [1]`, "wants a text"},
		{`!Join [1]`, "separator"},
		{`!Join ["", [[1]]]`, "not a text"},
		{`!If [None, 1, 2]`, `no condition "None"`},
		{`!If [Named, 1]`, "condition and two values"},
		{`!If [Circle, 1, 2]`, "a circle"},
		{`!Equals [1]`, "two values"},
		{`!Not [!Ref Size]`, "neither true nor false"},
		{`!Not []`, "wants conditions"},
		{`!FindInMap [a, b, c]`, "not known here"},
		{`{deep: [!Ref Nothing]}`, "line 25"},
	} {
		if got, err := resolveText(t, tt.expression, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("resolve(%s) = %v, %v, want an error with %q", tt.expression, got, err, tt.want)
		}
	}
}
