//go:build deploy

package deploy

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/record"
)

// One stack lives through the test: it is made, used, updated, used again and deleted.
func TestDeploy(t *testing.T) {
	m := start(t)
	a, b := startUpstream(t), startUpstream(t)
	m.store(t, a, b)
	d := &deployed{ministack: m, build: filepath.Join(m.dir, "build")}

	// Each step needs the one before it; after a failed one the others say nothing.
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"validate", func(t *testing.T) { d.sam(t, "validate", "--lint") }},
		{"build", d.testBuild},
		{"deploy", func(t *testing.T) { d.deploy(t) }},
		{"resources are as the template says", d.testResources},
		{"what the emulator leaves out", d.testGaps},
		{"roles may do what they must and no more", d.testRights},
		{"requests", func(t *testing.T) { d.testRequests(t, a, b) }},
		{"a provider fails", func(t *testing.T) { d.testFailover(t, a, b) }},
		{"admin", d.testAdmin},
		{"questions, answered from S3", func(t *testing.T) { d.testQuestions(t, adminKey) }},
		{"update", d.testUpdate},
		{"questions, answered by Athena", func(t *testing.T) { d.putPattern(t); d.testQuestions(t, nextAdmin) }},
		{"signed callers only", d.testIAM},
		{"what was logged", d.testLogs},
		{"delete", d.testDelete},
	} {
		if !t.Run(step.name, step.run) {
			break
		}
	}
}

// The binaries are static, stripped and small.
func (d *deployed) testBuild(t *testing.T) {
	d.sam(t, "build", "--build-dir", d.build, "--parameter-overrides", "Architecture="+architecture())
	for _, function := range []string{"RouteFunction", "AdminFunction"} {
		path := filepath.Join(d.build, function, "bootstrap")
		binary, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer binary.Close()
		if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 {
			t.Errorf("%s needs %v, %v; want a static binary", path, libraries, err)
		}
		if binary.Section(".symtab") != nil || binary.Section(".debug_info") != nil {
			t.Errorf("%s is not stripped", path)
		}
		t.Logf("%s: %.1f MB", function, float64(fileSize(t, path))/1e6)
	}
}

func (d *deployed) testResources(t *testing.T) {
	function := d.get(t, "lambda", "/2015-03-31/functions/"+d.outputs["RouteFunctionName"])["Configuration"]
	link := d.get(t, "lambda", "/2021-10-31/functions/"+d.outputs["RouteFunctionName"]+"/url")
	table := d.call(t, "dynamodb", "DynamoDB_20120810.DescribeTable", map[string]any{"TableName": d.outputs["SessionTableName"]})["Table"]
	stream := d.call(t, "firehose", "Firehose_20150804.DescribeDeliveryStream", map[string]any{"DeliveryStreamName": d.outputs["EventsStreamName"]})
	to := at(stream, "DeliveryStreamDescription", "Destinations", "0", "ExtendedS3DestinationDescription")
	group := d.call(t, "logs", "Logs_20140328.DescribeLogGroups", map[string]any{"logGroupNamePrefix": d.outputs["RouteLogGroup"]})
	filters := d.call(t, "logs", "Logs_20140328.DescribeMetricFilters", map[string]any{"logGroupName": d.outputs["RouteLogGroup"]})
	for what, pair := range map[string][2]any{
		"runtime":       {at(function, "Runtime"), "provided.al2023"},
		"architecture":  {at(function, "Architectures", "0"), architecture()},
		"timeout":       {at(function, "Timeout"), 900.0},
		"memory":        {at(function, "MemorySize"), 256.0},
		"session table": {at(function, "Environment", "Variables", "SESSION_TABLE"), d.outputs["SessionTableName"]},
		"config":        {at(function, "Environment", "Variables", "SWITCHBOARD_CONFIG"), "ssm:" + configName},
		"log group":     {at(function, "LoggingConfig", "LogGroup"), d.outputs["RouteLogGroup"]},
		"invoke mode":   {link["InvokeMode"], "RESPONSE_STREAM"},
		"auth":          {link["AuthType"], "NONE"},
		"billing":       {at(table, "BillingModeSummary", "BillingMode"), "PAY_PER_REQUEST"},
		"hash key":      {at(table, "KeySchema", "0", "AttributeName"), "session_id"},
		"range key":     {at(table, "KeySchema", "1", "AttributeName"), "model_name"},
		"compression":   {at(to, "CompressionFormat"), "GZIP"},
		"interval":      {fmt.Sprint(at(to, "BufferingHints", "IntervalInSeconds")), "60"},
		"retention":     {fmt.Sprint(at(group, "logGroups", "0", "retentionInDays")), "30"},
		"filters":       {len(filters["metricFilters"].([]any)), 2},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
	noKeys(t, "the function's environment", fmt.Sprint(at(function, "Environment")))
	policy := fmt.Sprint(d.get(t, "lambda", "/2015-03-31/functions/"+d.outputs["RouteFunctionName"]+"/policy"))
	for _, action := range []string{"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"} {
		if !strings.Contains(policy, `"`+action+`"`) {
			t.Errorf("the public URL lacks %s: %s", action, policy)
		}
	}
	alarms := d.query(t, "monitoring", url.Values{"Action": {"DescribeAlarms"}, "Version": {"2010-08-01"}})
	if n := strings.Count(alarms, "<AlarmName>"); n != 10 {
		t.Errorf("%d alarms, want 10", n)
	}
	for _, sub := range []string{"publicAccessBlock", "encryption", "policy"} {
		text := d.send(t, "s3", "GET", "/"+d.outputs["EventsBucketName"]+"?"+sub, "", "", nil)
		want := map[string]string{"publicAccessBlock": "RestrictPublicBuckets>true<", "encryption": "AES256", "policy": "aws:SecureTransport"}[sub]
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the bucket's %s has no %s: %s", sub, want, text)
		}
	}
}

