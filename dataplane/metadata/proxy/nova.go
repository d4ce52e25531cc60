package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httputil"
	"os"
	"time"
)

// NovaConfig is where Nova's metadata API is, by the names that neutron's agent has for
// it (neutron/conf/agent/metadata/config.py).
type NovaConfig struct {
	// Hosts are nova_metadata_host, addresses or names, without ports. They are asked
	// in turn, and the next one where one takes no connection.
	Hosts []string
	// Port is nova_metadata_port: 8775.
	Port int
	// HTTPS is nova_metadata_protocol, and Insecure nova_metadata_insecure: the
	// certificate is not checked.
	HTTPS, Insecure bool
	// CA is the file auth_ca_cert; empty: the system's.
	CA string
	// Certificate and Key are the files nova_client_cert and nova_client_priv_key, both
	// or neither. They are read anew for each connection.
	Certificate, Key string
	// Secret is the file with metadata_proxy_shared_secret. It is read anew when it has
	// changed. Empty: there is none, as by default in Nova and neutron's agent.
	Secret string
	// ConnectTimeout is 5 s, and Timeout 60 s: Nova may ask others, which takes seconds.
	ConnectTimeout, Timeout time.Duration
	Log                     *slog.Logger
}

// Nova passes requests on to Nova's metadata API.
type Nova struct {
	*upstream
	https  bool
	secret *secretFile
}

// NewNova reads the files that the configuration names. An error names the field.
func NewNova(cfg NovaConfig) (*Nova, error) {
	if cfg.Port == 0 {
		cfg.Port = 8775
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if len(cfg.Hosts) == 0 {
		return nil, errors.New("nova_metadata_host: no host of Nova's metadata API")
	}
	secret, err := openSecret(cfg.Secret, cfg.Log)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		cfg.Log.Warn("no shared secret: anyone who reaches Nova's metadata API can read any VM's metadata; set metadata.nova.secretFile, and metadata_proxy_shared_secret in Nova")
	}
	n := &Nova{https: cfg.HTTPS, secret: secret}
	up := upstreamConfig{hosts: cfg.addresses(), connect: cfg.ConnectTimeout, timeout: cfg.Timeout, log: cfg.Log}
	if cfg.HTTPS {
		if up.tls, err = cfg.tls(); err != nil {
			return nil, err
		}
	}
	n.upstream = newUpstream(up, n.rewrite)
	return n, nil
}

func (c NovaConfig) addresses() (out []string) {
	for _, h := range c.Hosts {
		out = append(out, net.JoinHostPort(h, fmt.Sprint(c.Port)))
	}
	return out
}

func (c NovaConfig) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure} //nolint:gosec // an operator's explicit choice, as with neutron's agent
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("auth_ca_cert: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("auth_ca_cert: no certificate in %s", c.CA)
		}
	}
	if (c.Certificate == "") != (c.Key == "") {
		return nil, errors.New("nova_client_cert and nova_client_priv_key need each other")
	}
	if c.Certificate != "" {
		if _, err := tls.LoadX509KeyPair(c.Certificate, c.Key); err != nil {
			return nil, fmt.Errorf("nova_client_cert: %w", err)
		}
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
			return &pair, err
		}
	}
	return t, nil
}

// rewrite makes a guest's request Nova's: signed, and with no word of the guest on who
// it is (nova/api/metadata/handler.py).
func (n *Nova) rewrite(p *httputil.ProxyRequest, id Identity) {
	p.Out.URL.Scheme = "http"
	if n.https {
		p.Out.URL.Scheme = "https"
	}
	h := p.Out.Header
	h.Set(headerForwardedFor, id.Address.String())
	h.Set(headerInstance, id.Instance)
	h.Set(headerProject, id.Project)
	h.Set(headerSignature, Sign(n.secret.value(), id.Instance))
}

// Sign is the signature of an instance's id: HMAC-SHA256 in lower-case hexadecimal.
func Sign(secret []byte, instance string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(instance))
	return hex.EncodeToString(mac.Sum(nil))
}
