package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// What is no request of HTTP is counted, also after one on the same connection, and once.
func TestMalformed(t *testing.T) {
	var last atomic.Pointer[Request]
	n, nova := withNova(t, Config{Observe: func(r Request) { last.Store(&r) }}, nil)
	const good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for i, tt := range []struct {
		before, bad string
		status      int
	}{
		{"", "nonsense\r\n\r\n", 400},
		{good, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		{good + good, "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
		{"", "GET / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n", 417},
		{"", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", 501},
	} {
		c := n.conn(red)
		fmt.Fprint(c, tt.before, tt.bad)
		answers := bufio.NewReader(c)
		for range strings.Count(tt.before, "GET") {
			if a, err := http.ReadResponse(answers, nil); err != nil || a.StatusCode != 200 {
				t.Fatalf("%q: %+v, %v", tt.before, a, err)
			} else if _, err := io.Copy(io.Discard, a.Body); err != nil {
				t.Fatal(err)
			}
		}
		a, err := http.ReadResponse(answers, nil)
		if err != nil || a.StatusCode != tt.status {
			t.Errorf("%q: %+v, %v", tt.bad, a, err)
			continue
		}
		if r := last.Load(); n.count(Malformed) != int64(i+1) || r.Status != tt.status || r.Outcome != Malformed || r.Identity.Port != "port-red" {
			t.Errorf("%q: %d are malformed, and the last is %+v", tt.bad, n.count(Malformed), r)
		}
	}
	if n.count(Answered) != 3 || nova.asked.Load() != 3 {
		t.Errorf("answered %d, Nova was asked %d times", n.count(Answered), nova.asked.Load())
	}
}
