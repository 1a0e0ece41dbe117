package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/sse"
	"switchboard/internal/wire"
)

// inBand is an error event that came before any output: a failure like any other, whose
// body is what the same error would be as an answer.
func (a *Answer) inBand(data []byte) *Failure {
	f := &Failure{Header: a.safeHeader(), Cause: errors.New("error event before any output")}
	f.Failure, f.Status = a.observer.Failure()
	body := errorAnswer(a.surface, data, f.Status)
	f.JSON = body != nil
	f.Body, f.Translated = provider.Redact(a.translation.body(f.Status, body), a.keys()), a.Translated()
	return f
}

// noAnswer is a failure that a provider reports with status 200 in an answer that is not
// streamed: an error object where the answer belongs, a response that failed, or something
// that is no JSON object at all, as from a proxy on the way. nil: an answer.
func (a *Answer) noAnswer() *Failure {
	body := bytes.TrimSpace(a.held)
	if !isJSONObject(body) {
		return &Failure{
			Failure: provider.Failure{Class: health.ServerError}, Status: a.response.StatusCode,
			Cause: errors.New("a success without a JSON object in it"),
		}
	}
	event := body
	switch head := body[:min(len(body), 64)]; {
	case bytes.HasPrefix(head, []byte(`{"error"`)), bytes.HasPrefix(head, []byte(`{"type":"error"`)):
	case a.surface == wire.Responses && responseFailed(body):
		event = slices.Concat([]byte(`{"type":"response.failed","response":`), body, []byte("}"))
	default:
		return nil // an answer may have an error member too, further on or null
	}
	if a.observer.Read(sse.Event{Data: event})&provider.Error == 0 {
		return nil
	}
	return a.inBand(event)
}

// responseFailed tells whether a response object says that it failed.
func responseFailed(body []byte) (failed bool) {
	if !bytes.Contains(body, []byte(`"failed"`)) {
		return false
	}
	wire.Members(body, wire.Span{Start: 0, End: len(body)}, func(key, value wire.Span) bool {
		if !wire.Is(body, key, "status") {
			return true
		}
		failed = wire.Is(body, value, "failed")
		return false
	})
	return failed
}

// safeHeader is what of the answer's header the client may see.
func (a *Answer) safeHeader() http.Header {
	header := http.Header{}
	CopyHeaders(header, a.response.Header, a.key)
	return header
}

// errorAnswer turns an error event's data into the body of an error answer on the surface;
// nil when it says nothing. Events wrap the error object in a chunk or a response, or spread
// its members over the event, which clients do not look for in an answer.
func errorAnswer(surface wire.Surface, data []byte, status int) []byte {
	var event struct {
		Error    json.RawMessage
		Response struct{ Error json.RawMessage }
		Message  *string
		Code     json.RawMessage
		Param    json.RawMessage
	}
	if json.Unmarshal(data, &event) != nil {
		return nil
	}
	object := event.Error
	if !isJSONObject(object) {
		object = event.Response.Error
	}
	if !isJSONObject(object) {
		if event.Message == nil {
			return nil
		}
		kind := "api_error"
		if status/100 == 4 {
			kind = "invalid_request_error"
		}
		var err error
		object, err = json.Marshal(struct {
			Message string          `json:"message"`
			Type    string          `json:"type"`
			Code    json.RawMessage `json:"code"`
			Param   json.RawMessage `json:"param"`
		}{*event.Message, kind, event.Code, event.Param})
		if err != nil {
			return nil
		}
	}
	begin := `{"error":`
	if surface == wire.Messages {
		begin = `{"type":"error","error":`
	}
	return append(append([]byte(begin), bytes.TrimSpace(object)...), '}')
}
