package proxy

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ports has what is counted of each port: its connections and its token bucket. Those of
// nobody are counted as of the port "".
type ports struct {
	most  int
	rate  rate.Limit
	burst int

	mu    sync.Mutex
	all   map[string]*port
	total int
}

type port struct {
	conns  map[*conn]struct{}
	bucket *rate.Limiter
	asked  time.Time
	bodies int
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
		one = &port{conns: map[*conn]struct{}{}}
		if p.rate > 0 {
			one.bucket = rate.NewLimiter(p.rate, p.burst)
		}
		p.all[name] = one
	}
	return one
}

// open counts a connection, or refuses it.
func (p *ports) open(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of(c.id.Port)
	if len(one.conns) >= p.most {
		return false
	}
	one.conns[c] = struct{}{}
	p.total++
	return true
}

func (p *ports) closed(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[c.id.Port]
	if one == nil {
		return
	}
	if _, there := one.conns[c]; !there {
		return
	}
	delete(one.conns, c)
	p.total--
	p.forget(c.id.Port, one)
}

func (p *ports) forget(name string, one *port) {
	if len(one.conns) == 0 && time.Since(one.asked) >= p.forgetAfter() {
		delete(p.all, name)
	}
}

// sweep forgets the ports that have nothing that is worth to be known.
func (p *ports) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, one := range p.all {
		p.forget(name, one)
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

// mostBodies of one port are in memory at a time: each may be as large as MaxBody, and
// nobody reads metadata by sending something.
const mostBodies = 8

// body counts a request's body until done is called, or refuses it.
func (p *ports) body(name string) (done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of(name)
	if one.bodies >= mostBodies {
		return nil, false
	}
	one.bodies++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		one.bodies--
	}, true
}

// conns are all that are open.
func (p *ports) conns() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*conn, 0, p.total)
	for _, one := range p.all {
		for c := range one.conns {
			out = append(out, c)
		}
	}
	return out
}

func (p *ports) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}