// What this MiniStack takes from a template and does not do: internal/templatetest alone
// holds it. The step fails when MiniStack has learned something; then it can be tested here.
func (d *deployed) testGaps(t *testing.T) {
	expiry := d.call(t, "dynamodb", "DynamoDB_20120810.DescribeTimeToLive", map[string]any{"TableName": d.outputs["SessionTableName"]})
	if got := at(expiry, "TimeToLiveDescription", "TimeToLiveStatus"); got != "DISABLED" {
		t.Errorf("TimeToLiveSpecification: now it is %v", got)
	}
	backups := d.call(t, "dynamodb", "DynamoDB_20120810.DescribeContinuousBackups", map[string]any{"TableName": d.outputs["StateTableName"]})
	if got := at(backups, "ContinuousBackupsDescription", "PointInTimeRecoveryDescription", "PointInTimeRecoveryStatus"); got != "DISABLED" {
		t.Errorf("PointInTimeRecoverySpecification: now it is %v", got)
	}
	if status, text := d.try(t, "s3", "GET", "/"+d.outputs["EventsBucketName"]+"?lifecycle", "", "", nil); status != 404 {
		t.Errorf("LifecycleConfiguration: now it is %d %s", status, text)
	}
}

// What the emulator's IAM answers for the roles. It enforces the same while functions run.
func (d *deployed) testRights(t *testing.T) {
	ids := d.resources(t)
	arn := func(service, resource string) string {
		return "arn:aws:" + service + ":" + region + ":" + account + ":" + resource
	}
	sessions, bucket := arn("dynamodb", "table/"+d.outputs["SessionTableName"]), "arn:aws:s3:::"+d.outputs["EventsBucketName"]
	stream := arn("firehose", "deliverystream/"+d.outputs["EventsStreamName"])
	for _, test := range []struct {
		role, action, resource string
		want                   bool
	}{
		{"RouteRole", "dynamodb:UpdateItem", sessions, true},
		{"RouteRole", "dynamodb:BatchGetItem", arn("dynamodb", "table/"+d.outputs["StateTableName"]), true},
		{"RouteRole", "dynamodb:Scan", sessions, false},
		{"RouteRole", "dynamodb:DeleteTable", sessions, false},
		{"RouteRole", "dynamodb:GetItem", arn("dynamodb", "table/another"), false},
		{"RouteRole", "firehose:PutRecord", stream, true},
		{"RouteRole", "firehose:PutRecord", stream + "-2", false},
		{"RouteRole", "s3:GetObject", bucket + "/events/x", false},
		{"RouteRole", "ssm:GetParameter", arn("ssm", "parameter"+openaiName), true},
		{"RouteRole", "ssm:GetParameter", arn("ssm", "parameter/other/openai"), false},
		{"RouteRole", "secretsmanager:GetSecretValue", arn("secretsmanager", "secret:"+secretName+"-AbCdEf"), true},
		{"RouteRole", "secretsmanager:GetSecretValue", arn("secretsmanager", "secret:other-AbCdEf"), false},
		{"AdminRole", "dynamodb:Query", sessions, true},
		{"AdminRole", "dynamodb:Scan", sessions, true},
		{"AdminRole", "dynamodb:PutItem", sessions, false},
		{"AdminRole", "s3:GetObject", bucket + "/events/dt=2026-01-01/hour=00/x.gz", true},
		{"AdminRole", "s3:GetObject", bucket + "/errors/x", false},
		{"AdminRole", "s3:DeleteObject", bucket + "/events/x", false},
		{"AdminRole", "firehose:PutRecord", stream, false},
		{"EventsStreamRole", "s3:PutObject", bucket + "/events/x", true},
		{"EventsStreamRole", "s3:PutObject", "arn:aws:s3:::another/events/x", false},
	} {
		text := d.query(t, "iam", url.Values{
			"Action": {"SimulatePrincipalPolicy"}, "Version": {"2010-05-08"}, "PolicySourceArn": {"arn:aws:iam::" + account + ":role/" + ids[test.role]},
			"ActionNames.member.1": {test.action}, "ResourceArns.member.1": {test.resource},
		})
		decision := regexp.MustCompile(`<EvalDecision>(\w+)</EvalDecision>`).FindStringSubmatch(text)
		if decision == nil {
			t.Fatalf("SimulatePrincipalPolicy: %s", text)
		}
		if got := decision[1] == "allowed"; got != test.want {
			t.Errorf("%s may %s on %s: %v (%s), want %v", test.role, test.action, test.resource, got, decision[1], test.want)
		}
	}
}

