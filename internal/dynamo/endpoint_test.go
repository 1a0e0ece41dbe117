//go:build !emulator

package dynamo_test

import (
	"context"
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
// named in deviates.
func endpoint(t testing.TB) string {
	t.Helper()
	cloud := emulator.New(emulator.Options{})
	server := httptest.NewServer(cloud)
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
}
