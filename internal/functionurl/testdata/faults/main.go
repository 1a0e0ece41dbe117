// Command faults is a Lambda runtime that does what the request's body says, line by line, also
// what no runtime should:
//
//	open KIND          begin a response; KIND is its content type, or "-", or "raw" for the
//	                   streaming mode without a prelude's content type
//	write QUOTED       send a chunk (a Go string)
//	flood              send chunks until that fails
//	trailer TYPE BODY  end the response with error trailers
//	close              end the response well and log the status of the answer
//	abort              break the connection of the response off
//	error QUOTED       report an error
//	post ID QUOTED     a whole response to ID ("-" is this one), and log the status of the answer
//	wait ADDRESS       connect there and wait until the other side closes
//	background ADDRESS connect there, go on, and log what comes from the other side
//	hang | exit N | spawn | log TEXT
//
// MODE in the environment says what goes wrong at the start.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const base = "/2018-06-01/runtime/"

func main() {
	api := os.Getenv("AWS_LAMBDA_RUNTIME_API")
	switch os.Getenv("MODE") {
	case "init-exit":
		fmt.Println("cannot start")
		os.Exit(7)
	case "init-error":
		post(api, "init/error", `{"errorType":"Faults.Init","errorMessage":"as asked"}`)
		hang()
	case "init-hang":
		hang()
	}
	n, _ := strconv.Atoi(os.Getenv("AWS_LAMBDA_MAX_CONCURRENCY"))
	var loops sync.WaitGroup
	for range max(n, 1) {
		loops.Go(func() {
			for {
				invoke(api)
			}
		})
	}
	loops.Wait()
}

func invoke(api string) {
	resp, err := http.Get("http://" + api + base + "invocation/next")
	check(err)
	var event struct {
		Body            string
		IsBase64Encoded bool
	}
	check(json.NewDecoder(resp.Body).Decode(&event))
	resp.Body.Close()
	if event.IsBase64Encoded {
		text, err := base64.StdEncoding.DecodeString(event.Body)
		check(err)
		event.Body = string(text)
	}
	s := session{api: api, id: resp.Header.Get("Lambda-Runtime-Aws-Request-Id")}
	for line := range strings.Lines(event.Body) {
		if line = strings.TrimSpace(line); line != "" {
			s.do(strings.SplitN(line, " ", 2))
		}
	}
}

type session struct {
	api, id string
	conn    net.Conn
}

func (s *session) do(step []string) {
	rest := ""
	if len(step) > 1 {
		rest = step[1]
	}
	switch step[0] {
	case "open":
		s.open(rest)
	case "write":
		s.chunk(unquote(rest))
	case "flood":
		for s.chunk(strings.Repeat("flood ", 1000)) == nil {
		}
		fmt.Println("write failed")
	case "trailer":
		kind, body, _ := strings.Cut(rest, " ")
		fmt.Fprintf(s.conn, "0\r\nLambda-Runtime-Function-Error-Type: %s\r\nLambda-Runtime-Function-Error-Body: %s\r\n\r\n", kind, body)
		s.answer()
	case "close":
		fmt.Fprint(s.conn, "0\r\n\r\n")
		s.answer()
	case "abort":
		s.conn.Close()
	case "error":
		fmt.Println("error:", post(s.api, "invocation/"+s.id+"/error", unquote(rest)))
	case "post":
		id, text, _ := strings.Cut(rest, " ")
		if id == "-" {
			id = s.id
		}
		fmt.Println("post:", post(s.api, "invocation/"+id+"/response", unquote(text)))
	case "wait":
		conn, err := net.Dial("tcp", rest)
		check(err)
		io.Copy(io.Discard, conn)
	case "background":
		conn, err := net.Dial("tcp", rest)
		check(err)
		go func() {
			line, _ := bufio.NewReader(conn).ReadString('\n')
			fmt.Print(line)
		}()
	case "hang":
		hang()
	case "exit":
		n, _ := strconv.Atoi(rest)
		os.Exit(n)
	case "spawn":
		child := exec.Command("/bin/sh", "-c", "trap '' TERM; while :; do sleep 1000; done")
		child.Stdout = os.Stdout
		check(child.Start())
		fmt.Println("spawned", child.Process.Pid, "end")
	case "log":
		fmt.Println(rest)
	default:
		panic("no such step: " + step[0])
	}
}

func (s *session) open(kind string) {
	conn, err := net.Dial("tcp", s.api)
	check(err)
	s.conn = conn
	mode := "Lambda-Runtime-Function-Response-Mode: streaming\r\n"
	switch kind {
	case "-":
		kind = "application/vnd.awslambda.http-integration-response"
	case "raw":
		kind = "text/raw"
	default:
		mode = ""
	}
	fmt.Fprintf(conn, "POST %sinvocation/%s/response HTTP/1.1\r\nHost: x\r\n%sContent-Type: %s\r\nTransfer-Encoding: chunked\r\n"+
		"Trailer: Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body\r\n\r\n", base, s.id, mode, kind)
}

func (s *session) chunk(text string) error {
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintf(s.conn, "%x\r\n%s\r\n", len(text), text)
	return err
}

func (s *session) answer() {
	resp, err := http.ReadResponse(bufio.NewReader(s.conn), nil)
	if err != nil {
		fmt.Println("answer:", err)
		return
	}
	body, _ := io.ReadAll(resp.Body)
	fmt.Println("answer:", resp.StatusCode, string(body))
	s.conn.Close()
}

func post(api, path, body string) string {
	resp, err := http.Post("http://"+api+base+path, "application/json", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.Status + " " + string(text)
}

func hang() { time.Sleep(time.Hour) }

func unquote(s string) string {
	text, err := strconv.Unquote(s)
	check(err)
	return text
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
