package archtest

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "switchboard/"

// ring says how far out a package lies: it may import only what its row names.
type ring string

const (
	domain  ring = "domain"  // knows no technology
	plane   ring = "plane"   // what operators see: pages over the domain, with its rules but for html/template
	adapter ring = "adapter" // one technology, against the contracts
	ground  ring = "ground"  // one technology, shared by the adapters that stand on it
	edge    ring = "edge"    // configuration: yields what the domain takes
	support ring = "support" // only tests import it
)

// row is what one internal package may import of this module, directly, and why.
type row struct {
	ring    ring
	imports string
	outside string // modules outside the standard library
	why     string
}

// table is STYLE's, with its deviations. It is the whole list: a package that is not here
// has no place yet.
func table() map[string]row {
	return map[string]row{
		"wire":      {domain, "", "", "bytes come first; whoever reads them must not know who decides"},
		"sse":       {domain, "", "", "splitting a stream is the same for every vendor"},
		"auth":      {domain, "", "", "who may call is decided before anything else is known"},
		"shared":    {domain, "", "", "what instances share is bytes with a version; what they mean is their readers' business"},
		"health":    {domain, "shared", "", "outcomes in, degradations out; no vendor, no transport"},
		"signal":    {domain, "shared", "", "what attempts have shown, as numbers; who decides by them is another matter"},
		"record":    {domain, "", "", "everybody writes events; they depend on nobody"},
		"replay":    {domain, "record", "", "a log is bytes from anywhere; it knows what an event looks like in them"},
		"budget":    {domain, "", "", "a limit of time knows nothing of what it limits"},
		"affinity":  {domain, "budget", "", "the contract that stores keep must not know what is stored behind it, or who asks"},
		"session":   {domain, "wire", "", "a pure function of the request"},
		"provider":  {domain, "wire sse health", "", "a vendor's answers become classes of health; prices are embedded as text"},
		"route":     {domain, "wire affinity health provider signal", "", "a pure function of request, pin, health and prices: no I/O to import"},
		"translate": {domain, "wire sse", "", "bytes of one shape into bytes of another; who is called is another matter"},
		"proxy":     {domain, "wire provider sse health translate", "", "it calls and copies; it must not know about sessions or pins"},
		"gateway":   {domain, "wire session route affinity budget health proxy record provider auth signal", "github.com/oklog/ulid", "the only one that sees all stages"},

		"virtual": {domain, "auth provider route shared", "", "it merges what is saved with what is declared; where it is saved is another matter"},

		"audit":    {domain, "record", "", "questions over events; who stores them is another matter"},
		"admin":    {plane, "admin/ui affinity audit auth gateway health provider record session wire virtual", "", "it reads what the data plane leaves, asks it why, and never serves a completion"},
		"admin/ui": {plane, "audit record", "", "templates take values; who may see them is decided before"},

		"config": {edge, "auth gateway health provider proxy route session translate wire", "github.com/goccy/go-yaml", "it yields the checked values that the domain takes (ADR 0005)"},

		"awsclient": {adapter, "", "github.com/aws/aws-sdk-go-v2", "region, credentials, endpoints, roots and secrets; what is stored where is the others' business"},

		"carrier": {adapter, "", "", "it knows Lambda's protocol and sockets, and of its handler only that it is one"},

		"athena": {adapter, "audit", "github.com/aws/aws-sdk-go-v2 github.com/aws/smithy-go", "one technology against the contracts, never another adapter"},

		"firehose": {adapter, "record", "github.com/aws/aws-sdk-go-v2 github.com/aws/smithy-go", "one technology against the contracts, never another adapter"},

		"eventdb": {ground, "audit record", "zombiezen.com/go/sqlite", "events in SQLite tables, wherever the file is and whoever fills it"},

		"s3log":  {adapter, "audit eventdb record", "github.com/aws/aws-sdk-go-v2 zombiezen.com/go/sqlite", "objects in a bucket against the contract; its file is a cache, not a store"},
		"sqlite": {adapter, "affinity audit eventdb record shared", "zombiezen.com/go/sqlite", "one technology against the contracts, never another adapter"},
		"dynamo": {adapter, "affinity shared", "github.com/aws/aws-sdk-go-v2 github.com/aws/smithy-go", "one technology against the contracts, never another adapter"},
		"mem":    {adapter, "affinity record shared", "", "one technology against the contracts, never another adapter"},

		"functionurl":           {support, "", "", "plays Lambda below a bootstrap; it must not know what that does"},
		"affinity/affinitytest": {support, "affinity", "github.com/google/go-cmp pgregory.net/rapid", "a suite knows the contract alone"},
		"shared/sharedtest":     {support, "shared", "", "a suite knows the contract alone"},
		"athena/athenatest":     {support, "record", "", "it knows what an emulator lacks, and events"},
		"audit/audittest":       {support, "audit record", "github.com/google/go-cmp", "a suite knows the contract alone"},
		"record/recordtest":     {support, "record", "github.com/google/go-cmp pgregory.net/rapid", "a suite knows the contract alone"},
		"provider/gencatalog":   {support, "", "charm.land/catwalk", "writes the catalog that provider embeds; linked into nothing"},
		"upstreamtest":          {support, "provider sse", "golang.org/x/tools", "plays conversations below the proxy"},
		"demo":                  {edge, "", "", "simulated vendors; what calls them must not be able to tell"},
		"emulator":              {support, "", "github.com/johannesboyne/gofakes3 github.com/truora/minidyn", "AWS as the SDKs see it, which knows nothing of who calls"},
		"fleettest":             {support, "emulator functionurl", "", "programs from outside: it starts them and links none of them"},
		"archtest":              {support, "", "", "reads the source, links none of it"},
		"templatetest":          {support, "", "", "tests only: holds template.yaml against the code"},
	}
}

