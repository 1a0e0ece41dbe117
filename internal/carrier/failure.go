package carrier

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	headerErrorType = "Lambda-Runtime-Function-Error-Type"
	headerErrorBody = "Lambda-Runtime-Function-Error-Body"

	// longestMessage is how much in bytes of an error is reported.
	longestMessage = 1 << 10
)

// internalError is what a client gets when the handler panicked before it said anything.
const internalError = `{"error":{"message":"The server failed on this request.","type":"server_error","code":"internal_error","param":null}}` + "\n"

// failure is an error in the form that Lambda's runtimes report.
type failure struct{ kind, message string }

func newFailure(kind, message string) failure {
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "")
	}
	return failure{kind, message}
}

// panicFailure describes what a handler panicked with.
func panicFailure(cause any) failure {
	kind := strings.TrimLeft(fmt.Sprintf("%T", cause), "*")
	for i := range len(kind) {
		if c := kind[i]; c <= ' ' || c >= utf8.RuneSelf {
			kind = "panic" // a type without a name cannot stand in a header
			break
		}
	}
	return newFailure(kind, fmt.Sprint(cause))
}

func (f failure) json() []byte {
	b := append([]byte(nil), `{"errorMessage":"`...)
	b = appendText(b, f.message)
	b = append(b, `","errorType":"`...)
	b = appendText(b, f.kind)
	return append(b, `"}`...)
}

// trailers returns the lines that end a response which has to be known as broken.
func (f failure) trailers() string {
	return headerErrorType + ": " + f.kind + "\r\n" +
		headerErrorBody + ": " + base64.StdEncoding.EncodeToString(f.json()) + "\r\n"
}

// ReportInitError tells Lambda why the function cannot start, so that its log and its
// caller's error say so; the process should exit after it. Off Lambda it does nothing.
func ReportInitError(ctx context.Context, getenv func(string) string, cause error) error {
	if !OnLambda(getenv) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reportBudget)
	defer cancel()
	l := link{address: getenv(envRuntimeAPI)}
	defer l.drop()
	f := newFailure("Runtime.InitError", cause.Error())
	if err := l.post(ctx, "init/error", f.kind, f.json()); err != nil {
		return fmt.Errorf("report an init error: %w", err)
	}
	return nil
}
