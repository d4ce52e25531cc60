package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connectError: a server took no connection, so it has seen nothing of the request.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// dialer opens connections to servers, up to the end of the TLS handshake: a server that
// does not get so far has taken none.
type dialer struct {
	timeout time.Duration
	tls     *tls.Config
}

func (d dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, &connectError{err}
	}
	return c, nil
}

func (d dialer) encrypted(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	c, err := d.plain(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		return nil, errors.Join(&connectError{err}, c.Close())
	}
	t := tls.Client(c, config)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(&connectError{err}, c.Close())
	}
	return t, nil
}

// A server that took no connection, or did not answer in time, is asked last for a while,
// which doubles each time: whoever asks it first again waits for it.
const (
	restTime    = 10 * time.Second
	longestRest = 5 * time.Minute
)

// inTurn asks one of several servers, and the next one where one takes no connection:
// then it has seen nothing of the request.
type inTurn struct {
	transport http.RoundTripper
	hosts     []*server
	next      atomic.Uint64
}

type server struct {
	host string

	mu   sync.Mutex
	rest time.Duration
	end  time.Time
}

func (s *server) rests(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.end)
}

// failed begins a rest, if there is none: requests that were under way fail together.
func (s *server) failed(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(s.end) {
		s.rest = min(max(2*s.rest, restTime), longestRest)
		s.end = now.Add(s.rest)
	}
}

func (s *server) worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest, s.end = 0, time.Time{}
}

// order is that in which servers are asked now: those that rest last.
func (t *inTurn) order(now time.Time) []*server {
	first, n := t.next.Add(1), uint64(len(t.hosts))
	well, rest := make([]*server, 0, n), []*server(nil)
	for i := range n {
		s := t.hosts[(first+i)%n]
		if s.rests(now) {
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
			s.worked()
			return answer, nil
		}
		errs = append(errs, err)
		if errors.Is(r.Context().Err(), context.Canceled) {
			break // the guest has gone
		}
		var connect *connectError
		took := !errors.As(err, &connect)
		// What else goes wrong may be the request's fault.
		if !took || r.Context().Err() != nil {
			s.failed(time.Now())
		}
		if took || r.Context().Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}
