//go:build emulator

package dynamo_test

import (
	"os"
	"testing"
)

// endpoint is that of an emulator that runs already, DYNAMODB_ENDPOINT, for example
//
//	BIND_HOST=127.0.0.1 GATEWAY_PORT=4577 ministack &
//	DYNAMODB_ENDPOINT=http://127.0.0.1:4577 go test -tags emulator ./internal/dynamo/
//
// Every test makes tables of its own in it, and deletes them.
func endpoint(t testing.TB) string {
	t.Helper()
	url := os.Getenv("DYNAMODB_ENDPOINT")
	if url == "" {
		t.Fatal("DYNAMODB_ENDPOINT is not set: the tag emulator needs one")
	}
	return url
}

func deviates(*testing.T) {}
