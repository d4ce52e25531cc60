package ovn

import (
	"testing"
	"time"
)

// TestNorthboundLate: a Northbound database that does not answer is expected for
// a while only, and again when it has answered.
func TestNorthboundLate(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.run("ovs-appctl", "-t", l.path("nb.ctl"), "exit")
	w := l.follow(Config{Northbound: l.remote("nb"), NorthboundPatience: 2 * time.Second})
	expects := func() (yes bool) {
		w.View(func(r *Rows) { yes = r.ExpectsNB() })
		return yes
	}
	told := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.all
	}
	l.waitFor("Southbound", func() bool { return told() == 1 })
	if !expects() {
		t.Error("given up at once")
	}
	l.waitFor("the end of patience", func() bool { return told() == 2 })
	if expects() {
		t.Error("expected for ever")
	}
	l.serve("nb")
	w.until("the Northbound database", func() bool { return told() == 3 && expects() })
}
