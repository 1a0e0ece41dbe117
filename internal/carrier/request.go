package carrier

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
)

// request makes the request that a socket would have given. Its body lies in the event's
// buffer: it is to be closed before that is used again.
func (e *event) request(ctx context.Context) *http.Request {
	path, uri := e.gatherURI()
	cookie := e.gatherCookies()
	all := string(e.text)
	text := func(s span) string { return all[s.from:s.to] }

	header := make(http.Header, len(e.headers)+1)
	values := make([]string, len(e.headers))
	host := text(e.host)
	for i, f := range e.headers {
		values[i] = text(f.value)
		switch name := text(f.name); name {
		case "":
		case "Host": // as net/http does
			host = values[i]
		default:
			header[name] = values[i : i+1 : i+1]
		}
	}
	if len(e.cookies) > 0 {
		header["Cookie"] = []string{text(cookie)} // in place of a header that says the same
	}
	r := &http.Request{
		Method: text(e.method), URL: target(text(path), text(e.rawQuery)), RequestURI: text(uri), Host: host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if ip := text(e.sourceIP); ip != "" {
		r.RemoteAddr = net.JoinHostPort(ip, "0") // the port is not known
	}
	r.Body, r.ContentLength = e.open()
	return r.WithContext(ctx)
}

// gatherURI appends path and query to the texts, as they stand in a request line.
func (e *event) gatherURI() (path, uri span) {
	given := e.rawPath
	if given.from == given.to {
		given = e.path
	}
	from := len(e.text)
	if given.from == given.to || e.text[given.from] != '/' {
		e.text = append(e.text, '/')
	}
	e.text = append(e.text, e.text[given.from:given.to]...)
	path = span{from, len(e.text)}
	if e.rawQuery.from != e.rawQuery.to {
		e.text = append(e.text, '?')
		e.text = append(e.text, e.text[e.rawQuery.from:e.rawQuery.to]...)
	}
	return path, span{from, len(e.text)}
}

// gatherCookies appends the Cookie header to the texts.
func (e *event) gatherCookies() span {
	from := len(e.text)
	for i, one := range e.cookies {
		if i > 0 {
			e.text = append(e.text, "; "...)
		}
		e.text = append(e.text, e.text[one.from:one.to]...)
	}
	return span{from, len(e.text)}
}

// target makes the URL of a request line. A path that is not escaped as a path must be,
// which a socket's client would have been refused for, is taken literally.
func target(path, query string) *url.URL {
	u := &url.URL{Path: path, RawQuery: query}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return u
	}
	u.Path = plain
	if u.EscapedPath() != path {
		u.RawPath = path
	}
	return u
}

// open returns the request's body and its length, -1 when the event's base64 is broken:
// the handler then finds out when it reads, and answers in its own words.
func (e *event) open() (io.ReadCloser, int64) {
	text := e.body
	if e.base64 {
		var err error
		if text, err = decodeBase64(text); err != nil {
			return &broken{err}, -1
		}
	}
	if len(text) == 0 {
		return http.NoBody, 0
	}
	return &body{rest: text}, int64(len(text))
}
