package templatetest

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/record"
)

// environment is what a function's variables are, with all that is optional.
func environment(t *testing.T, function string, given ...string) map[string]any {
	t.Helper()
	return object(t, at(deploy(t, given...).of(t, "AWS::Serverless::Function", function), "Environment", "Variables"), function)
}

// DESIGN 10 names the variables; internal/config and the mains read them under these names.
func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		function string
		given    []string
		want     map[string]any
	}{
		{"RouteFunction", nil, map[string]any{
			"SESSION_TABLE": "${SessionTable}", "STATE_TABLE": "${StateTable}", "EVENTS_STREAM": "${EventsStream}",
			"SWITCHBOARD_CONFIG": "switchboard.yaml",
		}},
		{"RouteFunction", []string{"Config=ssm:/switchboard/config", "LogLevel=warn", "AuditEngine=athena"}, map[string]any{
			"SESSION_TABLE": "${SessionTable}", "STATE_TABLE": "${StateTable}", "EVENTS_STREAM": "${EventsStream}",
			"SWITCHBOARD_CONFIG": "ssm:/switchboard/config", "SWITCHBOARD_LOG_LEVEL": "warn",
		}},
		{"AdminFunction", nil, map[string]any{
			"SESSION_TABLE": "${SessionTable}", "STATE_TABLE": "${StateTable}", "EVENTS_BUCKET": "${EventsBucket}",
			"SWITCHBOARD_CONFIG": "switchboard.yaml", "AUDIT_ENGINE": "s3",
		}},
		{"AdminFunction", []string{"AuditEngine=athena"}, map[string]any{
			"SESSION_TABLE": "${SessionTable}", "STATE_TABLE": "${StateTable}", "EVENTS_BUCKET": "${EventsBucket}",
			"SWITCHBOARD_CONFIG": "switchboard.yaml", "AUDIT_ENGINE": "athena",
			"ATHENA_DATABASE": "${EventsDatabase}", "ATHENA_WORKGROUP": "${EventsWorkgroup}",
		}},
	} {
		if diff := cmp.Diff(test.want, environment(t, test.function, test.given...)); diff != "" {
			t.Errorf("%s with %v: environment (-want +got):\n%s", test.function, test.given, diff)
		}
	}
}

// elsewhere are variables that the code reads and the template does not set, and why.
func elsewhere() map[string]string {
	return map[string]string{
		"SWITCHBOARD_ADMIN_KEY":   "a variable can be read in the console; on AWS its digest stands in the configuration",
		"SWITCHBOARD_LISTEN":      "one machine only",
		"SWITCHBOARD_SESSION_DB":  "one machine only",
		"SESSION_KEEPING_ENABLED": "the configuration says it",
		"SESSION_AUTO_DETECT":     "the configuration says it",
		"SESSION_BUILTIN_RULES":   "the configuration says it",
		"SESSION_HEADER_":         "the configuration says it",
	}
}

// Code and template name the same variables: none is set that nobody reads, and none is
// read that nobody sets, but for those that are set elsewhere.
func TestTemplateAndCodeNameTheSameVariables(t *testing.T) {
	set := map[string]bool{}
	for function := range functions() {
		for name := range environment(t, function, everything()...) {
			set[name] = true
		}
	}
	readBy := map[string]string{}
	literal := regexp.MustCompile(`"((?:SWITCHBOARD|SESSION|STATE|EVENTS|AUDIT|ATHENA)_[A-Z_]+)"`)
	for _, dir := range []string{"internal/config", "functions/route", "functions/admin"} {
		entries, err := os.ReadDir(root + dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
				continue
			}
			for _, found := range literal.FindAllStringSubmatch(read(t, dir+"/"+entry.Name()), -1) {
				readBy[found[1]] = dir
			}
		}
	}
	for name := range set {
		if readBy[name] == "" {
			t.Errorf("template.yaml sets %s, which internal/config and the functions do not read", name)
		}
	}
	for name, dir := range readBy {
		if !set[name] && elsewhere()[name] == "" {
			t.Errorf("%s reads %s, which template.yaml does not set", dir, name)
		}
	}
	for name := range elsewhere() {
		if readBy[name] == "" || set[name] {
			t.Errorf("%s is said to be read and set elsewhere; that is no longer true", name)
		}
	}
}

// No secret is in the template: what a variable or output holds can be read in the console.
func TestSSEC03NoSecretInTheTemplate(t *testing.T) {
	for function := range functions() {
		for name := range environment(t, function, everything()...) {
			if regexp.MustCompile(`KEY|SECRET|TOKEN|PASSWORD`).MatchString(name) {
				t.Errorf("%s has the variable %s", function, name)
			}
		}
	}
	text := read(t, "template.yaml")
	for _, found := range regexp.MustCompile(`\{\{resolve:[^}]*\}\}|NoEcho|sk-[A-Za-z0-9]{8,}|[0-9a-f]{64}`).FindAllString(text, -1) {
		t.Errorf("template.yaml has %s: a secret would be in the function's variables", found)
	}
}

