// Command wrapped is a function on aws-lambda-go, the official runtime client: what it says is
// what the Runtime API has to understand.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-lambda-go/lambdaurl"
)

func main() {
	switch os.Getenv("MODE") {
	case "buffered":
		lambda.Start(buffered)
	case "reader":
		lambda.Start(reader)
	case "sigterm":
		lambda.StartWithOptions(lambdaurl.Wrap(handler()), lambda.WithEnableSIGTERM(func() {
			fmt.Println("heard SIGTERM")
			os.Exit(0)
		}))
	default:
		lambda.Start(lambdaurl.Wrap(handler()))
	}
}

// buffered answers with the event itself, as JSON.
func buffered(ctx context.Context, e json.RawMessage) (events.LambdaFunctionURLResponse, error) {
	var r events.LambdaFunctionURLRequest
	if err := json.Unmarshal(e, &r); err != nil {
		return events.LambdaFunctionURLResponse{}, err
	}
	switch r.RawPath {
	case "/error":
		return events.LambdaFunctionURLResponse{}, errors.New("as asked")
	case "/panic":
		panic("as asked")
	case "/base64":
		return events.LambdaFunctionURLResponse{StatusCode: 201, Body: "AP8=", IsBase64Encoded: true}, nil
	case "/big":
		return events.LambdaFunctionURLResponse{StatusCode: 200, Body: strings.Repeat("a", 7<<20)}, nil
	}
	return events.LambdaFunctionURLResponse{
		StatusCode: 202, Body: string(e), Cookies: []string{"a=1", "b=2; HttpOnly"},
		Headers: map[string]string{"x-of": "buffered"},
	}, nil
}

// reader answers with a body that fails where the path says so.
func reader(_ context.Context, r *events.LambdaFunctionURLRequest) (*events.LambdaFunctionURLStreamingResponse, error) {
	var body io.Reader = strings.NewReader("first\n")
	if r.RawPath == "/fail" {
		body = io.MultiReader(body, failing{})
	}
	return &events.LambdaFunctionURLStreamingResponse{StatusCode: 200, Body: body}, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("upstream has gone") }

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/event", func(w http.ResponseWriter, r *http.Request) {
		e, _ := lambdaurl.RequestFromContext(r.Context())
		_ = json.NewEncoder(w).Encode(e)
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})
	mux.HandleFunc("/env", func(w http.ResponseWriter, _ *http.Request) {
		dir, _ := os.Getwd()
		_, _ = io.WriteString(w, "PWD "+dir+"\n"+strings.Join(os.Environ(), "\n")+"\n")
	})
	mux.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strconv.Itoa(os.Getpid()))
	})
	mux.HandleFunc("/deadline", func(w http.ResponseWriter, r *http.Request) {
		deadline, _ := r.Context().Deadline()
		lc, _ := lambdacontext.FromContext(r.Context())
		fmt.Fprintf(w, "%d %s %s", time.Until(deadline).Milliseconds(), lc.AwsRequestID, lc.InvokedFunctionArn)
	})
	mux.HandleFunc("/cookies", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2; HttpOnly")
		w.Header().Set("X-Two", "one, two")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "tea")
	})
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Query().Get("code"))
		w.WriteHeader(code)
	})
	mux.HandleFunc("/log", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Print("one\ntwo\nthree without an end")
		fmt.Fprint(os.Stderr, " and its end\n")
		_, _ = io.WriteString(w, "logged")
	})
	mux.HandleFunc("/first", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data") })
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("as asked") })
	mux.HandleFunc("/gate", gate)
	return mux
}

// gate writes a piece for every byte it reads from the address in the query, until its end: the
// test decides when each piece comes.
func gate(w http.ResponseWriter, r *http.Request) {
	resp, err := http.Get("http://" + r.URL.Query().Get("from"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer resp.Body.Close()
	one := make([]byte, 1)
	for {
		if n, _ := resp.Body.Read(one); n == 0 {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", one); err != nil {
			fmt.Println("write failed:", err)
			return
		}
	}
}
