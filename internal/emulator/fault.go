package emulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Fault is what goes wrong with one request. The zero value is nothing.
type Fault struct {
	Delay      time.Duration // before anything else happens
	Code       string        // answer this error instead of applying the request, e.g. "ThrottlingException"
	Status     int           // HTTP status of that answer; default by Code: 500, 503 or 400
	DropBefore bool          // close the connection; nothing was applied
	DropAfter  bool          // apply the request, then close the connection
	// FailRecords says which records of a PutRecordBatch are refused, by index; the call
	// itself answers 200 with their count.
	FailRecords func(i int) bool
}

// SetFault has decide called for every request from now on; nil ends that. It is called by
// several goroutines at the same time and may keep count of its calls itself. body is the
// request's, only to be read.
func (c *Cloud) SetFault(decide func(service, operation string, body []byte) Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = decide
}

func (c *Cloud) decide(service, operation string, body []byte) Fault {
	c.mu.Lock()
	decide := c.fault
	c.mu.Unlock()
	if decide == nil {
		return Fault{}
	}
	return decide(service, operation, body)
}

func (f Fault) write(w http.ResponseWriter, service string) {
	err := apiError{Code: f.Code, Status: f.Status, Message: "a fault on demand"}
	if service == S3 {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(err.status())
		fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message></Error>", cmp.Or(f.Code, "InternalError"), err.Message)
		return
	}
	writeError(w, err)
}

// apiError is an error answer of the JSON protocols.
type apiError struct {
	Code    string
	Message string
	Status  int // 0: by the code
}

func (e apiError) Error() string { return e.Code + ": " + e.Message }

func (e apiError) status() int {
	switch {
	case e.Status != 0:
		return e.Status
	case strings.HasPrefix(e.Code, "InternalServer") || e.Code == "InternalError" || e.Code == "InternalFailure":
		return http.StatusInternalServerError
	case strings.HasPrefix(e.Code, "ServiceUnavailable") || e.Code == "SlowDown":
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

func invalid(format string, args ...any) apiError {
	return apiError{Code: "InvalidArgumentException", Message: fmt.Sprintf(format, args...)}
}

func violation(format string, args ...any) apiError {
	return apiError{Code: "ValidationException", Message: fmt.Sprintf(format, args...)}
}

func writeError(w http.ResponseWriter, err apiError) {
	code := err.Code
	if code == "" {
		code = http.StatusText(err.status())
	}
	writeJSON(w, err.status(), map[string]string{"__type": code, "message": err.Message})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) //nolint:errcheck // the client may be gone
}

// answer runs one JSON operation: the body decoded into In, the result or error written.
func answer[In, Out any](w http.ResponseWriter, body []byte, do func(In) (Out, error)) {
	var in In
	if err := json.Unmarshal(body, &in); err != nil {
		writeError(w, apiError{Code: "SerializationException", Message: err.Error()})
		return
	}
	out, err := do(in)
	if err != nil {
		refusal, ok := err.(apiError) //nolint:errorlint // never wrapped: it is made for the wire
		if !ok {
			refusal = apiError{Code: "InternalFailure", Message: err.Error()}
		}
		writeError(w, refusal)
		return
	}
	writeJSON(w, http.StatusOK, out)
}