// pin is the row of a session.
func (d *deployed) pin(t *testing.T, session string) map[string]string {
	t.Helper()
	for _, row := range d.items(t, d.outputs["SessionTableName"]) {
		if row["client_session_id"] == session {
			return row
		}
	}
	return nil
}

// events are a session's, from the bucket, without repetitions, by time.
func (d *deployed) events(t *testing.T, session string) []record.Event {
	t.Helper()
	seen := map[string]bool{}
	var events []record.Event
	for key, content := range d.objects(t, d.outputs["EventsBucketName"], "events/") {
		if !regexp.MustCompile(`^events/dt=\d{4}-\d{2}-\d{2}/hour=\d{2}/`).MatchString(key) {
			t.Errorf("an object is at %s", key)
		}
		noKeys(t, key, string(content))
		if !bytes.HasSuffix(content, []byte("\n")) {
			t.Errorf("%s does not end in a newline", key)
		}
		for line := range bytes.Lines(content) {
			var event record.Event
			if err := json.Unmarshal(line, &event); err != nil {
				t.Fatalf("%s: %v: %s", key, err, line)
			}
			if event.SessionID == session && !seen[event.EventID] {
				seen[event.EventID] = true
				events = append(events, event)
			}
		}
	}
	return events
}

func (d *deployed) testRequests(t *testing.T, a, b *upstream) {
	for name, r := range map[string]request{
		"no key":        {},
		"wrong key":     {key: clientKey + "x"},
		"the admin key": {key: adminKey},
	} {
		if got := d.do(t, r); got.status != 401 {
			t.Errorf("%s: %d %s, want 401", name, got.status, got.body)
		}
	}
	if got := d.do(t, request{method: "GET", path: "/v1/models", key: clientKey}); got.status != 200 || !strings.Contains(got.body, `"spread"`) {
		t.Errorf("/v1/models: %d %s", got.status, got.body)
	}

	// Two sessions take turns; each stays where it began.
	first := map[string]string{}
	for range 3 {
		for _, session := range []string{"s1", "s2"} {
			for _, stream := range []bool{true, false} {
				got := d.ok(t, request{session: session, stream: stream}).provider()
				if first[session] == "" {
					first[session] = got
				}
				if got != first[session] {
					t.Errorf("session %s went from %s to %s", session, first[session], got)
				}
			}
		}
	}
	for _, session := range []string{"s1", "s2"} {
		var row map[string]string
		eventually(t, "usage of "+session, func() bool {
			row = d.pin(t, session)
			return row["total_requests"] == "6"
		})
		got := map[string]string{"provider": row["provider_identity"], "model": row["model_name"], "switches": row["switch_count"], "path": row["user_path"]}
		if diff := cmp.Diff(map[string]string{"provider": first[session], "model": "spread", "switches": "0", "path": userPath}, got); diff != "" {
			t.Errorf("row of %s (-want +got):\n%s", session, diff)
		}
		noKeys(t, "the row of "+session, fmt.Sprint(row))
		eventually(t, "events of "+session, func() bool { return len(d.events(t, session)) == 6 })
		for _, event := range d.events(t, session) {
			if event.Outcome != record.OutcomeOK || event.Provider != first[session] || event.UserPath != userPath || event.InputTokens == nil || event.CostNanoUSD == nil {
				t.Errorf("event of %s: %+v", session, event)
			}
		}
	}
	// The providers were called with their keys from the two stores, and with nothing else.
	if diff := cmp.Diff([]map[string]bool{{firstKey: true}, {secondKey: true}}, []map[string]bool{a.keys(t), b.keys(t)}); diff != "" {
		t.Errorf("keys that the providers saw (-want +got):\n%s", diff)
	}
}

