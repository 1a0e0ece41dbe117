package carrier

import (
	"context"
	"net/http"
)

func serveLambda(ctx context.Context, handler http.Handler, o Options) error {
	return errNoHandler
}

// ReportInitError tells Lambda why the function cannot start, so that its log and its
// caller say so; the process should exit after it. Off Lambda it does nothing.
func ReportInitError(ctx context.Context, getenv func(string) string, cause error) error {
	return nil
}
