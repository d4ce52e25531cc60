package metadataproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// load is guests that ask all the time: half of them on one connection for each request,
// the others on one for all. Every connection that is refused, and every request that is
// not answered as a whole, is an error.
type load struct {
	stop   atomic.Bool
	group  sync.WaitGroup
	asked  atomic.Int64
	errors atomic.Int64
	first  atomic.Value
}

func (w *world) load(guests int) *load {
	l := &load{}
	for i := range guests {
		from, want := atRed, "inst-red red 10.0.0.5 0"
		if i%4 > 1 {
			from, want = atBlue6, "inst-blue blue fe80::f816:3eff:fe00:5 0"
		}
		most := 1
		if i%2 == 1 {
			most = 1 << 30
		}
		l.group.Go(func() {
			for !l.stop.Load() {
				if err := l.converse(w, from, want, most); err != nil {
					l.errors.Add(1)
					l.first.CompareAndSwap(nil, err.Error())
				}
			}
		})
	}
	return l
}

func (l *load) converse(w *world, from, want string, most int) error {
	c, err := w.dial("sluice-metadata", from)
	if err != nil {
		return fmt.Errorf("refused: %w", err)
	}
	defer c.Close()
	return l.requests(c, want, most)
}

func (l *load) requests(c net.Conn, want string, most int) error {
	r := bufio.NewReader(c)
	for i := 0; i < most && !l.stop.Load(); i++ {
		if _, err := fmt.Fprintf(c, "GET /openstack/%d HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", i); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err != nil || a.StatusCode != 200 || strings.TrimSpace(string(text)) != want {
			return fmt.Errorf("request %d: %d %q %w", i, a.StatusCode, text, err)
		}
		l.asked.Add(1)
	}
	return nil
}

// end tells how many requests there were, and how many connections and requests failed.
func (l *load) end() (asked, failed int64, first any) {
	l.stop.Store(true)
	l.group.Wait()
	return l.asked.Load(), l.errors.Load(), l.first.Load()
}
