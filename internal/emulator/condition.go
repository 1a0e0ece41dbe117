package emulator

import (
	"encoding/json"
	"slices"
	"strings"
)

const conditionFailed = "ConditionalCheckFailedException"

// evaluate has the engine do a write whose condition may compare two types. On AWS such a
// comparison is false (and <> is true); minidyn refuses the request, so that a row of the
// wrong shape would be an error. Then the comparisons that it cannot do are replaced by what
// they come to, and it is asked again.
func (d *dynamo) evaluate(operation string, t *table, in request, body []byte) *reply {
	answer := d.call(operation, body)
	if err, refused := answer.err().(apiError); !refused || in.ConditionExpression == "" || err.Code != "ValidationException" || !typesDiffer(err.Message) { //nolint:errorlint // never wrapped
		return answer
	}
	key := in.Key
	if key == nil {
		key = t.key(in.Item)
	}
	again, ok := decideComparisons(body, in, t.hash, d.get(in.TableName, key))
	if !ok {
		return answer
	}
	return d.call(operation, again)
}

func typesDiffer(message string) bool {
	for _, part := range []string{"right operand is not", "left operand is not", "type mismatch", "mismatch type", "comparing types are not supported"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}

// decideComparisons rewrites the condition of a request for the item it would meet; ok is
// false when there was nothing to rewrite. Only attributes at the top level are known.
func decideComparisons(body []byte, in request, hash string, stored item) (again []byte, ok bool) {
	const key = "#emulatorhash" // the hash key: there, or not, as a condition needs it
	kind := func(operand string) string {
		if strings.HasPrefix(operand, ":") {
			return kindOf(in.ExpressionAttributeValues[operand])
		}
		return kindOf(stored[resolvePath(operand, in.ExpressionAttributeNames)])
	}
	tokens := expressionTokens(in.ConditionExpression)
	var out []string
	for i := 0; i < len(tokens); {
		width, differ, truth := comparison(tokens[i:], kind)
		switch {
		case !differ:
			out = append(out, tokens[i])
			i++
			continue
		case truth:
			out = append(out, "(attribute_exists("+key+") OR attribute_not_exists("+key+"))")
		default:
			out = append(out, "(attribute_exists("+key+") AND attribute_not_exists("+key+"))")
		}
		i, ok = i+width, true
	}
	if !ok {
		return nil, false
	}
	condition := strings.Join(out, " ")
	var request map[string]any
	if json.Unmarshal(body, &request) != nil {
		return nil, false
	}
	// What is named and no longer used would be refused.
	used := append(expressionTokens(in.UpdateExpression), expressionTokens(condition)...)
	names, values := map[string]string{}, map[string]json.RawMessage{}
	for name, attribute := range in.ExpressionAttributeNames {
		if slices.ContainsFunc(used, func(token string) bool { return mentions(token, name) }) {
			names[name] = attribute
		}
	}
	for name, value := range in.ExpressionAttributeValues {
		if slices.Contains(used, name) {
			values[name] = value
		}
	}
	names[key] = hash
	request["ConditionExpression"], request["ExpressionAttributeNames"] = condition, names
	if request["ExpressionAttributeValues"] = values; len(values) == 0 {
		delete(request, "ExpressionAttributeValues")
	}
	again, err := json.Marshal(request)
	return again, err == nil
}

// comparison reads one at the start of tokens; width is how many it takes, truth what it
// comes to when its types differ.
func comparison(tokens []string, kind func(operand string) string) (width int, differ, truth bool) {
	operand := func(i int) string {
		if i >= len(tokens) || i+1 < len(tokens) && tokens[i+1] == "(" {
			return "" // a function's value is always of the right type
		}
		return kind(tokens[i])
	}
	unlike := func(a, b string) bool { return a != "" && b != "" && a != b }
	if len(tokens) < 3 {
		return 0, false, false
	}
	left := operand(0)
	switch strings.ToUpper(tokens[1]) {
	case "=", "<", "<=", ">", ">=":
		return 3, unlike(left, operand(2)), false
	case "<>":
		return 3, unlike(left, operand(2)), true
	case "BETWEEN":
		if len(tokens) >= 5 {
			return 5, unlike(left, operand(2)) || unlike(left, operand(4)), false
		}
	}
	return 0, false, false
}

// mentions tells whether a path has the alias in it.
func mentions(path, alias string) bool {
	return slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]()", r) }), alias)
}

// kindOf is S, N, BOOL, …; empty for an attribute that is not there.
func kindOf(raw json.RawMessage) string {
	var v map[string]json.RawMessage
	if json.Unmarshal(raw, &v) == nil {
		for kind := range v {
			return kind
		}
	}
	return ""
}
