package awsclient

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// bundles are where Linux distributions keep all roots in one file, in the order of
// crypto/x509.
func bundles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt", // Amazon Linux, and so Lambda
		"/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ssl/cert.pem",
	}
}

// Roots loads the trusted roots of the system, from the one file that has them all:
// crypto/x509 reads each of them a second and third time from the directory beside it, which
// takes several times as long. SSL_CERT_FILE names another file. With SSL_CERT_DIR set, and
// where there is no such file, it leaves the work to crypto/x509.
func Roots(getenv func(string) string) (*x509.CertPool, error) {
	if getenv("SSL_CERT_DIR") != "" {
		return x509.SystemCertPool()
	}
	files := bundles()
	if file := getenv("SSL_CERT_FILE"); file != "" {
		files = []string{file}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pool := x509.NewCertPool()
		if pool.AppendCertsFromPEM(text) {
			return pool, nil
		}
		break // as crypto/x509: the first file there is
	}
	return x509.SystemCertPool()
}

// awsRoots are the roots that AWS calls trust: the system's, or only those of AWS_CA_BUNDLE.
func (e *Env) awsRoots(bundle string) func() (*x509.CertPool, error) {
	if bundle == "" {
		return e.Roots
	}
	return func() (*x509.CertPool, error) {
		text, err := os.ReadFile(bundle)
		if err != nil {
			return nil, fmt.Errorf("AWS_CA_BUNDLE: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, errors.New("AWS_CA_BUNDLE: no certificate in " + strings.TrimSpace(bundle))
		}
		return pool, nil
	}
}
