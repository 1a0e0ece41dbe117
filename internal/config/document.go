package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// value is a node of the file and where it stands.
type value struct {
	node ast.Node
	at   place
}

// document is the parsed file.
type document struct {
	root    ast.Node
	anchors map[string]ast.Node // filled when the first alias is met
}

// field is a key of the schema.
type field struct {
	name string
	read func(value)
	// missing makes the key required: what to say when it is not there.
	missing string
}

// entry is a key with its value as written.
type entry struct {
	key   string
	value value
}

// parse reads the text; false when it is not one YAML document. The parser's own errors
// quote the lines around, which may hold a secret, so only its message is taken.
func (l *loader) parse(text []byte) (value, bool) {
	tokens := rejoin(lexer.Tokenize(strings.TrimPrefix(string(text), "\ufeff"))) // some editors begin with a mark
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := place{line: 1, col: 1}, "this is not valid YAML"
		var syntax interface {
			GetToken() *token.Token
			GetMessage() string
		}
		if errors.As(err, &syntax) {
			at = placeOf("", syntax.GetToken())
			if m := syntax.GetMessage(); !strings.ContainsAny(m, "\"\n") {
				message += ": " + m
			}
		}
		l.fail(at, "%s", message)
		return value{}, false
	}
	if stray := strayAlias(tokens); stray != nil {
		l.fail(placeOf("", stray), "an alias (*name) without an anchor (&name) of its name before it")
		return value{}, false
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); doc.Body != nil && !directive {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return value{}, false
	case 1:
		l.doc.root = bodies[0]
		return value{bodies[0], placeOf("", firstToken(bodies[0]))}, true
	}
	l.fail(placeOf("", firstToken(bodies[1])), "a second YAML document; write one")
	return value{}, false
}

func placeOf(path string, t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{path, 1, 1}
	}
	return place{path, max(1, t.Position.Line), max(1, t.Position.Column)}
}

// plain follows anchors, aliases and tags to the node that holds the value. Aliases that
// lead round in a circle end as nil.
func (l *loader) plain(n ast.Node) ast.Node {
	for range 32 {
		switch t := n.(type) {
		case *ast.AnchorNode:
			n = t.Value
		case *ast.TagNode:
			n = t.Value
		case *ast.AliasNode:
			n = l.anchor(t.Value)
		case *ast.MappingKeyNode:
			n = t.Value
		default:
			return n
		}
	}
	return nil
}

func (l *loader) anchor(name ast.Node) ast.Node {
	if l.doc.anchors == nil {
		l.doc.anchors = map[string]ast.Node{}
		ast.Walk(anchors(l.doc.anchors), l.doc.root)
	}
	if name == nil || name.GetToken() == nil {
		return nil
	}
	return l.doc.anchors[name.GetToken().Value]
}

// anchors collects the anchors of a document. The last of a name wins, unlike in YAML,
// where it is the last before the alias.
type anchors map[string]ast.Node

// Visit implements ast.Visitor.
func (a anchors) Visit(n ast.Node) ast.Visitor {
	if t, ok := n.(*ast.AnchorNode); ok && t.Name != nil && t.Name.GetToken() != nil {
		a[t.Name.GetToken().Value] = t.Value
	}
	return a
}

// kind says in words what a node is.
func kind(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	}
	return "text"
}

// entries lists the keys of a mapping, those of "<<" last. A mapping with nothing in it is
// an empty one: what stood there may be commented out.
func (l *loader) entries(v value) ([]entry, bool) {
	return l.entriesOf(v, 0)
}

func (l *loader) entriesOf(v value, depth int) ([]entry, bool) {
	var pairs []*ast.MappingValueNode
	switch t := l.plain(v.node).(type) {
	case nil, *ast.NullNode:
		return nil, true
	case *ast.MappingNode:
		pairs = t.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{t}
	default:
		l.fail(v.at, "found %s where a mapping (key: value) belongs", kind(t))
		return nil, false
	}
	var list, merged []entry
	lines := make(map[string]int, len(pairs))
	for _, pair := range pairs {
		at := placeOf(v.at.path, pair.Key.GetToken())
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
			if depth < 8 {
				more, _ := l.entriesOf(value{pair.Value, at}, depth+1)
				merged = append(merged, more...)
			}
			continue
		}
		name, ok := l.keyText(pair.Key)
		if !ok {
			l.fail(at, "a key must be plain text")
			continue
		}
		if first, twice := lines[name]; twice {
			l.fail(at.key(name), "given twice; it is in line %d already", first)
			continue
		}
		lines[name] = at.line
		list = append(list, entry{name, value{pair.Value, at.key(name)}})
	}
	for _, e := range merged {
		if _, have := lines[e.key]; !have {
			lines[e.key] = e.value.at.line
			list = append(list, e)
		}
	}
	return list, true
}

