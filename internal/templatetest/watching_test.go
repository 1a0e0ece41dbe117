package templatetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Logs that are kept forever cost forever.
func TestLogsExpire(t *testing.T) {
	s := deploy(t, "LogRetentionDays=14")
	groups := s.all("AWS::Logs::LogGroup")
	if diff := cmp.Diff([]string{"AdminLogs", "EventsStreamLogs", "RouteLogs"}, groups); diff != "" {
		t.Errorf("log groups (-want +got):\n%s", diff)
	}
	for _, name := range groups {
		p := s.resources[name].properties
		if p["RetentionInDays"] != "14" {
			t.Errorf("%s keeps its lines for %v days, want LogRetentionDays", name, p["RetentionInDays"])
		}
		if got := fmt.Sprint(p["LogGroupName"]); !strings.HasPrefix(got, "/switchboard/stack/") {
			t.Errorf("%s is %s: two stacks would share it", name, got)
		}
	}
	if got := deploy(t).of(t, "AWS::Logs::LogGroup", "RouteLogs")["RetentionInDays"]; number(t, got) < 1 {
		t.Errorf("RouteLogs keeps its lines for %v days", got)
	}
}

// What the alarms look at. The names are AWS's: a wrong one is an alarm that never rings.
func TestAlarms(t *testing.T) {
	s := deploy(t)
	want := map[string]string{
		"RouteErrorsAlarm":                "AWS/Lambda Errors FunctionName=${RouteFunction} > 0",
		"RouteThrottlesAlarm":             "AWS/Lambda Throttles FunctionName=${RouteFunction} > 0",
		"AdminErrorsAlarm":                "AWS/Lambda Errors FunctionName=${AdminFunction} > 0",
		"UndeliveredAlarm":                "switchboard/stack UndeliveredEvents > 0",
		"PanicAlarm":                      "switchboard/stack Panics > 0",
		"SessionTableReadThrottlesAlarm":  "AWS/DynamoDB ReadThrottleEvents TableName=${SessionTable} > 0",
		"SessionTableWriteThrottlesAlarm": "AWS/DynamoDB WriteThrottleEvents TableName=${SessionTable} > 0",
		"StateTableReadThrottlesAlarm":    "AWS/DynamoDB ReadThrottleEvents TableName=${StateTable} > 0",
		"StateTableWriteThrottlesAlarm":   "AWS/DynamoDB WriteThrottleEvents TableName=${StateTable} > 0",
		"EventsLateAlarm":                 "AWS/Firehose DeliveryToS3.DataFreshness DeliveryStreamName=${EventsStream} > 1800",
	}
	got := map[string]string{}
	for _, name := range s.all("AWS::CloudWatch::Alarm") {
		p := s.resources[name].properties
		text := fmt.Sprintf("%v %v", p["Namespace"], p["MetricName"])
		if dimensions, _ := p["Dimensions"].([]any); dimensions != nil {
			text += fmt.Sprintf(" %v=%v", at(dimensions, "0", "Name"), at(dimensions, "0", "Value"))
		}
		sign := map[any]string{"GreaterThanThreshold": ">", "LessThanThreshold": "<"}[p["ComparisonOperator"]]
		got[name] = fmt.Sprintf("%s %s %v", text, sign, p["Threshold"])
		if p["TreatMissingData"] != "notBreaching" {
			t.Errorf("%s rings when nothing happens", name)
		}
		if fmt.Sprint(p["AlarmDescription"]) == "<nil>" {
			t.Errorf("%s does not say what it means", name)
		}
		if actions := p["AlarmActions"].([]any); len(actions) > 0 {
			t.Errorf("%s tells %v without being asked", name, actions)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
	const topic = "arn:aws:sns:region:account:ops"
	s = deploy(t, "AlarmTopicArn="+topic)
	for _, name := range s.all("AWS::CloudWatch::Alarm") {
		if diff := cmp.Diff([]any{topic}, s.resources[name].properties["AlarmActions"]); diff != "" {
			t.Errorf("%s with a topic: actions (-want +got):\n%s", name, diff)
		}
	}
}

// A filter on a message that the code no longer says is an alarm that never rings.
func TestFiltersLookForWhatTheCodeSays(t *testing.T) {
	s := deploy(t)
	said := read(t, "internal/gateway/gateway.go") + read(t, "internal/carrier/lambda.go")
	want := map[string][]string{
		"UndeliveredFilter": {"undelivered routing event"},
		"PanicFilter":       {"panic", "handler panicked"},
	}
	got := map[string][]string{}
	for _, name := range s.all("AWS::Logs::MetricFilter") {
		p := s.resources[name].properties
		for _, found := range regexp.MustCompile(`\$\.msg = "([^"]+)"`).FindAllStringSubmatch(fmt.Sprint(p["FilterPattern"]), -1) {
			got[name] = append(got[name], found[1])
			if !strings.Contains(said, `ErrorContext(ctx, "`+found[1]+`"`) && !strings.Contains(said, `ErrorContext(r.Context(), "`+found[1]+`"`) {
				t.Errorf("%s looks for %q, which nobody says", name, found[1])
			}
		}
		if p["LogGroupName"] != "${RouteLogs}" {
			t.Errorf("%s looks at %v", name, p["LogGroupName"])
		}
		metric := at(p, "MetricTransformations", "0")
		alarm := s.of(t, "AWS::CloudWatch::Alarm", strings.TrimSuffix(name, "Filter")+"Alarm")
		if at(metric, "MetricNamespace") != alarm["Namespace"] || at(metric, "MetricName") != alarm["MetricName"] {
			t.Errorf("%s counts %v, its alarm looks at %v %v", name, metric, alarm["Namespace"], alarm["MetricName"])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("filters (-want +got):\n%s", diff)
	}
	if outputs := s.outputs; at(outputs, "RouteUrl", "Value") != "${RouteFunctionUrl.FunctionUrl}" || at(outputs, "AdminUrl", "Value") != "${AdminFunctionUrl.FunctionUrl}" {
		t.Errorf("outputs %v: the two URLs are missing", outputs)
	}
	if !slices.Contains(s.all("AWS::Logs::LogStream"), "EventsStreamLogStream") {
		t.Error("Firehose makes no log stream of its own; EventsStreamLogStream is missing")
	}
}
