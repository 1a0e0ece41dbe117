package templatetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everything is the template with all that is optional.
func everything() []string {
	return []string{
		"AuditEngine=athena", "SecretsKeyArn=arn:aws:kms:region:account:key/k", "AlarmTopicArn=arn:aws:sns:region:account:t",
		"LogLevel=debug", "AdminKey=ssm:/switchboard/admin", "CorsAllowOrigins=https://app.example", "ReservedConcurrency=5", "AdminReservedConcurrency=1",
	}
}

// rights are what a role may do: action -> resources.
func (s stack) rights(t *testing.T, role string) map[string][]string {
	t.Helper()
	p := s.of(t, "AWS::IAM::Role", role)
	var documents []any
	for _, policy := range p["Policies"].([]any) {
		documents = append(documents, at(policy, "PolicyDocument"))
	}
	if managed, _ := p["ManagedPolicyArns"].([]any); managed != nil {
		for _, arn := range managed {
			name := strings.Trim(arn.(string), "${}")
			documents = append(documents, s.of(t, "AWS::IAM::ManagedPolicy", name)["PolicyDocument"])
		}
	}
	rights := map[string][]string{}
	for _, document := range documents {
		for _, statement := range at(document, "Statement").([]any) {
			if at(statement, "Effect") != "Allow" {
				t.Errorf("%s: %v does not allow", role, statement)
			}
			for _, key := range []string{"NotAction", "NotResource"} {
				if at(statement, key) != nil {
					t.Errorf("%s: %v allows by exclusion", role, statement)
				}
			}
			for _, action := range texts(at(statement, "Action")) {
				rights[action] = append(rights[action], texts(at(statement, "Resource"))...)
			}
		}
	}
	return rights
}

