package proxy

import (
	"bytes"
	"encoding/json"
	"errors"

	"switchboard/internal/provider"
	"switchboard/internal/sse"
	"switchboard/internal/wire"
)

// inBand is an error event that came before any output: a failure like any other, whose
// body is what the same error would be as an answer.
func (a *Answer) inBand(data []byte) *Failure {
	f := &Failure{Header: a.response.Header, Cause: errors.New("error event before any output")}
	f.Failure, f.Status = a.observer.Failure()
	body := errorAnswer(a.surface, data, f.Status)
	f.JSON = body != nil
	f.Body = provider.Redact(body, a.keys())
	return f
}

// noAnswer is a failure that a provider reports with status 200 in an answer that is not
// streamed: an error object where the answer belongs. nil: an answer.
func (a *Answer) noAnswer() *Failure {
	body := bytes.TrimSpace(a.held)
	head := body[:min(len(body), 64)]
	if !bytes.HasPrefix(head, []byte(`{"error"`)) && !bytes.HasPrefix(head, []byte(`{"type":"error"`)) {
		return nil // an answer may have an error member too, further on or null
	}
	if a.observer.Read(sse.Event{Data: body})&provider.Error == 0 {
		return nil
	}
	return a.inBand(body)
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
