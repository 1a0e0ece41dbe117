package main

import (
	"fmt"
	"slices"
	"strings"
)

// describe says what stands where, and how to use it.
func (u *up) describe(s *stack, running []string, route, admin string) {
	var b strings.Builder
	fmt.Fprintf(&b, "\nAWS       %s\n", u.endpoint)
	for _, t := range s.tables {
		fmt.Fprintf(&b, "  table   %s\n", t.name)
	}
	for _, name := range s.buckets {
		fmt.Fprintf(&b, "  bucket  %s\n", name)
	}
	for _, one := range s.streams {
		fmt.Fprintf(&b, "  stream  %s -> s3://%s/%s\n", one.name, one.bucket, one.prefix)
	}
	if slices.Contains(running, "RouteFunction") {
		fmt.Fprintf(&b, "Route     %s\n", route)
	}
	if slices.Contains(running, "AdminFunction") {
		fmt.Fprintf(&b, "Admin     %s/admin/\n", admin)
	}
	key, model := "$CLIENT_KEY", "gpt-5"
	if u.config == "" {
		key = clientKey
		fmt.Fprintf(&b, "Keys      client %s, admin %s (well known: for this machine only)\n", clientKey, or(u.process.getenv("SWITCHBOARD_ADMIN_KEY"), adminKey))
	}
	if u.demo {
		model = "smart"
	}
	fmt.Fprintf(&b, `
A streamed answer:
  curl -N %[1]s/v1/chat/completions -H 'Authorization: Bearer %[2]s' -H 'X-Session-Id: s1' \
    -H 'Content-Type: application/json' -d '{"model":"%[3]s","stream":true,"messages":[{"role":"user","content":"hello"}]}'
The SDKs:
  export OPENAI_BASE_URL=%[1]s/v1 OPENAI_API_KEY=%[2]s
  export ANTHROPIC_BASE_URL=%[1]s ANTHROPIC_API_KEY=%[2]s
`, route, key, model)
	if u.process.getenv("AWS_ENDPOINT_URL") == "" {
		fmt.Fprintf(&b, "Events reach the bucket after the stream's interval, or now:\n  curl -X POST %s/_switchboard/flush\n", u.endpoint)
	}
	b.WriteString("Ctrl-C ends all of it.\n")
	fmt.Fprint(u.process.stdout, b.String())
}
