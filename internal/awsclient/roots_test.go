package awsclient

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tlsServer is a server whose certificate no system trusts, and a bundle with it.
func tlsServer(t *testing.T) (server *httptest.Server, bundle string) {
	t.Helper()
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // some do not trust it
	server.StartTLS()
	t.Cleanup(server.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	bundle = filepath.Join(t.TempDir(), "bundle.pem")
	if err := os.WriteFile(bundle, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, bundle
}

func TestRootsOfAFile(t *testing.T) {
	server, bundle := tlsServer(t)
	pool, err := Roots(env("SSL_CERT_FILE=" + bundle))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Certificate().Verify(x509.VerifyOptions{Roots: pool}); err != nil {
		t.Errorf("Verify with SSL_CERT_FILE = %v, want trusted", err)
	}
	want := x509.NewCertPool()
	want.AddCert(server.Certificate())
	if !pool.Equal(want) {
		t.Error("Roots with SSL_CERT_FILE has more than the file")
	}
}

// Where the one file is not there or is not the one that counts, crypto/x509 decides.
func TestRootsAreTheSystems(t *testing.T) {
	system, err := x509.SystemCertPool()
	if err != nil {
		t.Skip("no roots on this system: ", err)
	}
	for _, pairs := range [][]string{{"SSL_CERT_DIR=/nowhere"}, {"SSL_CERT_FILE=/nowhere/at/all.pem"}} {
		got, err := Roots(env(pairs...))
		if err != nil || !got.Equal(system) {
			t.Errorf("Roots(%q) = %v, want the system's", pairs, err)
		}
	}
	if got, err := Roots(env()); err != nil || got.Equal(x509.NewCertPool()) {
		t.Errorf("Roots() = %v, want some roots", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Roots(env("SSL_CERT_FILE=" + empty)); err != nil || !got.Equal(system) {
		t.Errorf("Roots of a file without certificates = %v, want the system's", err)
	}
}

func TestRootsAreLoadedOnce(t *testing.T) {
	_, bundle := tlsServer(t)
	e := mustFromEnv(t, "SSL_CERT_FILE="+bundle)
	first, err := e.Roots()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(bundle); err != nil {
		t.Fatal(err)
	}
	if second, err := e.Roots(); err != nil || second != first {
		t.Errorf("Roots a second time = %v, want what was loaded", err)
	}
}

func TestBundleOfAWSCalls(t *testing.T) {
	server, bundle := tlsServer(t)
	for _, tt := range []struct {
		name  string
		pairs []string
		want  string // in the error; empty: none
	}{
		{"trusted by AWS_CA_BUNDLE", []string{"AWS_CA_BUNDLE=" + bundle}, ""},
		{"trusted by the system's file", []string{"SSL_CERT_FILE=" + bundle}, ""},
		{"not trusted", nil, "certificate"},
		{"no such file", []string{"AWS_CA_BUNDLE=/nowhere.pem"}, "trusted roots: AWS_CA_BUNDLE: "},
		{"no certificate in it", []string{"AWS_CA_BUNDLE=" + os.Args[0]}, "trusted roots: AWS_CA_BUNDLE: no certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := mustFromEnv(t, tt.pairs...)
			response, err := e.client.Get(server.URL)
			if err == nil {
				response.Body.Close()
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Get = %v, want %q", err, tt.want)
			}
		})
	}
	// AWS_CA_BUNDLE is for AWS calls alone.
	e := mustFromEnv(t, "AWS_CA_BUNDLE="+bundle)
	if pool, err := e.Roots(); err == nil {
		_, err := server.Certificate().Verify(x509.VerifyOptions{Roots: pool})
		if !errors.As(err, new(x509.UnknownAuthorityError)) {
			t.Errorf("Verify with Roots() = %v, want the bundle not in it", err)
		}
	}
}

// A call in the clear asks for no roots: a local endpoint need not wait for them.
func TestNoRootsWithoutTLS(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	e := mustFromEnv(t, "AWS_CA_BUNDLE=/nowhere.pem")
	response, err := e.client.Get(server.URL)
	if err != nil {
		t.Fatalf("Get = %v, want an answer", err)
	}
	response.Body.Close()
}

// Compare with BenchmarkRootsWithDirectory: the ratio is what the one file saves.
func BenchmarkRoots(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Roots(func(string) string { return "" }); err != nil {
			b.Fatal(err)
		}
	}
}

// crypto/x509 loads the system's roots once per process, so this reads the directory the way
// it does.
func BenchmarkRootsWithDirectory(b *testing.B) {
	const directory = "/etc/ssl/certs"
	b.ReportAllocs()
	for b.Loop() {
		pool, err := Roots(func(string) string { return "" })
		if err != nil {
			b.Fatal(err)
		}
		entries, err := os.ReadDir(directory)
		if err != nil {
			b.Skip(err)
		}
		for _, entry := range entries {
			path := filepath.Join(directory, entry.Name())
			if target, err := os.Readlink(path); err == nil && !strings.Contains(target, "/") {
				continue
			}
			if text, err := os.ReadFile(path); err == nil {
				pool.AppendCertsFromPEM(text)
			}
		}
	}
}
