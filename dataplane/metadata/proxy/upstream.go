package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// upstream passes requests on to HTTP servers.
type upstream struct {
	timeout time.Duration
	proxy   *httputil.ReverseProxy
	log     *slog.Logger
	limit   loglimit.Limit
}

// upstreamConfig is what Nova and a Template have in common.
type upstreamConfig struct {
	// hosts are asked in turn, each with its port.
	hosts []string
	// tls is for https; nil: http.
	tls *tls.Config
	// connect bounds how long a server may take to accept a connection, and timeout how
	// long the whole request may take.
	connect, timeout time.Duration
	log              *slog.Logger
}

func (c *upstreamConfig) setDefaults() {
	if c.connect == 0 {
		c.connect = 5 * time.Second
	}
	if c.timeout == 0 {
		c.timeout = 60 * time.Second
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
}

// newUpstream has requests made over by rewrite, which leaves the host to it.
func newUpstream(c upstreamConfig, rewrite func(*httputil.ProxyRequest, Identity)) *upstream {
	c.setDefaults()
	d := dialer{timeout: c.connect, tls: c.tls}
	transport := &http.Transport{
		DialContext: d.plain, DialTLSContext: d.encrypted,
		// What comes compressed goes to the guest as it is.
		DisableCompression: true,
		// A connection for each request, as neutron's agent has it: what a server sends behind
		// its answer, such as a body to HEAD, would be the answer to the next guest.
		DisableKeepAlives: true,
	}
	u := &upstream{timeout: c.timeout, log: c.log}
	servers := &inTurn{transport: transport}
	for _, h := range c.hosts {
		servers.hosts = append(servers.hosts, &server{host: h})
	}
	u.proxy = &httputil.ReverseProxy{
		Transport: servers, ErrorHandler: u.fail, ModifyResponse: u.look, BufferPool: &buffers{},
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			a, _ := p.In.Context().Value(askingKey{}).(*asking)
			p.Out.Host = "" // that of the server
			// A query is the server's to judge, whatever Go makes of it.
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.GetBody = p.In.GetBody
			disown(p.Out.Header)
			rewrite(p, a.id)
		},
	}
	return u
}

// ServeMetadata implements Backend.
func (u *upstream) ServeMetadata(w http.ResponseWriter, r *http.Request, id Identity) Outcome {
	a := &asking{id: id, outcome: Answered}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), askingKey{}, a), u.timeout)
	defer cancel()
	u.proxy.ServeHTTP(w, r.WithContext(ctx))
	return a.outcome
}

// asking is what a request carries to rewrite and fail.
type asking struct {
	id      Identity
	outcome Outcome
}

type askingKey struct{}

// fail answers where the server behind did not.
func (u *upstream) fail(w http.ResponseWriter, r *http.Request, err error) {
	a, _ := r.Context().Value(askingKey{}).(*asking)
	var connect *connectError
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		a.outcome = Broken // the guest has gone
		return
	case errors.As(err, &connect):
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
	u.warn(string(a.outcome), "the metadata service did not answer", "error", err)
}

// errNoAnswer: what came has a status that is no answer's.
var errNoAnswer = errors.New("the status of the answer is not one from 200 to 599")

// look says in the log what an operator can act on. It refuses what is no answer: net/http would
// make a tunnel of 101, and gives up at a status that has none of three digits.
func (u *upstream) look(r *http.Response) error {
	if r.StatusCode < 200 || r.StatusCode > 599 {
		return fmt.Errorf("%w: %d", errNoAnswer, r.StatusCode)
	}
	if r.StatusCode == http.StatusForbidden {
		if a, ok := r.Request.Context().Value(askingKey{}).(*asking); ok {
			a.outcome = Forbidden
		}
		u.warn("forbidden", "the metadata service refuses the signature; the secret here has to be Nova's metadata_proxy_shared_secret", "server", r.Request.URL.Host)
	}
	return nil
}

func (u *upstream) warn(event, text string, args ...any) {
	if ok, skipped := u.limit.Allow(event, "", time.Now()); ok {
		u.log.Warn(text, append(args, "skipped", skipped)...)
	}
}

// buffers are what answers are copied by. Without it each answer has one of its own,
// however short it is.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