// technologies may not be reached from the domain, however indirectly. A name that ends
// in a slash stands for all below it.
func technologies() map[string]string {
	return map[string]string{
		"github.com/aws/":        "a DynamoDB type must never reach a strategy",
		"zombiezen.com/":         "a database driver belongs to its adapter",
		"modernc.org/":           "a database driver belongs to its adapter",
		"database/sql":           "a database driver belongs to its adapter",
		"net/http/httputil":      "its copy loop hides how a stream ended",
		"html/template":          "pages belong to the admin plane",
		"github.com/goccy/":      "the domain takes values, not configuration",
		"github.com/alecthomas/": "the domain takes values, not flags",
	}
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
	Module     *struct{ Path string }
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Deps,Standard,Module", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var one listed
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestImports holds every package to its row, and its row to the rings.
func TestImports(t *testing.T) {
	all := list(t)
	outside := map[string]string{} // import path -> module, of what is not the standard library
	for _, p := range all {
		if !p.Standard && p.Module != nil {
			outside[p.ImportPath] = p.Module.Path
		}
	}
	rows := table()
	seen := map[string]bool{}
	for _, p := range all {
		name, internal := strings.CutPrefix(p.ImportPath, module+"internal/")
		if !internal {
			continue
		}
		seen[name] = true
		row, known := rows[name]
		if !known {
			t.Errorf("%s is not in the table: give it a row, with its ring and the reason for its imports", name)
			continue
		}
		for _, fault := range row.faults(name, p, rows, outside) {
			t.Error(fault)
		}
	}
	for name := range rows {
		if !seen[name] && name != "archtest" && !strings.HasPrefix(name, "upstreamtest") {
			t.Errorf("%s is in the table but not in the module", name)
		}
	}
}

func (r row) faults(name string, p listed, rows map[string]row, outside map[string]string) (faults []string) {
	fault := func(parts ...string) { faults = append(faults, name+strings.Join(parts, "")) }
	for _, path := range p.Imports {
		mine, internal := strings.CutPrefix(path, module+"internal/")
		switch {
		case internal && !slices.Contains(strings.Fields(r.imports), mine):
			fault(" imports ", mine, "; it may import [", r.imports, "]: ", r.why)
		case internal && rows[mine].ring == adapter:
			fault(" imports the adapter ", mine, "; only a main wires adapters")
		case internal && rows[mine].ring == support && r.ring != support:
			fault(" imports ", mine, ", which is for tests only")
		case !internal && strings.HasPrefix(path, module):
			fault(" imports ", path, ": nothing calls back up")
		case !internal && outside[path] != "" && !isOneOf(path, strings.Fields(r.outside)):
			fault(" imports ", path, "; outside the standard library it may import [", r.outside, "]")
		}
	}
	if r.ring != domain && r.ring != plane {
		return faults
	}
	for _, path := range p.Deps {
		for technology, why := range technologies() {
			if technology == "html/template" && r.ring == plane {
				continue
			}
			if path == technology || strings.HasSuffix(technology, "/") && strings.HasPrefix(path, technology) {
				fault(" reaches ", path, ": ", why)
			}
		}
		if mine, internal := strings.CutPrefix(path, module+"internal/"); internal && rows[mine].ring != domain && rows[mine].ring != r.ring {
			fault(" reaches ", mine, ", which is not of the domain")
		}
	}
	return faults
}

func isOneOf(path string, modules []string) bool {
	for _, m := range modules {
		if path == m || strings.HasPrefix(path, m+"/") {
			return true
		}
	}
	return false
}

// TestImportFaults shows that the rules bite.
func TestImportFaults(t *testing.T) {
	outside := map[string]string{"zombiezen.com/go/sqlite": "zombiezen.com/go/sqlite", "github.com/x/y": "github.com/x/y"}
	for _, tt := range []struct {
		name string
		p    listed
		want string
	}{
		{"route", listed{Imports: []string{"switchboard/internal/sqlite"}}, "imports sqlite"},
		{"route", listed{Imports: []string{"zombiezen.com/go/sqlite"}}, "imports zombiezen.com"},
		{"route", listed{Deps: []string{"modernc.org/sqlite/lib"}}, "reaches modernc.org"},
		{"route", listed{Deps: []string{"github.com/aws/aws-sdk-go-v2/aws"}}, "reaches github.com/aws"},
		{"route", listed{Deps: []string{"switchboard/internal/config"}}, "reaches config"},
		{"session", listed{Imports: []string{"switchboard/internal/route"}}, "imports route"},
		{"gateway", listed{Deps: []string{"html/template"}}, "reaches html/template"},
		{"gateway", listed{Deps: []string{"switchboard/internal/admin"}}, "reaches admin"},
		{"admin", listed{Deps: []string{"html/template", "switchboard/internal/admin/ui"}}, ""},
		{"admin", listed{Deps: []string{"database/sql"}}, "reaches database/sql"},
		{"sqlite", listed{Imports: []string{"switchboard/internal/mem"}}, "imports mem"},
		{"sqlite", listed{Imports: []string{"switchboard/internal/gateway"}}, "imports gateway"},
		{"gateway", listed{Imports: []string{"switchboard/internal/affinity/affinitytest"}}, "imports affinity/affinitytest"},
		{"gateway", listed{Imports: []string{"github.com/x/y"}}, "imports github.com/x/y"},
		{"config", listed{Imports: []string{"switchboard/cmd/switchboard"}}, "imports switchboard/cmd"},
		{"gateway", listed{Imports: []string{"fmt", "switchboard/internal/wire"}, Deps: []string{"fmt", "switchboard/internal/wire"}}, ""},
	} {
		rows := table()
		got := strings.Join(rows[tt.name].faults(tt.name, tt.p, rows, outside), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("faults(%s, %v) = %q, want %q", tt.name, tt.p, got, tt.want)
		}
	}
}
