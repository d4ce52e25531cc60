package ovn

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// lines is what was logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), what)
}

// TestFollowerWrongRemote: a database that cannot be had is one error of this
// database, logged once, until the setting is another one; the session from
// before goes on.
func TestFollowerWrongRemote(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	var log lines
	w := l.follow(Config{Northbound: l.remote("nb"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	want := append([]string{"ln-public"}, owned("r1", false)...)
	w.untilPorts("the start", want...)
	remote := func(s string) { l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote=\""+s+"\"") }
	for round, wrong := range []string{"tpc:192.0.2.1:6642", "ssl:[2001:db8::1]:6642"} {
		remote(wrong)
		l.waitFor("the error", func() bool { return w.Status().SBErr != nil && strings.Contains(w.Status().SBErr.Error(), wrong) })
		for n := range 5 {
			l.vs("add-port", "br-ex", fmt.Sprint("tap", n))
			l.vs("del-port", "br-ex", fmt.Sprint("tap", n))
		}
		l.vs("set", "Open_vSwitch", ".", fmt.Sprintf("external_ids:ovn-encap-ip=192.0.2.%d", round))
		w.until("the setting beside it", func() (ok bool) {
			w.View(func(r *Rows) { ok = r.External("ovn-encap-ip") == fmt.Sprintf("192.0.2.%d", round) })
			return ok
		})
		if s := w.Status(); !s.InSync.All() || s.NBErr != nil || s.SBErr == nil {
			t.Errorf("%s: status %+v", wrong, s)
		}
		if n := log.count("level=ERROR"); n != round+1 {
			t.Errorf("%d errors were logged after %d mistakes", n, round+1)
		}
	}
	remote(l.remote("sb"))
	l.waitFor("the correction", func() bool { return w.Status().SBErr == nil })
	w.untilPorts("the same rows", want...)
	// The same mistake again is said again.
	remote("tpc:192.0.2.1:6642")
	l.waitFor("the error", func() bool { return w.Status().SBErr != nil })
	l.vs("remove", "Open_vSwitch", ".", "external_ids", "ovn-remote")
	l.waitFor("the mistake gone", func() bool { return w.Status().SBErr == nil })
	if n := log.count("level=ERROR"); n != 3 {
		t.Errorf("%d errors were logged after 3 mistakes", n)
	}
	w.untilPorts("the same rows", want...)
}

// TestFollowerWrongNorthbound: what is wrong with one database is no error of
// the other.
func TestFollowerWrongNorthbound(t *testing.T) {
	l := newLab(t)
	w := l.follow(Config{Northbound: "ssl:[2001:db8::1]:6641"})
	l.waitFor("the error", func() bool { return w.Status().NBErr != nil })
	l.waitFor("Southbound", func() bool { return w.Status().InSync.SB })
	if s := w.Status(); s.SBErr != nil || s.InSync.NB || !strings.Contains(s.NBErr.Error(), "needs a certificate") {
		t.Errorf("status %+v", s)
	}
}
