package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// place is where a value was given: a key in the file, or a variable of the environment
// (line 0).
type place struct {
	path      string // providers.a.type, virtual_models[0].source; the variable's name
	line, col int
}

func (p place) key(name string) place {
	if !plainKey(name) {
		name = strconv.Quote(name)
	}
	if p.path != "" {
		name = p.path + "." + name
	}
	return place{name, p.line, p.col}
}

func (p place) index(i int) place {
	return place{p.path + "[" + strconv.Itoa(i) + "]", p.line, p.col}
}

func variable(name string) place { return place{path: name} }

func plainKey(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	})
}

// problem is one thing that is wrong, and what would be right.
type problem struct {
	at   place
	text string
}

type problems []problem

// under tells whether something below a top-level key is wrong.
func (ps problems) under(top string) bool {
	return slices.ContainsFunc(ps, func(p problem) bool {
		rest, ok := strings.CutPrefix(p.at.path, top)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// loadError lists problems, one per line.
type loadError []string

func (e loadError) Error() string { return strings.Join(e, "\n") }

// err is nil when nothing is wrong. Problems of the file come first, in its order.
func (ps problems) err(file string, secrets []string) error {
	if len(ps) == 0 {
		return nil
	}
	sorted := slices.Clone(ps)
	slices.SortStableFunc(sorted, func(a, b problem) int {
		if (a.at.line == 0) != (b.at.line == 0) {
			return cmp.Compare(b.at.line, a.at.line)
		}
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.col, b.at.col))
	})
	// The longest first, so that no rest of it stays when a shorter one is its beginning.
	hidden := slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	lines := make(loadError, 0, len(sorted))
	for _, p := range sorted {
		line := p.text
		if p.at.path != "" {
			line = p.at.path + ": " + line
		}
		for _, secret := range hidden {
			line = strings.ReplaceAll(line, secret, "[secret]")
		}
		if p.at.line > 0 {
			line = fmt.Sprintf("%s:%d:%d: %s", file, p.at.line, p.at.col, line)
		} else {
			line = "environment: " + line
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// keepSecret has the text taken out of every problem. Very short ones would only garble
// them and are no secrets.
func (l *loader) keepSecret(text string) {
	if len(text) >= 4 && !slices.Contains(l.secrets, text) {
		l.secrets = append(l.secrets, text)
	}
}

// show quotes a wrong value, unless it is long or looks like a credential that was put
// into the wrong place.
func show(s string) string {
	if len(s) > 40 || looksSecret(s) {
		return "the value (not shown)"
	}
	return strconv.Quote(s)
}

func looksSecret(s string) bool {
	if strings.HasPrefix(s, "sk-") || strings.HasPrefix(s, "sb-") {
		return true
	}
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(part) >= 12 && strings.ContainsFunc(part, unicode.IsDigit) {
			return true
		}
	}
	return false
}

// oneOf lists what is allowed.
func oneOf(allowed []string) string { return "one of " + strings.Join(allowed, ", ") }

// hint says which name was probably meant, or which there are.
func hint(name string, known []string) string {
	if best := nearest(name, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known here: " + strings.Join(known, ", ")
}

// nearest is the known name that a slip of the keyboard turns into name, or "".
func nearest(name string, known []string) string {
	name = strings.ToLower(name)
	if len(name) > 64 {
		return ""
	}
	best, bestDistance := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := distance(name, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best != "" {
		return best
	}
	for _, k := range known { // "keys" for api_keys, "model_list" for models
		if len(name) >= 3 && (strings.Contains(k, name) || strings.Contains(name, strings.TrimSuffix(k, "s"))) {
			return k
		}
	}
	return ""
}

// distance counts insertions, deletions, changes and swaps of neighbours.
func distance(a, b string) int {
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