// Requests of one session see its provider fail at once, in several environments: one
// switch, and all are served.
func (d *deployed) testFailover(t *testing.T, a, b *upstream) {
	served := d.ok(t, request{session: "moved"}).provider()
	failing := map[string]*upstream{"a": a, "b": b}[served]
	failing.control(t, `{"status": 503}`)
	defer failing.control(t, `{}`)
	const parallel = 6
	var group sync.WaitGroup
	for i := range parallel {
		group.Go(func() {
			if got := d.do(t, request{session: "moved", key: clientKey, stream: i%2 == 0}); got.status != 200 || got.provider() == served {
				t.Errorf("request %d: %d by %s: %s", i, got.status, got.provider(), got.body)
			}
		})
	}
	group.Wait()
	eventually(t, "events of the moved session", func() bool { return len(d.events(t, "moved")) == 1+parallel })
	switched := 0
	for _, event := range d.events(t, "moved") {
		if event.Switched {
			switched++
		}
	}
	if row := d.pin(t, "moved"); switched != 1 || row["switch_count"] != "1" || row["provider_identity"] == served {
		t.Errorf("%d events say switched, the row is %v; want one switch away from %s", switched, row, served)
	}
}

func (d *deployed) testAdmin(t *testing.T) {
	for name, test := range map[string]struct {
		key  string
		want int
	}{"no key": {"", 401}, "a client's key": {clientKey, 401}, "the admin key": {adminKey, 200}} {
		got := d.do(t, request{output: "AdminUrl", method: "GET", path: "/admin/providers", key: test.key})
		if got.status != test.want {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, test.want)
		}
		noKeys(t, "/admin/providers", got.body)
	}
}

