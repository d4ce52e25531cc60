package proxy

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync/atomic"
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
	// changed.
	Secret string
	// ConnectTimeout is 5 s, and Timeout 60 s: Nova may ask others, which takes seconds.
	ConnectTimeout, Timeout time.Duration
	Log                     *slog.Logger
}

// Nova passes requests on to Nova's metadata API.
type Nova struct {
	cfg    NovaConfig
	secret *secretFile
	proxy  *httputil.ReverseProxy
	next   atomic.Uint64

	transport *http.Transport
}

// NewNova reads the files that the configuration names. An error names the field.
func NewNova(cfg NovaConfig) (*Nova, error) {
	if cfg.Port == 0 {
		cfg.Port = 8775
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 60 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if len(cfg.Hosts) == 0 {
		return nil, errors.New("no host of Nova's metadata API")
	}
	secret, err := openSecret(cfg.Secret, cfg.Log)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: cfg.ConnectTimeout}).DialContext,
		TLSHandshakeTimeout: cfg.ConnectTimeout,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
		// What Nova sends compressed goes to the guest as it is.
		DisableCompression: true,
	}
	if cfg.HTTPS {
		if transport.TLSClientConfig, err = cfg.tls(); err != nil {
			return nil, err
		}
	}
	n := &Nova{cfg: cfg, secret: secret, transport: transport}
	n.proxy = &httputil.ReverseProxy{
		Transport: &inTurn{transport: transport, hosts: cfg.addresses(), next: &n.next}, Rewrite: n.rewrite, ErrorHandler: fail,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	return n, nil
}

func (c NovaConfig) addresses() (out []string) {
	for _, h := range c.Hosts {
		out = append(out, net.JoinHostPort(h, fmt.Sprint(c.Port)))
	}
	return out
}

func (c NovaConfig) tls() (*tls.Config, error) {
	t := &tls.Config{InsecureSkipVerify: c.Insecure} //nolint:gosec // an operator's explicit choice, as with neutron's agent
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

// close ends idle connections.
func (n *Nova) close() { n.transport.CloseIdleConnections() }

// asking is what a request carries to rewrite and fail.
type asking struct {
	id      Identity
	outcome Outcome
}

type askingKey struct{}

// ServeMetadata implements Backend.
func (n *Nova) ServeMetadata(w http.ResponseWriter, r *http.Request, id Identity) Outcome {
	a := &asking{id: id, outcome: Answered}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), askingKey{}, a), n.cfg.Timeout)
	defer cancel()
	n.proxy.ServeHTTP(w, r.WithContext(ctx))
	return a.outcome
}

// rewrite makes a guest's request Nova's: signed, and with no word of the guest on who
// it is (nova/api/metadata/handler.py).
func (n *Nova) rewrite(p *httputil.ProxyRequest) {
	a, _ := p.In.Context().Value(askingKey{}).(*asking)
	p.Out.URL.Scheme = "http"
	if n.cfg.HTTPS {
		p.Out.URL.Scheme = "https"
	}
	p.Out.URL.Host = "nova" // inTurn puts the server there
	p.Out.Host = ""
	// A query is Nova's to judge, whatever Go makes of it.
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	p.Out.GetBody = p.In.GetBody
	h := p.Out.Header
	disown(h)
	h.Set(headerForwardedFor, a.id.Address.String())
	h.Set(headerInstance, a.id.Instance)
	h.Set(headerProject, a.id.Project)
	h.Set(headerSignature, Sign(n.secret.value(), a.id.Instance))
}

// Sign is the signature of an instance's id: HMAC-SHA256 in lower-case hexadecimal.
func Sign(secret []byte, instance string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(instance))
	return hex.EncodeToString(mac.Sum(nil))
}

// fail answers where Nova did not.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	a, _ := r.Context().Value(askingKey{}).(*asking)
	var dial *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		a.outcome = Broken // the guest has gone
		return
	case errors.As(err, &dial) && dial.Op == "dial":
		a.outcome = Unreachable
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusServiceUnavailable, "The metadata service is temporarily unavailable.")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		a.outcome = TimedOut
		answer(w, http.StatusGatewayTimeout, "The metadata service did not answer in time.")
	default:
		a.outcome = Broken
		answer(w, http.StatusBadGateway, "The metadata service gave no answer that can be read.")
	}
}

// inTurn asks one of several servers, and the next one where one takes no connection:
// then it has seen nothing of the request.
type inTurn struct {
	transport http.RoundTripper
	hosts     []string
	next      *atomic.Uint64
}

func (t *inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	first := t.next.Add(1)
	var errs []error
	for i := range t.hosts {
		one := r.Clone(r.Context())
		one.URL = &url.URL{Scheme: r.URL.Scheme, Host: t.hosts[(first+uint64(i))%uint64(len(t.hosts))], Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			one.Body = body
		}
		answer, err := t.transport.RoundTrip(one)
		if err == nil {
			return answer, nil
		}
		errs = append(errs, err)
		var dial *net.OpError
		if !errors.As(err, &dial) || dial.Op != "dial" || r.Context().Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}
