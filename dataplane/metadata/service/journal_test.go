package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
)

func TestJournal(t *testing.T) {
	var log bytes.Buffer
	j := NewJournal(slog.New(slog.NewTextHandler(&log, nil)))
	if len(j.Latest()) != 0 || len(j.Outcomes()) != len(proxy.Outcomes()) {
		t.Errorf("at first: %v %v", j.Latest(), j.Outcomes())
	}
	id := func(port string) proxy.Identity {
		return proxy.Identity{Port: port, Instance: "inst-" + port, Network: "net", Address: netip.MustParseAddr("10.0.0.5")}
	}
	for i := range kept + 10 {
		j.Observe(proxy.Request{Time: time.Unix(int64(i), 0), Identity: id("a"), Method: "GET", Path: fmt.Sprintf("/%d", i), Status: 200, Outcome: proxy.Answered, Took: time.Millisecond})
	}
	latest := j.Latest()
	if len(latest) != kept || latest[0].Path != "/10" || latest[kept-1].Path != fmt.Sprintf("/%d", kept+9) {
		t.Errorf("%d: %+v … %+v", len(latest), latest[0], latest[len(latest)-1])
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "path=/0 ") {
		t.Errorf("the log has %s", log.String())
	}
	// Those that go wrong are there, a bounded number of them, and each port for itself.
	log.Reset()
	for range 100 {
		j.Observe(proxy.Request{Time: time.Now(), Identity: id("b"), Method: "GET", Path: "/", Status: 429, Outcome: proxy.RateLimited})
	}
	j.Observe(proxy.Request{Time: time.Now(), Outcome: proxy.TooManyConnections, Identity: id("c")})
	if lines := strings.Count(log.String(), "\n"); lines < 2 || lines > 12 || !strings.Contains(log.String(), "port=c") {
		t.Errorf("the log has %s", log.String())
	}
	for _, o := range j.Outcomes() {
		want := map[string]uint64{"answered": kept + 10, "rate-limited": 100, "too-many-connections": 1}[o.Outcome]
		if o.Requests != want || o.Description == "" {
			t.Errorf("%+v, want %d", o, want)
		}
	}
	// A path is shown as far as it is worth, and does nothing to a terminal.
	for path, want := range map[string]string{
		"/openstack/latest/user_data": "/openstack/latest/user_data", "/\x1b[2J\x9b\xff": "/\uFFFD[2J\uFFFD", "/ü": "/ü",
		"/" + strings.Repeat("a", 1000): "/" + strings.Repeat("a", 255) + "…",
	} {
		if got := shortened(path); got != want {
			t.Errorf("%q is shown as %q", path, got)
		}
	}
}
