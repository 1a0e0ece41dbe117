package functionurl

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const account = "000000000000"

// newID is a random UUID, as request ids are.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := make([]byte, 0, 36)
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			s = append(s, '-')
		}
		s = hex.AppendEncode(s, part)
	}
	return string(s)
}

// traceOf is the request's trace, or a new one that is not sampled.
func traceOf(r *http.Request, id string, now time.Time) string {
	if given := r.Header.Get("X-Amzn-Trace-Id"); given != "" {
		return given
	}
	plain := strings.ReplaceAll(id, "-", "")
	return "Root=1-" + strconv.FormatInt(now.Unix(), 16) + "-" + plain[:24] + ";Sampled=0"
}

// event is one Function URL event in the making (payload format 2.0).
type event struct {
	request *http.Request
	body    []byte
	base64  bool // also for text
	domain  string
	id      string
	trace   string
	now     time.Time
}

// append appends the event's JSON. It is written by hand because the body may have megabytes.
func (v event) append(dst []byte) []byte {
	r := v.request
	path, query := r.URL.EscapedPath(), r.URL.RawQuery
	dst = append(dst, `{"version":"2.0","routeKey":"$default","rawPath":`...)
	dst = appendQuoted(dst, or(path, "/"))
	dst = appendQuoted(append(dst, `,"rawQueryString":`...), query)
	dst = appendCookies(dst, r.Header["Cookie"])
	dst = v.appendHeaders(dst)
	dst = appendQuery(dst, query)
	dst = v.appendContext(dst)
	text := !v.base64 && isText(r.Header) && utf8.Valid(v.body)
	switch {
	case len(v.body) == 0:
		return append(dst, `,"isBase64Encoded":false}`...)
	case text:
		dst = appendText(append(dst, `,"body":`...), v.body)
		return append(dst, `,"isBase64Encoded":false}`...)
	}
	dst = base64.StdEncoding.AppendEncode(append(dst, `,"body":"`...), v.body)
	return append(dst, `","isBase64Encoded":true}`...)
}

// isText says whether a body goes into the event as it is. AWS does not document the list; this
// is what was seen: text, JSON, XML and JavaScript. A form, or no type at all, is binary.
func isText(h http.Header) bool {
	if h.Get("Content-Encoding") != "" {
		return false
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return false
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

func appendCookies(dst []byte, lines []string) []byte {
	separator := `,"cookies":[`
	for _, line := range lines {
		for cookie := range strings.SplitSeq(line, ";") {
			if cookie = strings.TrimSpace(cookie); cookie != "" {
				dst = appendQuoted(append(dst, separator...), cookie)
				separator = ","
			}
		}
	}
	if separator == "," {
		dst = append(dst, ']')
	}
	return dst
}

// appendHeaders writes lower-case names and comma-joined values, and those that the front adds.
func (v event) appendHeaders(dst []byte) []byte {
	r := v.request
	dst = append(dst, `,"headers":{"host":`...)
	dst = appendQuoted(dst, v.domain)
	field := func(name, value string) {
		dst = append(appendQuoted(append(dst, ','), name), ':')
		dst = appendQuoted(dst, value)
	}
	scheme, port := "http", "80"
	if r.TLS != nil {
		scheme, port = "https", "443"
	}
	if _, given, err := net.SplitHostPort(r.Host); err == nil && given != "" {
		port = given
	}
	field("x-amzn-trace-id", v.trace)
	field("x-forwarded-for", strings.Join(append(slices.Clone(r.Header["X-Forwarded-For"]), sourceIP(r)), ", "))
	field("x-forwarded-port", port)
	field("x-forwarded-proto", scheme)
	if len(v.body) > 0 {
		field("content-length", strconv.Itoa(len(v.body)))
	}
	for name, values := range r.Header {
		switch name {
		case "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
			"Transfer-Encoding", "Upgrade", "X-Amzn-Trace-Id", "X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Proto":
			continue // about the connection to the front, or written above
		case "Cookie":
			field("cookie", strings.Join(values, "; "))
		default:
			field(strings.ToLower(name), strings.Join(values, ","))
		}
	}
	return append(dst, '}')
}

// appendQuery writes decoded parameters, the values of a repeated one comma-joined. A pair that
// cannot be decoded is taken as it is written.
func appendQuery(dst []byte, query string) []byte {
	if query == "" {
		return dst
	}
	var names []string
	values := map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, value = unescape(name), unescape(value)
		if before, repeated := values[name]; repeated {
			value = before + "," + value
		} else {
			names = append(names, name)
		}
		values[name] = value
	}
	separator := `,"queryStringParameters":{`
	for _, name := range names {
		dst = append(appendQuoted(append(dst, separator...), name), ':')
		dst = appendQuoted(dst, values[name])
		separator = ","
	}
	if separator == "," {
		dst = append(dst, '}')
	}
	return dst
}

func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

func (v event) appendContext(dst []byte) []byte {
	r := v.request
	prefix, _, _ := strings.Cut(v.domain, ".")
	field := func(name, value string) {
		dst = appendQuoted(append(append(append(dst, ',', '"'), name...), '"', ':'), value)
	}
	dst = append(dst, `,"requestContext":{"accountId":"anonymous"`...)
	field("apiId", prefix)
	field("domainName", v.domain)
	field("domainPrefix", prefix)
	dst = append(dst, `,"http":{"method":`...)
	dst = appendQuoted(dst, r.Method)
	field("path", or(r.URL.Path, "/"))
	field("protocol", r.Proto)
	field("sourceIp", sourceIP(r))
	field("userAgent", r.UserAgent())
	dst = append(dst, '}')
	field("requestId", v.id)
	field("routeKey", "$default")
	field("stage", "$default")
	field("time", v.now.UTC().Format("02/Jan/2006:15:04:05 -0700"))
	dst = strconv.AppendInt(append(dst, `,"timeEpoch":`...), v.now.UnixMilli(), 10)
	return append(dst, '}')
}

func sourceIP(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
