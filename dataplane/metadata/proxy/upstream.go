package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"
)

// upstream passes requests on to HTTP servers.
type upstream struct {
	timeout   time.Duration
	proxy     *httputil.ReverseProxy
	transport *http.Transport
}

// upstreamConfig is what Nova and a Template have in common.
type upstreamConfig struct {
	// hosts are asked in turn, each with its port.
	hosts []string
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
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: c.connect}).DialContext,
		TLSHandshakeTimeout: c.connect,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
		// What comes compressed goes to the guest as it is.
		DisableCompression: true,
	}
	u := &upstream{timeout: c.timeout, transport: transport}
	servers := &inTurn{transport: transport}
	for _, h := range c.hosts {
		servers.hosts = append(servers.hosts, &server{host: h})
	}
	u.proxy = &httputil.ReverseProxy{
		Transport: servers, ErrorHandler: fail,
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

// close ends idle connections.
func (u *upstream) close() { u.transport.CloseIdleConnections() }

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

// restTime is how long a server that took no connection is asked last.
const restTime = 10 * time.Second

// inTurn asks one of several servers, and the next one where one takes no connection:
// then it has seen nothing of the request.
type inTurn struct {
	transport http.RoundTripper
	hosts     []*server
	next      atomic.Uint64
}

type server struct {
	host string
	// failed is when it last took no connection, in ns since 1970.
	failed atomic.Int64
}

// order is that in which servers are asked now: those that lately took no connection
// last.
func (t *inTurn) order(now time.Time) []*server {
	first, n := t.next.Add(1), uint64(len(t.hosts))
	well, rest := make([]*server, 0, n), []*server(nil)
	for i := range n {
		s := t.hosts[(first+i)%n]
		if now.Sub(time.Unix(0, s.failed.Load())) < restTime {
			rest = append(rest, s)
		} else {
			well = append(well, s)
		}
	}
	return append(well, rest...)
}

func (t *inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	var errs []error
	for _, s := range t.order(time.Now()) {
		one := r.Clone(r.Context())
		one.URL.Host = s.host
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
		s.failed.Store(time.Now().UnixNano())
	}
	return nil, errors.Join(errs...)
}