// A changed parameter changes what it names and nothing else: URLs, sessions and events stay.
func (d *deployed) testUpdate(t *testing.T) {
	before := d.outputs
	served := d.ok(t, request{session: "s1"}).provider() // where it is by now: its first provider may have failed
	switches := d.pin(t, "s1")["switch_count"]
	d.deploy(t, "MemorySize=768", "LogLevel=debug", "AuditEngine=athena", "ReservedConcurrency=20", "CorsAllowOrigins=https://app.example", "AdminKey=ssm:"+adminName)
	if diff := cmp.Diff(before, d.outputs); diff != "" {
		t.Errorf("the update changed outputs (-before +after):\n%s", diff)
	}
	function := d.get(t, "lambda", "/2015-03-31/functions/"+d.outputs["RouteFunctionName"])
	if got := at(function, "Configuration", "MemorySize"); got != 768.0 {
		t.Errorf("memory is %v, want 768", got)
	}
	if got := at(function, "Configuration", "Environment", "Variables", "SWITCHBOARD_LOG_LEVEL"); got != "debug" {
		t.Errorf("the log level is %v, want debug", got)
	}
	if got := d.ok(t, request{session: "s1"}).provider(); got != served {
		t.Errorf("after the update s1 is on %s, want %s", got, served)
	}
	if row := d.pin(t, "s1"); row["switch_count"] != switches {
		t.Errorf("after the update the row of s1 is %v, want %s switches", row, switches)
	}
	table := d.call(t, "glue", "AWSGlue.GetTable", map[string]any{"DatabaseName": "switchboard", "Name": "routing_events"})
	if got := at(table, "Table", "Parameters", "projection.enabled"); got != "true" {
		t.Errorf("the Glue table has projection.enabled %v", got)
	}
	for key, want := range map[string]int{adminKey: 401, nextAdmin: 200} {
		if got := d.do(t, request{output: "AdminUrl", method: "GET", path: "/admin/providers", key: key}); got.status != want {
			t.Errorf("admin with Athena and another key: %d %s, want %d", got.status, got.body, want)
		}
	}
	if got := d.ok(t, request{session: "s1", origin: "https://app.example"}).header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != "https://app.example" {
		t.Errorf("Access-Control-Allow-Origin is %q, want the origin once", got)
	}
	if got := d.ok(t, request{session: "s1", origin: "https://other.example"}).header.Values("Access-Control-Allow-Origin"); len(got) != 0 {
		t.Errorf("another origin: Access-Control-Allow-Origin is %q, want none", got)
	}
}

// With AWS_IAM the signature takes Authorization, and the client's key is in x-api-key.
func (d *deployed) testIAM(t *testing.T) {
	d.deploy(t, "AuthType=AWS_IAM")
	if got := d.do(t, request{key: clientKey, session: "s1"}); got.status != 403 {
		t.Errorf("unsigned: %d %s, want 403", got.status, got.body)
	}
	d.ok(t, request{apiKey: clientKey, session: "s1", signed: true})
	if got := d.do(t, request{session: "s1", signed: true}); got.status != 401 {
		t.Errorf("signed, without a client key: %d %s, want 401", got.status, got.body)
	}
	d.deploy(t, "AuthType=NONE") // a parameter that is not named keeps its value
	d.ok(t, request{session: "s1"})
}

// logged are the lines of a log group.
func (d *deployed) logged(t *testing.T, group string) (lines []string) {
	t.Helper()
	streams := d.call(t, "logs", "Logs_20140328.DescribeLogStreams", map[string]any{"logGroupName": group})
	for _, stream := range streams["logStreams"].([]any) {
		page := d.call(t, "logs", "Logs_20140328.GetLogEvents", map[string]any{
			"logGroupName": group, "logStreamName": at(stream, "logStreamName"), "startFromHead": true, "limit": 10000,
		})
		for _, line := range page["events"].([]any) {
			lines = append(lines, fmt.Sprint(at(line, "message")))
		}
	}
	return lines
}

// The log has one line per request and no key.
func (d *deployed) testLogs(t *testing.T) {
	requests := 0
	for _, text := range d.logged(t, d.outputs["RouteLogGroup"]) {
		noKeys(t, "the log", text)
		var entry struct{ Msg, Level string }
		if json.Unmarshal([]byte(text), &entry) != nil {
			continue // Lambda's own lines
		}
		if entry.Msg == "request" {
			requests++
		}
		if entry.Level == "ERROR" {
			t.Errorf("the log says %s", text)
		}
	}
	if requests < 20 {
		t.Errorf("the log has %d requests, want at least 20", requests)
	}
}

// Deleting the stack takes the functions and leaves the data.
func (d *deployed) testDelete(t *testing.T) {
	d.sam(t, "delete", "--stack-name", stackName, "--no-prompts", "--region", region)
	if row := d.pin(t, "s1"); row["client_session_id"] != "s1" {
		t.Errorf("the session table went with the stack")
	}
	if events := d.events(t, "s2"); len(events) != 6 {
		t.Errorf("the bucket has %d events of s2, want 6", len(events))
	}
	if got := d.do(t, request{session: "s1", key: clientKey}); got.status == 200 {
		t.Errorf("the function answers after its stack was deleted: %s", got.body)
	}
}