func (l *loader) keyText(n ast.Node) (string, bool) {
	switch t := l.plain(n).(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return t.GetToken().Value, true
	}
	return "", false
}

// object reads a mapping with known keys; false when it is none.
func (l *loader) object(v value, fields ...field) bool {
	return l.fields(v, looksSecret, fields)
}

// secretive is object for a mapping in which a key's text may stand where a name belongs:
// unknown keys that do not look like one are not shown.
func (l *loader) secretive(v value, fields ...field) bool {
	return l.fields(v, func(key string) bool { return !keyWord(key) }, fields)
}

func (l *loader) fields(v value, hide func(key string) bool, fields []field) bool {
	list, ok := l.entries(v)
	if !ok {
		return false
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	present := make([]bool, len(fields))
next:
	for _, e := range list {
		for i, f := range fields {
			if f.name == e.key {
				present[i] = true
				f.read(e.value)
				continue next
			}
		}
		at := e.value.at
		if hide(e.key) {
			l.fail(place{v.at.path, at.line, at.col}, "unknown key (not shown); known here: %s", strings.Join(names, ", "))
			continue
		}
		l.fail(at, "unknown key; %s", hint(e.key, names))
	}
	for i, f := range fields {
		if f.missing != "" && !present[i] {
			l.fail(v.at.key(f.name), "missing; %s", f.missing)
		}
		if l.offered != nil {
			l.offered(v.at.key(f.name).path, present[i])
		}
	}
	return true
}

// keyWord is a name as the schema has them, not a credential.
func keyWord(s string) bool {
	return len(s) <= 24 && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' })
}

// list reads a list; false when it is none.
func (l *loader) list(v value, each func(i int, item value)) bool {
	sequence, ok := l.plain(v.node).(*ast.SequenceNode)
	if !ok {
		l.fail(v.at, "found %s where a list belongs", kind(l.plain(v.node)))
		return false
	}
	for i, n := range sequence.Values {
		at := v.at.index(i)
		if n != nil {
			at = placeOf(at.path, firstToken(n))
		}
		each(i, value{n, at})
	}
	return true
}

// firstToken is where a node begins: a block mapping's own token is its first colon.
func firstToken(n ast.Node) *token.Token {
	switch t := n.(type) {
	case *ast.MappingNode:
		if !t.IsFlowStyle && len(t.Values) > 0 {
			return t.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return t.Key.GetToken()
	}
	return n.GetToken()
}

// valueAt moves the place from the key to the value itself.
func (l *loader) valueAt(v value) place {
	if v.node == nil || kind(l.plain(v.node)) == "nothing" {
		return v.at
	}
	return placeOf(v.at.path, firstToken(v.node))
}

// scalar is the text of a value as written, of whatever type.
func (l *loader) scalar(v value) (string, bool) {
	switch t := l.plain(v.node).(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.LiteralNode:
		return t.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return t.GetToken().Value, true
	}
	return "", false
}

// text reads a text. Numbers count as such: a digest or a name may look like one.
func (l *loader) text(v value) (string, bool) {
	n := l.plain(v.node)
	if _, boolean := n.(*ast.BoolNode); boolean {
		l.fail(l.valueAt(v), "found %s where text belongs; put it in quotes if it is meant", kind(n))
		return "", false
	}
	s, ok := l.scalar(v)
	if !ok {
		l.fail(l.valueAt(v), "found %s where text belongs", kind(n))
	}
	return s, ok
}

func (l *loader) boolean(into *bool) func(value) {
	return func(v value) {
		b, ok := l.plain(v.node).(*ast.BoolNode)
		if !ok {
			l.fail(l.valueAt(v), "found %s where true or false belongs", kind(l.plain(v.node)))
			return
		}
		*into = b.Value
	}
}

// count reads a whole number within bounds.
func (l *loader) count(into *int, lowest, highest int) func(value) {
	return func(v value) {
		s, _ := l.scalar(v)
		n, err := strconv.Atoi(s)
		if _, number := l.plain(v.node).(*ast.IntegerNode); !number || err != nil || n < lowest || n > highest {
			l.fail(l.valueAt(v), "not a whole number from %d to %d", lowest, highest)
			return
		}
		*into = n
	}
}

// enum reads one of the allowed texts.
func (l *loader) enum(into *string, allowed ...string) func(value) {
	return func(v value) {
		s, ok := l.text(v)
		if !ok {
			return
		}
		if problem := checkEnum(s, allowed); problem != "" {
			l.fail(l.valueAt(v), "%s", problem)
			return
		}
		*into = s
	}
}