// docs/deploy.md describes every parameter with its default, and every output.
func TestManualDescribesParametersAndOutputs(t *testing.T) {
	manual := read(t, "docs/deploy.md")
	s := deploy(t)
	for name, declared := range s.parameters {
		value := fmt.Sprint(at(declared, "Default"))
		row := "| `" + name + "` | `" + value + "` |"
		if value == "" {
			row = "| `" + name + "` | empty |"
		}
		if !strings.Contains(manual, row) {
			t.Errorf("docs/deploy.md has no line %s", row)
		}
	}
	for _, found := range regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\|").FindAllStringSubmatch(manual, -1) {
		_, parameter := s.parameters[found[1]]
		_, output := s.outputs[found[1]]
		if !parameter && !output {
			t.Errorf("docs/deploy.md describes %s, which template.yaml does not have", found[1])
		}
	}
	for name := range s.outputs {
		if !strings.Contains(manual, "| `"+name+"` |") {
			t.Errorf("docs/deploy.md does not describe the output %s", name)
		}
	}
	groups := at(interfaceOf(t), "ParameterGroups").([]any)
	var shown []string
	for _, group := range groups {
		shown = append(shown, texts(at(group, "Parameters"))...)
	}
	slices.Sort(shown)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.parameters)), shown); diff != "" {
		t.Errorf("the console's groups do not show each parameter once (-declared +shown):\n%s", diff)
	}
}

// The example configuration names secrets that the roles may read, where it names any, and
// the manual's do too.
func TestSecretsOfTheDocsAreReadable(t *testing.T) {
	s := deploy(t)
	for _, file := range []string{"config.example.yaml", "docs/deploy.md", "README.md"} {
		text := read(t, file)
		for _, found := range regexp.MustCompile(`\bssm:(/[A-Za-z0-9/_.-]+)`).FindAllStringSubmatch(text, -1) {
			// ssm:/path is the manual's word for any.
			if found[1] != "/path" && !strings.HasPrefix(found[1], s.values["ParameterPrefix"]) {
				t.Errorf("%s: %s is not below ParameterPrefix %s", file, found[0], s.values["ParameterPrefix"])
			}
		}
		for _, found := range regexp.MustCompile(`\bsecretsmanager:([A-Za-z0-9/_.-]+)#`).FindAllStringSubmatch(text, -1) {
			if found[1] != "name" && !strings.HasPrefix(found[1], s.values["SecretPrefix"]) {
				t.Errorf("%s: %s does not begin with SecretPrefix %s", file, found[0], s.values["SecretPrefix"])
			}
		}
	}
}

// The Glue table has the fields of the routing event, in their order.
func TestAthenaColumnsAreTheEventsFields(t *testing.T) {
	table := deploy(t, "AuditEngine=athena").of(t, "AWS::Glue::Table", "EventsTable")
	var want []any
	for field := range reflect.TypeFor[record.Event]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want = append(want, map[string]any{"Name": name, "Type": hive(t, field.Type)})
	}
	if diff := cmp.Diff(want, at(table, "TableInput", "StorageDescriptor", "Columns")); diff != "" {
		t.Errorf("columns (-record.Event +template):\n%s", diff)
	}
	for key, value := range map[string]string{
		"projection.enabled": "true", "projection.dt.type": "date", "projection.dt.format": "yyyy-MM-dd",
		"projection.hour.type": "integer", "projection.hour.digits": "2", "projection.hour.range": "0,23",
		"storage.location.template": "s3://${EventsBucket}/events/dt=${!dt}/hour=${!hour}/",
	} {
		if got := at(table, "TableInput", "Parameters", key); got != value {
			t.Errorf("EventsTable: %s = %v, want %s", key, got, value)
		}
	}
	for _, kind := range []string{"AWS::Glue::Database", "AWS::Glue::Table", "AWS::Athena::WorkGroup"} {
		if got := deploy(t).all(kind); len(got) > 0 {
			t.Errorf("without Athena there are %v", got)
		}
	}
}

// hive is a Go type's name in Glue.
func hive(t *testing.T, kind reflect.Type) string {
	t.Helper()
	switch kind.Kind() {
	case reflect.Pointer:
		return hive(t, kind.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "bigint"
	case reflect.Slice:
		return "array<" + hive(t, kind.Elem()) + ">"
	case reflect.Struct:
		var fields []string
		for field := range kind.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields = append(fields, name+":"+hive(t, field.Type))
		}
		return "struct<" + strings.Join(fields, ",") + ">"
	}
	t.Fatalf("record.Event has a %v, which the test cannot name in Glue", kind)
	return ""
}
