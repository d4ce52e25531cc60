package proxy

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ports has what is counted of each port: its connections and its token bucket.
type ports struct {
	most  int
	rate  rate.Limit
	burst int

	mu  sync.Mutex
	all map[string]*port
}

type port struct {
	conns  map[net.Conn]struct{}
	bucket *rate.Limiter
	asked  time.Time
	gone   bool // it is forgotten with its last connection
}

func newPorts(most int, perSecond rate.Limit, burst int) *ports {
	return &ports{most: most, rate: perSecond, burst: burst, all: map[string]*port{}}
}

// forgetAfter is when the bucket of a port without connections is full again, and is
// not needed any more.
func (p *ports) forgetAfter() time.Duration {
	if p.rate <= 0 {
		return 0
	}
	return time.Duration(float64(p.burst) / float64(p.rate) * float64(time.Second))
}

func (p *ports) of(name string) *port {
	one := p.all[name]
	if one == nil {
		one = &port{conns: map[net.Conn]struct{}{}}
		if p.rate > 0 {
			one.bucket = rate.NewLimiter(p.rate, p.burst)
		}
		p.all[name] = one
	}
	return one
}

// open counts a connection, or refuses it.
func (p *ports) open(name string, c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of(name)
	if len(one.conns) >= p.most {
		return false
	}
	one.conns[c], one.gone = struct{}{}, false
	return true
}

func (p *ports) closed(name string, c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[name]
	if one == nil {
		return
	}
	delete(one.conns, c)
	if len(one.conns) == 0 && (one.gone || time.Since(one.asked) >= p.forgetAfter()) {
		delete(p.all, name)
	}
}

// ask takes a token, and tells how long to wait where there is none.
func (p *ports) ask(name string, now time.Time) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of(name)
	one.asked = now
	if one.bucket == nil || one.bucket.AllowN(now, 1) {
		return 0, true
	}
	r := one.bucket.ReserveN(now, 1)
	wait = r.DelayFrom(now)
	r.CancelAt(now)
	return wait, false
}

// drop closes the connections of a port that has gone.
func (p *ports) drop(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[name]
	if one == nil {
		return
	}
	if len(one.conns) == 0 {
		delete(p.all, name)
	}
	one.gone = true
	for c := range one.conns {
		_ = c.Close() // it is closed once more by whoever serves it
	}
}
