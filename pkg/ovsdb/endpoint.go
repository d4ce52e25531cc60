package ovsdb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// endpoint is one parsed entry of Config.Endpoints.
type endpoint struct {
	text    string // as configured
	scheme  string // tcp, ssl or unix
	address string // host:port, or the socket's path
}

// parseEndpoints parses a comma-separated list of OVSDB active connections
// (ovsdb(7), "Active"). A host may be a name, an IPv4 address or an IPv6 address
// in brackets.
func parseEndpoints(list string) ([]endpoint, error) {
	var out []endpoint
	for _, text := range strings.Split(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		e, err := parseEndpoint(text)
		if err != nil {
			return nil, fmt.Errorf("database endpoint %q: %w", text, err)
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		return nil, errors.New("no database endpoint: want for instance tcp:192.0.2.1:6642")
	}
	return out, nil
}

func parseEndpoint(text string) (endpoint, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	e := endpoint{text: text, scheme: scheme, address: rest}
	switch scheme {
	case "unix":
		if rest == "" {
			return e, errors.New("the socket's path is missing")
		}
		return e, nil
	case "tcp", "ssl":
	default:
		return e, errors.New("want tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH")
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return e, fmt.Errorf("want %s:HOST:PORT, an IPv6 address in brackets: %w", scheme, err)
	}
	if host == "" {
		return e, errors.New("the host is missing")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return e, fmt.Errorf("port %q: want 1 to 65535", port)
	}
	return e, nil
}

// dial connects, TLS handshake included, within ctx.
func (e endpoint) dial(ctx context.Context, files TLSFiles) (net.Conn, error) {
	network := "tcp"
	if e.scheme == "unix" {
		network = "unix"
	}
	var dialer net.Dialer
	plain, err := dialer.DialContext(ctx, network, e.address)
	if err != nil || e.scheme != "ssl" {
		return plain, err
	}
	config, err := files.load()
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	secure := tls.Client(plain, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS: %w", err), plain.Close())
	}
	return secure, nil
}

// Check tells whether the files can be read, and belong together.
func (f TLSFiles) Check() error {
	_, err := f.load()
	return err
}

// load reads the files. It happens at every connect, so that a renewed
// certificate needs no restart.
func (f TLSFiles) load() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("CA certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA certificate: no PEM certificate in %s", f.CA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		MinVersion:   tls.VersionTLS12,
		// Names are not checked (see TLSFiles), the chain is: below.
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies the chain
		VerifyConnection: func(state tls.ConnectionState) error {
			return verifyChain(state.PeerCertificates, roots)
		},
	}, nil
}

func verifyChain(certs []*x509.Certificate, roots *x509.CertPool) error {
	if len(certs) == 0 {
		return errors.New("the server sent no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, c := range certs[1:] {
		intermediates.AddCert(c)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		// ovs-pki's certificates name no usage.
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err
}
