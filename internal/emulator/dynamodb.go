package emulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/truora/minidyn/server"
)

// dynamo is minidyn with one lock around every call, because minidyn itself guards its
// items but not its list of tables, and with what it leaves out:
//
//   - PutItem and DeleteItem honour ReturnValues and ReturnValuesOnConditionCheckFailure
//     (minidyn answers the new item to every PutItem and never the old one),
//   - REMOVE removes top-level attributes (minidyn's leaves them where they are), in UpdateItem,
//   - keys that are empty or over 2,048 (hash) and 1,024 (range) bytes, items over 400 KB, keys
//     that a BatchGetItem names twice, and update actions on one path are refused,
//   - update actions that read what another action sets are refused, see scanUpdate,
//   - a condition that compares two types is false, see evaluate,
//   - DescribeTable says ACTIVE, which waiters wait for,
//   - TimeToLive can be set and read; nothing is ever deleted by it.
//
// Known to differ still: numbers are float64, so exact up to 2^53 only, and a text that is no
// number is taken; empty lists and maps come back without a type; TransactWriteItems has
// neither REMOVE of top-level attributes nor scanUpdate's checks; a BatchGetItem reads all
// its items at one instant; pages end at Limit only, never at 1 MB; UnprocessedKeys,
// UnprocessedItems (SetFault can refuse the whole call) and ConsumedCapacity are never there.
type dynamo struct {
	mu     sync.Mutex
	engine *server.Server
	tables map[string]*table
}

// table is what we need to know of a table ourselves.
type table struct {
	hash, rng string // names of the key attributes; rng is empty where there is none
	ttl       string // name of the TTL attribute
}

const (
	maxHashKey  = 2048
	maxRangeKey = 1024
	maxItem     = 400 << 10
)

// item is one attribute map in DynamoDB's JSON.
type item map[string]json.RawMessage

// reply is an answer of the engine, kept in memory.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *reply) Header() http.Header         { return r.header }
func (r *reply) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *reply) WriteHeader(status int)      { r.status = status }

// call has the engine answer one operation. The lock must be held.
func (d *dynamo) call(operation string, body []byte) *reply {
	r := &http.Request{Method: http.MethodPost, Header: http.Header{"X-Amz-Target": {"DynamoDB_20120810." + operation}}, Body: http.NoBody}
	r.Body = readCloser{bytes.NewReader(body)}
	answer := &reply{header: http.Header{}, status: http.StatusOK}
	d.engine.ServeHTTP(answer, r)
	return answer
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

func (d *dynamo) serve(w http.ResponseWriter, operation string, body []byte) {
	d.mu.Lock()
	answer := d.answer(operation, body)
	d.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(answer.status)
	w.Write(answer.body.Bytes()) //nolint:errcheck // the client may be gone
}

// request is what of a request's body the wrapper looks at.
type request struct {
	TableName                           string
	Key, Item                           item
	UpdateExpression                    string
	ConditionExpression                 string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           map[string]json.RawMessage
	RequestItems                        map[string]json.RawMessage
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
	TimeToLiveSpecification             struct {
		AttributeName string
		Enabled       bool
	}
}

func (d *dynamo) answer(operation string, body []byte) *reply {
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return refuse(apiError{Code: "SerializationException", Message: err.Error()})
	}
	switch operation {
	case "CreateTable":
		return d.createTable(in.TableName, body)
	case "ListTables":
		return accept(map[string]any{"TableNames": slices.Sorted(maps.Keys(d.tables))})
	}
	t, known := d.tables[in.TableName]
	switch operation {
	case "UpdateTimeToLive", "DescribeTimeToLive":
		if !known {
			return refuse(apiError{Code: "ResourceNotFoundException", Message: "Cannot do operations on a non-existent table"})
		}
		return t.timeToLive(operation, in)
	case "PutItem", "DeleteItem", "UpdateItem", "GetItem":
		if known {
			if err := t.checkSize(in); err != nil {
				return refuse(*err)
			}
		}
		switch {
		case known && operation == "UpdateItem":
			return d.update(t, in, body)
		case known && operation != "GetItem":
			return d.write(t, operation, in, body)
		}
	case "BatchGetItem":
		if twice(in.RequestItems) {
			return refuse(violation("Provided list of item keys contains duplicates"))
		}
	case "DeleteTable":
		delete(d.tables, in.TableName)
	case "DescribeTable":
		return d.describeTable(body)
	case "UpdateTable", "Query", "Scan", "BatchWriteItem", "TransactWriteItems", "TransactGetItems":
	default:
		return refuse(apiError{Code: "UnknownOperationException", Message: "not here: DynamoDB." + operation})
	}
	return d.call(operation, body)
}