// The roles may do this and nothing else.
func TestLeastPrivilege(t *testing.T) {
	tables := []string{"${SessionTable.Arn}", "${StateTable.Arn}"}
	secrets := map[string][]string{
		"ssm:GetParameter":              {"arn:aws:ssm:region:account:parameter/switchboard/*"},
		"secretsmanager:GetSecretValue": {"arn:aws:secretsmanager:region:account:secret:switchboard/*"},
	}
	route := map[string][]string{
		"logs:CreateLogStream":    {"${RouteLogs.Arn}"},
		"logs:PutLogEvents":       {"${RouteLogs.Arn}"},
		"dynamodb:GetItem":        tables,
		"dynamodb:BatchGetItem":   tables,
		"dynamodb:PutItem":        tables,
		"dynamodb:UpdateItem":     tables,
		"dynamodb:DeleteItem":     tables,
		"firehose:PutRecord":      {"${EventsStream.Arn}"},
		"firehose:PutRecordBatch": {"${EventsStream.Arn}"},
	}
	admin := map[string][]string{
		"logs:CreateLogStream": {"${AdminLogs.Arn}"},
		"logs:PutLogEvents":    {"${AdminLogs.Arn}"},
		"dynamodb:GetItem":     tables,
		"dynamodb:Query":       {"${SessionTable.Arn}"},
		"dynamodb:Scan":        {"${SessionTable.Arn}"},
		"dynamodb:PutItem":     {"${StateTable.Arn}"},
		"dynamodb:UpdateItem":  tables,
		"dynamodb:DeleteItem":  {"${SessionTable.Arn}"},
		"s3:ListBucket":        {"${EventsBucket.Arn}"},
		"s3:GetObject":         {"${EventsBucket.Arn}/events/*"},
	}
	deliver := map[string][]string{
		"s3:GetBucketLocation":          {"${EventsBucket.Arn}"},
		"s3:ListBucket":                 {"${EventsBucket.Arn}"},
		"s3:ListBucketMultipartUploads": {"${EventsBucket.Arn}"},
		"s3:PutObject":                  {"${EventsBucket.Arn}/events/*", "${EventsBucket.Arn}/errors/*"},
		"s3:GetObject":                  {"${EventsBucket.Arn}/events/*", "${EventsBucket.Arn}/errors/*"},
		"s3:AbortMultipartUpload":       {"${EventsBucket.Arn}/events/*", "${EventsBucket.Arn}/errors/*"},
		"logs:PutLogEvents":             {"arn:aws:logs:region:account:log-group:${EventsStreamLogs}:log-stream:${EventsStreamLogStream}"},
	}
	key := map[string][]string{"kms:Decrypt": {"arn:aws:kms:region:account:key/k"}}
	group := "arn:aws:athena:region:account:workgroup/${EventsWorkgroup}"
	athena := map[string][]string{
		"athena:StartQueryExecution":  {group},
		"athena:GetQueryExecution":    {group},
		"athena:GetQueryResults":      {group},
		"athena:StopQueryExecution":   {group},
		"glue:GetDatabase":            glue(),
		"glue:GetTable":               glue(),
		"glue:GetPartitions":          glue(),
		"s3:GetBucketLocation":        {"${EventsBucket.Arn}"},
		"s3:PutObject":                {"${EventsBucket.Arn}/athena/*"},
		"s3:GetObject":                {"${EventsBucket.Arn}/athena/*"},
		"s3:AbortMultipartUpload":     {"${EventsBucket.Arn}/athena/*"},
		"s3:ListMultipartUploadParts": {"${EventsBucket.Arn}/athena/*"},
		"s3:ListBucket":               {"${EventsBucket.Arn}"},
	}
	for _, test := range []struct {
		given []string
		want  map[string]map[string][]string
	}{
		{nil, map[string]map[string][]string{
			"RouteRole": merge(route, secrets), "AdminRole": merge(admin, secrets), "EventsStreamRole": deliver,
		}},
		{everything(), map[string]map[string][]string{
			"RouteRole": merge(route, secrets, key), "AdminRole": merge(admin, athena, secrets, key), "EventsStreamRole": deliver,
		}},
	} {
		s := deploy(t, test.given...)
		got := map[string]map[string][]string{}
		for _, role := range s.all("AWS::IAM::Role") {
			got[role] = s.rights(t, role)
			for action, resources := range got[role] {
				if strings.ContainsAny(action, "*?") || slices.Contains(resources, "*") {
					t.Errorf("%s may %s on %v: a wildcard", role, action, resources)
				}
				slices.Sort(resources)
			}
		}
		for _, rights := range test.want {
			for _, resources := range rights {
				slices.Sort(resources)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("deploy(%v): rights (-want +got):\n%s", test.given, diff)
		}
		if others := slices.Concat(s.all("AWS::IAM::Policy"), s.all("AWS::IAM::RolePolicy"), s.all("AWS::IAM::User")); len(others) > 0 {
			t.Errorf("deploy(%v): %v give rights that this test does not see", test.given, others)
		}
	}
}

func glue() []string {
	const arn = "arn:aws:glue:region:account:"
	return []string{arn + "catalog", arn + "database/${EventsDatabase}", arn + "table/${EventsDatabase}/*"}
}

func merge(all ...map[string][]string) map[string][]string {
	m := map[string][]string{}
	for _, one := range all {
		for key, values := range one {
			m[key] = append(m[key], values...)
		}
	}
	return m
}

// Each role is for one service, and only for this account's.
func TestWhoMayAssumeTheRoles(t *testing.T) {
	s := deploy(t)
	for role, want := range map[string]map[string]any{
		"RouteRole": {"Effect": "Allow", "Principal": map[string]any{"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
		"AdminRole": {"Effect": "Allow", "Principal": map[string]any{"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
		"EventsStreamRole": {
			"Effect": "Allow", "Principal": map[string]any{"Service": "firehose.amazonaws.com"}, "Action": "sts:AssumeRole",
			"Condition": map[string]any{"StringEquals": map[string]any{"sts:ExternalId": "account"}},
		},
	} {
		if diff := cmp.Diff([]any{want}, at(s.of(t, "AWS::IAM::Role", role), "AssumeRolePolicyDocument", "Statement")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

// The route function's rights are the calls that its packages make, no fewer and no more. To
// list is an operator's: the admin function may, and nothing else in the template lists.
func TestRightsAreTheCallsOfTheCode(t *testing.T) {
	s := deploy(t)
	got := map[string]bool{}
	for action := range s.rights(t, "RouteRole") {
		if service, _, _ := strings.Cut(action, ":"); service == "dynamodb" || service == "firehose" {
			got[action] = true
		}
	}
	want := map[string]bool{}
	for _, service := range []string{"dynamodb", "firehose"} {
		for _, call := range calls(t, map[string]string{"dynamodb": "dynamo", "firehose": "firehose"}[service]) {
			if call == "Query" || call == "Scan" {
				if s.rights(t, "AdminRole")[service+":"+call] == nil {
					t.Errorf("the admin function may not %s", call)
				}
				continue
			}
			want[service+":"+call] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights of the route function (-called by the code +allowed by the template):\n%s", diff)
	}
}

// calls are the operations that an adapter calls on its client.
func calls(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob(root + "internal/" + name + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("internal/%s: %v, %v", name, files, err)
	}
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			// An operation is client.GetItem(ctx, &dynamodb.GetItemInput{…}): its input names it.
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			selector, ok := literal.Type.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if operation, input := strings.CutSuffix(selector.Sel.Name, "Input"); input && operation != "" {
				found = append(found, operation)
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}
