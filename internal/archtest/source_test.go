// Package archtest fails when a rule of the house is broken (docs/ARCHITECTURE.md).
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// source is one Go file of the module.
type source struct {
	path string // from the root, with slashes
	text string
	file *ast.File
	fset *token.FileSet
}

func (s source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) generated() bool { return ast.IsGenerated(s.file) }
func (s source) in(dirs ...string) bool {
	for _, dir := range dirs {
		if strings.HasPrefix(s.path, dir+"/") {
			return true
		}
	}
	return false
}

func parse(t *testing.T, name, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{name, text, file, fset}
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || base == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		all = append(all, parse(t, filepath.ToSlash(relative), string(text)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("%d Go files under %s: this looks at the wrong place", len(all), root)
	}
	return all
}

// rule finds what a file does against the house, and says why that matters.
type rule struct {
	name string
	why  string
	find func(source) []string
}

func rules() []rule {
	return []rule{
		{"no init", "what runs before main can be neither ordered, nor tested, nor left out (ADR 0001)", findInit},
		{"no package-level state", "two gateways in one process, or two tests, would share it; pass a value instead", findState},
		{"files under 400 lines", "a file has one job; split it by job, not by size", findLong},
		{"no sleep in tests", "a sleep is too short on a slow machine and too long on all others; use testing/synctest", findSleep},
		{"environment only in config", "the environment is read once, in config; mains hand it over", findEnvironment},
		{"plain testing", "one way to say what is wrong: got, want", findAssertions},
	}
}

func TestSource(t *testing.T) {
	all := sources(t)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for _, s := range all {
				for _, found := range r.find(s) {
					t.Errorf("%s: %s\n\t%s", s.path, found, r.why)
				}
			}
		})
	}
}

func findInit(s source) (found []string) {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, "func init")
		}
	}
	return found
}

// findState allows what is a constant in all but name: sentinels, embedded files,
// compile-time assertions, and tables that their file never changes.
func findState(s source) (found []string) {
	if s.test() {
		return nil
	}
	changed := assigned(s.file)
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if name.Name == "_" || embedded(g.Doc, v.Doc) {
					continue
				}
				if i >= len(v.Values) || !constant(v.Values[i]) || changed[name.Name] {
					found = append(found, "var "+name.Name)
				}
			}
		}
	}
	return found
}

func embedded(docs ...*ast.CommentGroup) bool {
	for _, doc := range docs {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if strings.HasPrefix(c.Text, "//go:embed") {
				return true
			}
		}
	}
	return false
}

// constant tells whether a value is a sentinel or a literal table: errors.New, &T{…} of an
// error, []byte("…"), or a literal of literals. Maps are not: they are written without an
// assignment that stands out.
func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		switch f := e.Fun.(type) {
		case *ast.SelectorExpr:
			pkg, _ := f.X.(*ast.Ident)
			return pkg != nil && (pkg.Name == "errors" && f.Sel.Name == "New" || pkg.Name == "fmt" && f.Sel.Name == "Errorf" ||
				pkg.Name == "regexp" && f.Sel.Name == "MustCompile")
		case *ast.ArrayType:
			return true // a conversion of a constant
		}
	case *ast.UnaryExpr:
		literal, ok := e.X.(*ast.CompositeLit)
		if !ok {
			return false
		}
		name := ""
		switch t := literal.Type.(type) {
		case *ast.Ident:
			name = t.Name
		case *ast.SelectorExpr:
			name = t.Sel.Name
		}
		return strings.HasSuffix(name, "Error")
	case *ast.CompositeLit:
		_, isArray := e.Type.(*ast.ArrayType)
		return isArray
	}
	return false
}

// assigned are the names that a file assigns to, whole or in part, or takes the address of.
func assigned(file *ast.File) map[string]bool {
	names := map[string]bool{}
	mark := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
				continue
			case *ast.SelectorExpr:
				e = x.X
				continue
			case *ast.Ident:
				names[x.Name] = true
			}
			return
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					mark(e)
				}
			}
		case *ast.IncDecStmt:
			mark(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				mark(n.X)
			}
		}
		return true
	})
	return names
}

const maxLines = 400

func findLong(s source) []string {
	if n := strings.Count(s.text, "\n"); n > maxLines && !s.test() && !s.generated() {
		return []string{"more than 400 lines"}
	}
	return nil
}

func findSleep(s source) []string {
	// In a synctest bubble a sleep takes no time.
	if !s.test() || !s.in("internal", "cmd") || imports(s, "testing/synctest") {
		return nil
	}
	return calls(s, "time", "Sleep")
}

func findEnvironment(s source) []string {
	if s.test() || s.in("cmd", "functions", "localstack", "internal/config", "e2e", "bench") {
		return nil
	}
	return calls(s, "os", "Getenv", "LookupEnv", "Environ", "ExpandEnv")
}

