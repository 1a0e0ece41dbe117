package emulator

import (
	"encoding/json"
	"net/http"
	"strings"
)

// updating is what an update expression does, as far as minidyn gets it wrong.
type updating struct {
	removed []string // top-level attributes, which minidyn's REMOVE leaves where they are
}

// scanUpdate reads an update expression. It refuses what AWS refuses and minidyn does not:
// two actions on one path. It also refuses what AWS and minidyn would do differently, so
// that no test passes by it: an action that reads what an action before it has set. AWS
// reads the item as it was, minidyn as it has become.
func scanUpdate(expression string, aliases map[string]string) (updating, *apiError) {
	var out updating
	var paths []string
	clause, left := "", true // left: the next name is the path of an action
	tokens := expressionTokens(expression)
	for i, token := range tokens {
		switch keyword := strings.ToUpper(token); {
		case keyword == "SET" || keyword == "ADD" || keyword == "DELETE" || keyword == "REMOVE":
			clause, left = keyword, true
		case token == ",":
			left = left || !inParentheses(tokens[:i])
		case token == "=":
			left = false
		case !isName(token) || i+1 < len(tokens) && tokens[i+1] == "(": // an operator, a value, a function
		case left:
			path := resolvePath(token, aliases)
			if other := overlap(paths, path); other != "" {
				err := violation("Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [%s], path two: [%s]", other, path)
				return out, &err
			}
			paths = append(paths, path)
			left = false
			if clause == "REMOVE" && !strings.ContainsAny(path, ".[") {
				out.removed = append(out.removed, path)
			}
		default:
			path := resolvePath(token, aliases)
			if before := paths[:max(0, len(paths)-1)]; overlap(before, path) != "" {
				err := apiError{Code: "EmulatorException", Message: "an action reads " + path + ", which an action before it sets: AWS would read the old value, minidyn the new one"}
				return out, &err
			}
		}
	}
	return out, nil
}

// expressionTokens cuts an expression into names, values and marks, which may be two long.
func expressionTokens(expression string) (tokens []string) {
	start := -1
	flush := func(end int) {
		if start >= 0 {
			tokens = append(tokens, expression[start:end])
			start = -1
		}
	}
	for i := 0; i < len(expression); i++ {
		switch c := expression[i]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			flush(i)
		case strings.IndexByte("=,()+-<>", c) >= 0:
			flush(i)
			mark := expression[i : i+1]
			if two := expression[i:min(i+2, len(expression))]; two == "<=" || two == ">=" || two == "<>" {
				mark = two
				i++
			}
			tokens = append(tokens, mark)
		case start < 0:
			start = i
		}
	}
	flush(len(expression))
	return tokens
}

func inParentheses(tokens []string) bool {
	depth := 0
	for _, token := range tokens {
		switch token {
		case "(":
			depth++
		case ")":
			depth--
		}
	}
	return depth > 0
}

// isName tells attribute paths from values and marks.
func isName(token string) bool {
	return !strings.HasPrefix(token, ":") && !strings.ContainsAny(token, "=,()+-<>")
}

func resolvePath(path string, aliases map[string]string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, index, indexed := strings.Cut(part, "[")
		if alias, ok := aliases[name]; ok {
			name = alias
		}
		if indexed {
			name += "[" + index
		}
		parts[i] = name
	}
	return strings.Join(parts, ".")
}

// overlap finds the path among others that is, holds, or lies in path.
func overlap(others []string, path string) string {
	for _, other := range others {
		if other == path || within(path, other) || within(other, path) {
			return other
		}
	}
	return ""
}

func within(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}

// update does an UpdateItem, and takes away what its expression removes. The lock is held,
// so that nobody sees the two steps.
func (d *dynamo) update(t *table, in request, body []byte) *reply {
	scanned, refused := scanUpdate(in.UpdateExpression, in.ExpressionAttributeNames)
	if refused != nil {
		return refuse(*refused)
	}
	answer := d.evaluate("UpdateItem", t, in, body)
	if answer.status != http.StatusOK || len(scanned.removed) == 0 {
		return answer
	}
	stored := d.get(in.TableName, t.key(in.Key))
	for _, name := range scanned.removed {
		delete(stored, name)
	}
	put, err := json.Marshal(map[string]any{"TableName": in.TableName, "Item": stored})
	if err != nil {
		return refuse(apiError{Code: "InternalServerError", Message: err.Error()})
	}
	if again := d.call("PutItem", put); again.status != http.StatusOK {
		return again
	}
	var out map[string]json.RawMessage
	var attributes item
	if in.ReturnValues == "ALL_NEW" && json.Unmarshal(answer.body.Bytes(), &out) == nil && json.Unmarshal(out["Attributes"], &attributes) == nil {
		return accept(map[string]any{"Attributes": stored})
	}
	return answer
}
