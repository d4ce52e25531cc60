package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// tlsFiles is TLS of a Config's files, as they are at each connection.
type tlsFiles struct {
	c   Config
	log *slog.Logger

	mu sync.Mutex
	// last is that of files that could be read; problem tells why they cannot be read now.
	last    *tls.Config
	problem string
}

// start reads the files, all of which have to be there.
func (t *tlsFiles) start() error {
	c, err := t.read()
	t.last = c
	return err
}

// config is that of the server.
func (t *tlsFiles) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: t.ofConnection}
}

// ofConnection reads the files again. A certificate whose key is not written yet, say, leaves the
// files before in use.
func (t *tlsFiles) ofConnection(*tls.ClientHelloInfo) (*tls.Config, error) {
	c, err := t.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil && t.problem != "":
		t.log.Info("TLS files can be read again", "certificate", t.c.Certificate)
		fallthrough
	case err == nil:
		t.last, t.problem = c, ""
	case err.Error() != t.problem:
		t.problem = err.Error()
		t.log.Warn("TLS files cannot be read; the last ones stay in use", "error", err)
	}
	return t.last, nil
}

func (t *tlsFiles) read() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(t.c.Certificate, t.c.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s, key %s: %w", t.c.Certificate, t.c.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
	if t.c.ClientCA == "" {
		return c, nil
	}
	authorities, err := os.ReadFile(t.c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("clientCA: %w", err)
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("clientCA %s: there is no certificate in it", t.c.ClientCA)
	}
	// A resumed session shows no certificate: the authority may be another one by then.
	c.SessionTicketsDisabled = true
	return c, nil
}
