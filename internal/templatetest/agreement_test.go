package templatetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/config"
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
			"SWITCHBOARD_CONFIG": "switchboard.yaml", "URL_AUTH_TYPE": "NONE",
		}},
		{"RouteFunction", []string{"Config=ssm:/switchboard/config", "LogLevel=warn", "AuditEngine=athena", "AuthType=AWS_IAM", "AdminKey=ssm:/switchboard/admin"}, map[string]any{
			"SESSION_TABLE": "${SessionTable}", "STATE_TABLE": "${StateTable}", "EVENTS_STREAM": "${EventsStream}",
			"SWITCHBOARD_CONFIG": "ssm:/switchboard/config", "SWITCHBOARD_LOG_LEVEL": "warn", "URL_AUTH_TYPE": "AWS_IAM",
		}},
		{"AdminFunction", nil, map[string]any{
			"SESSION_TABLE": "${SessionTable}", "STATE_TABLE": "${StateTable}", "EVENTS_BUCKET": "${EventsBucket}", "EVENTS_BUFFER_SECONDS": "60",
			"SWITCHBOARD_CONFIG": "switchboard.yaml", "AUDIT_ENGINE": "s3",
		}},
		{"AdminFunction", []string{"AuditEngine=athena", "AdminKey=ssm:/switchboard/admin"}, map[string]any{
			"SWITCHBOARD_ADMIN_KEY": "ssm:/switchboard/admin",
			"SESSION_TABLE":         "${SessionTable}", "STATE_TABLE": "${StateTable}", "EVENTS_BUCKET": "${EventsBucket}", "EVENTS_BUFFER_SECONDS": "60",
			"SWITCHBOARD_CONFIG": "switchboard.yaml", "AUDIT_ENGINE": "athena",
			"ATHENA_DATABASE": "${EventsDatabase}", "ATHENA_WORKGROUP": "${EventsWorkgroup}",
		}},
	} {
		if diff := cmp.Diff(test.want, environment(t, test.function, test.given...)); diff != "" {
			t.Errorf("%s with %v: environment (-want +got):\n%s", test.function, test.given, diff)
		}
	}
}

// Code and template name the same variables: none is set that the function does not read,
// and none is left out that it reads, but for the admin key, which only admin needs.
func TestTemplateAndCodeNameTheSameVariables(t *testing.T) {
	for name, function := range map[string]config.Function{"RouteFunction": config.Route, "AdminFunction": config.Admin} {
		minimal, whole := environment(t, name), environment(t, name, everything()...)
		known := map[string]bool{}
		for _, v := range config.Variables(function) {
			known[v.Name] = true
			if v.Required && minimal[v.Name] == nil {
				t.Errorf("%s does not start without %s, which template.yaml does not set", name, v.Name)
			}
			if whole[v.Name] == nil && !(v.Name == "SWITCHBOARD_ADMIN_KEY" && function == config.Route) {
				t.Errorf("%s reads %s, which template.yaml cannot set", name, v.Name)
			}
		}
		for variable := range whole {
			if !known[variable] {
				t.Errorf("template.yaml sets %s, which %s does not read", variable, name)
			}
		}
	}
}

// The functions start with the variables of the template, on the example and on what the
// manual tells to write.
func TestFunctionsStartWithTheTemplatesVariables(t *testing.T) {
	dir := t.TempDir()
	sample := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(read(t, "docs/deploy.md"))
	if sample == nil {
		t.Fatal("docs/deploy.md has no configuration to copy")
	}
	digests := strings.NewReplacer("<digest of the client key>", strings.Repeat("1a", 32), "<digest of the admin key>", strings.Repeat("2b", 32))
	written := filepath.Join(dir, "switchboard.yaml")
	if err := os.WriteFile(written, []byte(digests.Replace(sample[1])), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, function := range map[string]config.Function{"RouteFunction": config.Route, "AdminFunction": config.Admin} {
		for _, path := range []string{written, root + "config.example.yaml"} {
			for _, given := range [][]string{nil, everything(), {"AuthType=AWS_IAM"}} {
				variables := environment(t, name, given...)
				cfg, err := config.Load(config.Source{
					Path: path, Function: function,
					Getenv: func(variable string) string {
						switch value := variables[variable]; {
						case value != nil: // a name in place of ${Resource}
							return strings.Trim(fmt.Sprint(value), "${}")
						case strings.HasSuffix(variable, "_API_KEY"):
							return "k-" + variable
						case variable == "AWS_LAMBDA_FUNCTION_NAME":
							return name
						}
						return ""
					},
					Secrets: func(ref string) (string, error) { return "secret of " + ref, nil },
				})
				if err != nil {
					t.Errorf("%s on %s with %v: %v", name, path, given, err)
					continue
				}
				want := config.AWS{SessionTable: "SessionTable", StateTable: "StateTable", EventsStream: "EventsStream", URLAuthType: fmt.Sprint(variables["URL_AUTH_TYPE"])}
				if function == config.Admin {
					want = config.AWS{SessionTable: "SessionTable", StateTable: "StateTable", EventsBucket: "EventsBucket", AuditEngine: fmt.Sprint(variables["AUDIT_ENGINE"]), EventsBuffer: time.Minute}
					if want.AuditEngine == config.AuditAthena {
						want.AthenaDatabase, want.AthenaWorkgroup = "EventsDatabase", "EventsWorkgroup"
					}
				}
				if diff := cmp.Diff(want, cfg.AWS); diff != "" {
					t.Errorf("%s on %s with %v (-want +got):\n%s", name, path, given, diff)
				}
			}
		}
	}
}

// No secret is in the template: what a variable or output holds can be read in the console.
func TestSSEC03NoSecretInTheTemplate(t *testing.T) {
	for function := range functions() {
		for name := range environment(t, function, everything()...) {
			// AdminKey's is the name of a secret, which its pattern enforces.
			if regexp.MustCompile(`KEY|SECRET|TOKEN|PASSWORD`).MatchString(name) && name != "SWITCHBOARD_ADMIN_KEY" {
				t.Errorf("%s has the variable %s", function, name)
			}
		}
		if got := environment(t, function)["SWITCHBOARD_ADMIN_KEY"]; got != nil {
			t.Errorf("%s has SWITCHBOARD_ADMIN_KEY %v without being asked", function, got)
		}
	}
	pattern := regexp.MustCompile("^(?:" + fmt.Sprint(at(deploy(t).parameters["AdminKey"], "AllowedPattern")) + ")$")
	for text, want := range map[string]bool{
		"": true, "ssm:/switchboard/admin": true, "secretsmanager:switchboard/keys#admin": true,
		"ssm:": false, "secretsmanager:": false, "ak-0123456789abcdef": false, "a ssm:/x": false, "env:KEY": false,
	} {
		if got := pattern.MatchString(text); got != want {
			t.Errorf("AdminKey may be %q: %v, want %v", text, got, want)
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
	described := map[string]bool{}
	// One line may describe several: | `A`, `B` | … |
	for _, cell := range regexp.MustCompile("(?m)^\\| (`[A-Z][A-Za-z]+`(?:, `[A-Z][A-Za-z]+`)*) \\|").FindAllStringSubmatch(manual, -1) {
		for name := range strings.SplitSeq(cell[1], ", ") {
			described[strings.Trim(name, "`")] = true
		}
	}
	for name := range described {
		_, parameter := s.parameters[name]
		_, output := s.outputs[name]
		if !parameter && !output {
			t.Errorf("docs/deploy.md describes %s, which template.yaml does not have", name)
		}
	}
	for name := range s.outputs {
		if !described[name] {
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