func (d *dynamo) createTable(name string, body []byte) *reply {
	answer := d.call("CreateTable", body)
	if answer.status != http.StatusOK {
		return answer
	}
	var in struct {
		KeySchema []struct{ AttributeName, KeyType string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return refuse(apiError{Code: "SerializationException", Message: err.Error()})
	}
	t := &table{}
	for _, key := range in.KeySchema {
		if key.KeyType == "HASH" {
			t.hash = key.AttributeName
		} else {
			t.rng = key.AttributeName
		}
	}
	d.tables[name] = t
	return answer
}

func (d *dynamo) describeTable(body []byte) *reply {
	answer := d.call("DescribeTable", body)
	var out struct{ Table map[string]any }
	if answer.status != http.StatusOK || json.Unmarshal(answer.body.Bytes(), &out) != nil || out.Table == nil {
		return answer
	}
	out.Table["TableStatus"] = "ACTIVE"
	return accept(out)
}

func (t *table) timeToLive(operation string, in request) *reply {
	if operation == "DescribeTimeToLive" {
		status := "DISABLED"
		if t.ttl != "" {
			status = "ENABLED"
		}
		return accept(map[string]any{"TimeToLiveDescription": map[string]string{"AttributeName": t.ttl, "TimeToLiveStatus": status}})
	}
	t.ttl = ""
	if in.TimeToLiveSpecification.Enabled {
		t.ttl = in.TimeToLiveSpecification.AttributeName
	}
	return accept(map[string]any{"TimeToLiveSpecification": map[string]any{"AttributeName": in.TimeToLiveSpecification.AttributeName, "Enabled": in.TimeToLiveSpecification.Enabled}})
}

// key is the key attributes of an item.
func (t *table) key(of item) item {
	key := item{t.hash: of[t.hash]}
	if t.rng != "" {
		key[t.rng] = of[t.rng]
	}
	return key
}

func (t *table) checkSize(in request) *apiError {
	key := in.Key
	if key == nil {
		key = in.Item
	}
	for _, part := range []struct {
		name string
		most int
		text string
	}{
		{t.hash, maxHashKey, "Size of hashkey has exceeded the maximum size limit of2048 bytes"},
		{t.rng, maxRangeKey, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"},
	} {
		switch n := keySize(key[part.name]); {
		case n > part.most:
			err := violation("One or more parameter values were invalid: %s", part.text)
			return &err
		case n == 0 && key[part.name] != nil:
			err := violation("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", part.name)
			return &err
		}
	}
	if itemSize(in.Item) > maxItem {
		err := violation("Item size has exceeded the maximum allowed size")
		return &err
	}
	return nil
}

// keySize is the bytes of a string, number or binary key.
func keySize(raw json.RawMessage) int {
	var v struct {
		S, N string
		B    []byte
	}
	if json.Unmarshal(raw, &v) != nil {
		return 0
	}
	return len(v.S) + len(v.N) + len(v.B)
}

// twice tells whether a BatchGetItem names a key of one table twice.
func twice(requests map[string]json.RawMessage) bool {
	for _, raw := range requests {
		var in struct {
			Keys []map[string]map[string]string
		}
		if json.Unmarshal(raw, &in) != nil {
			continue // the engine says what is wrong
		}
		for i, key := range in.Keys {
			for _, other := range in.Keys[:i] {
				if reflect.DeepEqual(key, other) {
					return true
				}
			}
		}
	}
	return false
}

// itemSize is about what DynamoDB counts: names and values.
func itemSize(it item) int {
	n := 0
	for name, value := range it {
		n += len(name) + len(value) - len(`{"S":""}`)
	}
	return n
}

// write does a PutItem or DeleteItem and answers the old item where the request asked.
func (d *dynamo) write(t *table, operation string, in request, body []byte) *reply {
	wantsOld := in.ReturnValues == "ALL_OLD"
	wantsWinner := in.ReturnValuesOnConditionCheckFailure == "ALL_OLD"
	var old item
	if wantsOld || wantsWinner {
		key := in.Key
		if operation == "PutItem" {
			key = t.key(in.Item)
		}
		old = d.get(in.TableName, key)
	}
	answer := d.evaluate(operation, t, in, body)
	switch {
	case answer.status == http.StatusOK && wantsOld && old != nil:
		return accept(map[string]any{"Attributes": old})
	case answer.status == http.StatusOK:
		return accept(struct{}{})
	case wantsWinner && old != nil:
		var failed struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
			Item    item   `json:",omitempty"`
		}
		if json.Unmarshal(answer.body.Bytes(), &failed) == nil && failed.Type == conditionFailed {
			failed.Item = old
			return withStatus(answer.status, failed)
		}
	}
	return answer
}

func (d *dynamo) get(tableName string, key item) item {
	body, err := json.Marshal(map[string]any{"TableName": tableName, "Key": key})
	if err != nil {
		return nil
	}
	var out struct{ Item item }
	if answer := d.call("GetItem", body); answer.status != http.StatusOK || json.Unmarshal(answer.body.Bytes(), &out) != nil {
		return nil
	}
	return out.Item
}

func accept(v any) *reply { return withStatus(http.StatusOK, v) }

func refuse(err apiError) *reply {
	return withStatus(err.status(), map[string]string{"__type": err.Code, "message": err.Message})
}

func withStatus(status int, v any) *reply {
	answer := &reply{header: http.Header{}, status: status}
	json.NewEncoder(&answer.body).Encode(v) //nolint:errcheck // into memory
	return answer
}

// err is the reply's error, or nil.
func (r *reply) err() error {
	if r.status == http.StatusOK {
		return nil
	}
	var failed struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(r.body.Bytes(), &failed) != nil {
		return fmt.Errorf("emulator: status %d", r.status)
	}
	return apiError{Code: failed.Type, Message: failed.Message, Status: r.status}
}
