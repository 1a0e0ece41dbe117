package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/route"
)

// The parsers here name what would be right in their errors and leave it to the caller to
// show the value.

var errDuration = errors.New("not a duration above zero; write for example 500ms, 30s or 6h")

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, errDuration
	}
	return d, nil
}

// duration reads a time above zero.
func (l *loader) duration(into *time.Duration) func(value) {
	return func(v value) {
		s, ok := l.scalar(v)
		if !ok {
			l.fail(l.valueAt(v), "found %s where a duration belongs; write for example 30s", kind(l.plain(v.node)))
			return
		}
		d, err := parseDuration(s)
		if err != nil {
			l.fail(l.valueAt(v), "%s is %v", show(s), err)
			return
		}
		*into = d
	}
}

var errSize = errors.New("not a size above zero; write a whole number with B, KB, KiB, MB or MiB, for example 32MiB")

// parseSize reads bytes; a number without a unit is bytes.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "BKMi")
	var unit int64
	switch s[len(digits):] {
	case "", "B":
		unit = 1
	case "KB":
		unit = 1000
	case "KiB":
		unit = 1 << 10
	case "MB":
		unit = 1000 * 1000
	case "MiB":
		unit = 1 << 20
	default:
		return 0, errSize
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n <= 0 || n > (1<<40)/unit {
		return 0, errSize
	}
	return n * unit, nil
}

// parseBool is strict: a typo in a switch must not silently mean off.
func parseBool(s string) (bool, error) {
	switch strings.TrimSpace(s) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, errors.New("neither true nor false; write true, false, 1 or 0")
}

func checkEnum(s string, allowed []string) string {
	if slices.Contains(allowed, s) {
		return ""
	}
	text := fmt.Sprintf("%s is not known; %s", show(s), oneOf(allowed))
	if best := nearest(s, allowed); best != "" {
		text += fmt.Sprintf("; did you mean %q?", best)
	}
	return text
}

func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

var errListen = errors.New("not an address to listen on; write host:port, for example 127.0.0.1:8080")

func checkListen(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errListen
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || strings.ContainsFunc(host, unprintable) {
		return errListen
	}
	return nil
}

// loopback tells whether an address can only be reached from this machine. A name other
// than localhost may resolve to anything.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// reaches tells whether a URL leads to a listening address of this machine.
func reaches(base, listen string) bool {
	u, err := url.Parse(base)
	host, port, listenErr := net.SplitHostPort(listen)
	if err != nil || listenErr != nil || port == "0" {
		return false
	}
	upstreamPort := u.Port()
	if upstreamPort == "" {
		upstreamPort = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if upstreamPort != port {
		return false
	}
	ip, err := netip.ParseAddr(host)
	everywhere := host == "" || err == nil && ip.IsUnspecified()
	return strings.EqualFold(u.Hostname(), host) ||
		loopback(net.JoinHostPort(u.Hostname(), port)) && (everywhere || strings.EqualFold(host, "localhost") || strings.EqualFold(u.Hostname(), "localhost"))
}

// parseBaseURL checks an upstream address and takes the slashes off its end.
func parseBaseURL(s string) (string, error) {
	const right = "write for example https://api.openai.com/v1"
	u, err := url.Parse(s)
	switch {
	case err != nil, strings.ContainsFunc(s, unprintable), strings.Contains(s, " "):
		return "", errors.New("not a URL; " + right)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		return "", errors.New("not an absolute http or https URL; " + right)
	case u.User != nil:
		return "", errors.New("a URL with user or password; put the credential into api_keys")
	case u.RawQuery != "", u.ForceQuery:
		return "", errors.New("a URL with a query; leave it out")
	case strings.Contains(s, "#"):
		return "", errors.New("a URL with a fragment; leave it out")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", errors.New("a URL with a port that does not exist; " + right)
		}
	}
	return strings.TrimRight(s, "/"), nil
}

func parseDigest(s string) (digest [32]byte, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(digest) {
		return digest, errors.New("not a SHA-256 digest of 64 hex digits; switchboard key new prints a key and its digest")
	}
	return [32]byte(b), nil
}

// unprintable are characters that forge log lines or header lines.
func unprintable(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }

// checkName is for identities, key ids and model names. Its errors complete "the name …".
func checkName(s string) error { return route.CheckName(s) }
