package emulator

import (
	"regexp"
	"testing"
	"time"
)

func TestExpandPrefix(t *testing.T) {
	at := time.Date(2026, 2, 28, 23, 5, 7, 123456789, time.FixedZone("west", -7*3600)) // 06:05:07 of March 1 in UTC
	for _, tt := range []struct{ prefix, want string }{
		{"", "2026/03/01/06/"},
		{"events/", "events/2026/03/01/06/"},
		{"events", "events2026/03/01/06/"},
		{"events/dt=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/", "events/dt=2026-03-01/hour=06/"},
		{"!{timestamp:yyyy/MM/dd/HH/}x-", "2026/03/01/06/x-"},
		{"!{timestamp:'year='yyyy'/month='MM/}", "year=2026/month=03/"},
		{"!{timestamp:yy.M.d.H.h.a.m.s.SSS.D}/", "26.3.1.6.6.AM.5.7.123.60/"},
		{"!{timestamp:EEE, EEEE MMM MMMM}/", "Sun, Sunday Mar March/"},
		{"!{timestamp:HH''mm}", "06'05"},
		{"!{timestamp:uuuu}!{timestamp:X}", "2026Z"},
		{"e-!{firehose:error-output-type}/", "e-processing-failed/2026/03/01/06/"},
		{"a$b!c{d}", "a$b!c{d}2026/03/01/06/"},
	} {
		got, err := expandPrefix(tt.prefix, at, "processing-failed")
		if err != nil || got != tt.want {
			t.Errorf("expandPrefix(%q) = %q, %v, want %q", tt.prefix, got, err, tt.want)
		}
	}
	for _, prefix := range []string{"!{timestamp:yyyy", "!{timestamp}", "!{other:x}", "!{firehose:what}", "!{timestamp:YYYY}", "!{timestamp:yyyy-QQ}", "!{partitionKeyFromQuery:x}/"} {
		if got, err := expandPrefix(prefix, at, ""); err == nil {
			t.Errorf("expandPrefix(%q) = %q, want an error", prefix, got)
		}
	}
}

func TestExpandPrefixRandomString(t *testing.T) {
	random := regexp.MustCompile(`^([A-Z0-9]{11})/([A-Z0-9]{11})/2026/$`)
	got, err := expandPrefix("!{firehose:random-string}/!{firehose:random-string}/!{timestamp:yyyy}/", time.Unix(1.78e9, 0), "")
	parts := random.FindStringSubmatch(got)
	if err != nil || parts == nil || parts[1] == parts[2] {
		t.Errorf("expandPrefix = %q, %v, want two different random strings", got, err)
	}
}

func TestCheckPrefixes(t *testing.T) {
	const errors = "errors/!{firehose:error-output-type}/"
	for _, tt := range []struct {
		prefix, errorPrefix string
		ok                  bool
	}{
		{"", "", true},
		{"events/", "", true},
		{"events/", "errors/", true},
		{"dt=!{timestamp:yyyy-MM-dd}/", errors, true},
		{"dt=!{timestamp:yyyy-MM-dd}/", "errors/", true},
		{"dt=!{timestamp:yyyy-MM-dd}/", "", false},
		{"dt=!{timestamp:yyyy-MM-dd}/", "errors/!{timestamp:yyyy}/", false},
		{"!{firehose:error-output-type}/", errors, false},
		{"!{timestamp:QQ}/", errors, false},
		{"", "!{firehose:error-output-type}/!{timestamp:QQ}", false},
	} {
		if err := checkPrefixes(tt.prefix, tt.errorPrefix); (err == nil) != tt.ok {
			t.Errorf("checkPrefixes(%q, %q) = %v, want ok %v", tt.prefix, tt.errorPrefix, err, tt.ok)
		}
	}
}