func findAssertions(s source) (found []string) {
	for _, i := range s.file.Imports {
		if regexp.MustCompile(`testify|gomega|ginkgo|go\.uber\.org/mock|golang/mock`).MatchString(i.Path.Value) {
			found = append(found, "import "+i.Path.Value)
		}
	}
	return found
}

func imports(s source, name string) bool {
	for _, i := range s.file.Imports {
		if strings.Trim(i.Path.Value, `"`) == name {
			return true
		}
	}
	return false
}

// calls finds uses of pkg.name, as a call or as a value.
func calls(s source, pkg string, names ...string) (found []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := selector.X.(*ast.Ident)
		for _, name := range names {
			if ok && x.Name == pkg && selector.Sel.Name == name {
				found = append(found, s.fset.Position(n.Pos()).String()+": "+pkg+"."+name)
			}
		}
		return true
	})
	return found
}

// firstSentence ends where a full stop and white space do.
var firstSentence = regexp.MustCompile(`^(?s).*?\.\s`)

// TestPackageSentence: every package says in one sentence what its one job is, in the file
// named after it (a command: in main.go). If it needs "and" twice, split the package.
func TestPackageSentence(t *testing.T) {
	said := map[string]bool{}
	packages := map[string]string{} // directory -> package name
	for _, s := range sources(t) {
		dir, name := path.Dir(s.path), strings.TrimSuffix(s.file.Name.Name, "_test")
		packages[dir] = name
		if s.file.Doc == nil || s.file.Name.Name != name {
			continue
		}
		text := s.file.Doc.Text()
		if !strings.HasPrefix(text, "Package "+name+" ") && !strings.HasPrefix(text, "Command ") {
			t.Errorf("%s: the package comment starts with %.30q, want %q", s.path, text, "Package "+name+" …")
		}
		sentence := firstSentence.FindString(text)
		if n := len(strings.Split(sentence, " and ")) - 1; s.in("internal") && n > 1 {
			t.Errorf("%s: %q needs \"and\" %d times", s.path, sentence, n)
		}
		said[dir] = true
	}
	for dir, name := range packages {
		if !said[dir] {
			t.Errorf("%s: package %s does not say what its one job is", dir, name)
		}
	}
}

// TestRules shows that each rule bites, and lets through what it should.
func TestRules(t *testing.T) {
	for _, tt := range []struct{ rule, path, text, want string }{
		{"no init", "internal/x/x.go", "package x\nfunc init() {}", "func init"},
		{"no init", "internal/x/x.go", "package x\ntype t int\nfunc (t) init() {}", ""},
		{"no package-level state", "internal/x/x.go", "package x\nvar cache = map[string]int{}", "var cache"},
		{"no package-level state", "internal/x/x.go", "package x\nvar n int", "var n"},
		{"no package-level state", "internal/x/x.go", "package x\nvar list = []string{\"a\"}\nfunc f() { list[0] = \"\" }", "var list"},
		{"no package-level state", "internal/x/x.go", "package x\nvar list = []string{\"a\"}\nfunc f() { list = append(list, \"\") }", "var list"},
		{"no package-level state", "internal/x/x.go", "package x\nimport \"errors\"\nvar ErrX = errors.New(\"x\")\nvar list = []string{\"a\"}\nvar _ error = ErrX", ""},
		{"no package-level state", "internal/x/x.go", "package x\nimport _ \"embed\"\n//go:embed a\nvar a []byte", ""},
		{"files under 400 lines", "internal/x/x.go", "package x\n" + strings.Repeat("\n", 400), "more than"},
		{"files under 400 lines", "internal/x/x.go", "// Code generated by x. DO NOT EDIT.\npackage x\n" + strings.Repeat("\n", 400), ""},
		{"no sleep in tests", "internal/x/x_test.go", "package x\nimport \"time\"\nfunc f() { time.Sleep(1) }", "time.Sleep"},
		{"no sleep in tests", "internal/x/x_test.go", "package x\nimport (\"time\"; \"testing/synctest\")\nfunc f() { time.Sleep(1); synctest.Wait() }", ""},
		{"environment only in config", "internal/x/x.go", "package x\nimport \"os\"\nvar f = os.Getenv", "os.Getenv"},
		{"environment only in config", "cmd/x/main.go", "package main\nimport \"os\"\nvar f = os.Getenv", ""},
		{"plain testing", "internal/x/x_test.go", "package x\nimport \"github.com/stretchr/testify/assert\"", "testify"},
	} {
		for _, r := range rules() {
			if r.name != tt.rule {
				continue
			}
			got := strings.Join(r.find(parse(t, tt.path, tt.text)), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%s over %q = %q, want %q", tt.rule, tt.text, got, tt.want)
			}
		}
	}
}
