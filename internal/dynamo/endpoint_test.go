//go:build !emulator

package dynamo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchboard/internal/emulator"
)

// endpoint is an empty DynamoDB in this process: minidyn, in the form that internal/emulator
// has given it. What minidyn v0.8.2 does differently, and that package's wrapper puts right,
// so that nothing of it is in the product: PutItem and DeleteItem never return the old item
// (neither ReturnValues nor ReturnValuesOnConditionCheckFailure), keys and items of any size
// are taken, and the list of tables is not safe for parallel calls. What stays different is
// named in deviates, and in lenient.
func endpoint(t testing.TB) string {
	t.Helper()
	cloud := emulator.New(emulator.Options{})
	server := httptest.NewServer(lenient{cloud})
	t.Cleanup(func() {
		server.Close()
		if err := cloud.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return server.URL
}

// deviates skips what this emulator cannot show; the second one can.
func deviates(t *testing.T) {
	t.Helper()
	if strings.HasSuffix(t.Name(), "/LargeNumbersAreExact") {
		t.Skip("minidyn computes in float64: 2^53+1 is 2^53 there")
	}
	if strings.HasSuffix(t.Name(), "/PagesSurviveClears") {
		t.Skip("minidyn looks for the item of ExclusiveStartKey, and lists nothing when that is gone")
	}
}

// lenient makes a comparison of two types false, as it is in DynamoDB: minidyn refuses the
// request ("right operand is not a number"). In these tests the whole condition is then false.
type lenient struct{ *emulator.Cloud }

func (l lenient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	answer := l.call(r.Header, body)
	if answer.Code == http.StatusBadRequest && differs(answer.Body.String()) {
		answer = l.conditionFailed(r.Header, body, answer)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

func differs(message string) bool {
	return strings.Contains(message, "right operand is not") || strings.Contains(message, "ERROR: type mismatch") ||
		strings.Contains(message, "comparing types are not supported")
}

func (l lenient) call(header http.Header, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header = header.Clone()
	answer := httptest.NewRecorder()
	l.Cloud.ServeHTTP(answer, r)
	return answer
}

// conditionFailed is the answer to a failed condition, with the item that failed it.
func (l lenient) conditionFailed(header http.Header, body []byte, refusal *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	var in struct {
		TableName                           string
		Key, Item                           map[string]json.RawMessage
		ReturnValuesOnConditionCheckFailure string
	}
	if json.Unmarshal(body, &in) != nil {
		return refusal
	}
	key := in.Key
	if key == nil {
		key = make(map[string]json.RawMessage)
		for _, column := range []string{"id", "session_id", "model_name"} {
			if value, there := in.Item[column]; there && (column == "id" || in.Item["id"] == nil) {
				key[column] = value
			}
		}
	}
	out := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "The conditional request failed"}
	if in.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
		ask, _ := json.Marshal(map[string]any{"TableName": in.TableName, "Key": key})
		header = header.Clone()
		header.Set("X-Amz-Target", "DynamoDB_20120810.GetItem")
		var got struct{ Item json.RawMessage }
		if json.Unmarshal(l.call(header, ask).Body.Bytes(), &got) == nil && len(got.Item) > 0 {
			out["Item"] = got.Item
		}
	}
	answer := httptest.NewRecorder()
	answer.Code = http.StatusBadRequest
	json.NewEncoder(answer.Body).Encode(out)
	return answer
}
