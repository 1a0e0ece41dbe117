package emulator

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// CreateTable makes a table on demand: the hash key and, unless it is empty, the range key
// are strings; ttl, unless it is empty, is the TTL attribute.
func (c *Cloud) CreateTable(name, hash, rng, ttl string) error {
	type attribute map[string]string
	definitions := []attribute{{"AttributeName": hash, "AttributeType": "S"}}
	keys := []attribute{{"AttributeName": hash, "KeyType": "HASH"}}
	if rng != "" {
		definitions = append(definitions, attribute{"AttributeName": rng, "AttributeType": "S"})
		keys = append(keys, attribute{"AttributeName": rng, "KeyType": "RANGE"})
	}
	if err := c.dynamoDo("CreateTable", map[string]any{
		"TableName": name, "AttributeDefinitions": definitions, "KeySchema": keys, "BillingMode": "PAY_PER_REQUEST",
	}, nil); err != nil {
		return fmt.Errorf("emulator: table %s: %w", name, err)
	}
	if ttl == "" {
		return nil
	}
	return c.dynamoDo("UpdateTimeToLive", map[string]any{
		"TableName": name, "TimeToLiveSpecification": map[string]any{"AttributeName": ttl, "Enabled": true},
	}, nil)
}

// PutItem stores an item. Values: string, bool, []byte, nil, any integer, float64 or
// json.Number, []any, map[string]any.
func (c *Cloud) PutItem(table string, values map[string]any) error {
	encoded := map[string]any{}
	for name, v := range values {
		one, err := encode(v)
		if err != nil {
			return fmt.Errorf("emulator: %s.%s: %w", table, name, err)
		}
		encoded[name] = one
	}
	return c.dynamoDo("PutItem", map[string]any{"TableName": table, "Item": encoded}, nil)
}

// Items reads a whole table, in no order. Values: string, bool, []byte, nil, json.Number,
// []any, map[string]any; sets are []any.
func (c *Cloud) Items(table string) ([]map[string]any, error) {
	var out struct{ Items []map[string]map[string]any }
	if err := c.dynamoDo("Scan", map[string]any{"TableName": table}, &out); err != nil {
		return nil, fmt.Errorf("emulator: items of %s: %w", table, err)
	}
	items := make([]map[string]any, 0, len(out.Items))
	for _, it := range out.Items {
		items = append(items, decodeMap(it))
	}
	return items, nil
}

// dynamoDo calls the service without counting it.
func (c *Cloud) dynamoDo(operation string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	c.dynamo.mu.Lock()
	answer := c.dynamo.answer(operation, body)
	c.dynamo.mu.Unlock()
	if err := answer.err(); err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer.body.Bytes(), out)
}

func encode(v any) (map[string]any, error) {
	switch v := v.(type) {
	case nil:
		return map[string]any{"NULL": true}, nil
	case string:
		return map[string]any{"S": v}, nil
	case bool:
		return map[string]any{"BOOL": v}, nil
	case []byte:
		return map[string]any{"B": v}, nil
	case float64:
		return map[string]any{"N": strconv.FormatFloat(v, 'f', -1, 64)}, nil
	case json.Number:
		return map[string]any{"N": v.String()}, nil
	case int, int32, int64, uint64:
		return map[string]any{"N": fmt.Sprint(v)}, nil
	case []any:
		list := make([]any, len(v))
		for i := range v {
			one, err := encode(v[i])
			if err != nil {
				return nil, err
			}
			list[i] = one
		}
		return map[string]any{"L": list}, nil
	case map[string]any:
		m := map[string]any{}
		for name, inner := range v {
			one, err := encode(inner)
			if err != nil {
				return nil, err
			}
			m[name] = one
		}
		return map[string]any{"M": m}, nil
	}
	return nil, fmt.Errorf("a value of type %T", v)
}

func decodeMap(m map[string]map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for name, v := range m {
		out[name] = decode(v)
	}
	return out
}

// decode undoes encode for one attribute value as JSON decodes it.
func decode(v map[string]any) any {
	for kind, inner := range v {
		switch kind {
		case "NULL":
			return nil
		case "N":
			text, _ := inner.(string)
			return json.Number(text)
		case "B":
			text, _ := inner.(string)
			var b []byte
			json.Unmarshal(strconv.AppendQuote(nil, text), &b) //nolint:errcheck // the engine's own base64
			return b
		case "L":
			list, _ := inner.([]any)
			out := make([]any, len(list))
			for i := range list {
				one, _ := list[i].(map[string]any)
				out[i] = decode(one)
			}
			return out
		case "M":
			m, _ := inner.(map[string]any)
			out := map[string]any{}
			for name := range m {
				one, _ := m[name].(map[string]any)
				out[name] = decode(one)
			}
			return out
		default: // S, BOOL, and sets
			return inner
		}
	}
	return nil
}
