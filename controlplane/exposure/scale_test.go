package exposure

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// tenant is EVPN that has the gateway port, with a way for each of n addresses.
type tenant struct {
	nobody
	asked *int
}

func (tenant) GatewayVRF(k intent.GatewayKey) (intent.VNI, bool) {
	return 1001, k == key("02:00:00:00:00:01")
}

func (x tenant) Match(intent.VNI) func(netip.Addr) (intent.Route, bool) {
	*x.asked++
	return func(netip.Addr) (intent.Route, bool) { return intent.Route{}, false }
}

// many is a node with n centralised floating IPs, told by both databases, and n
// VMs on the provider network.
func many(n int) *ovn.Rows {
	c := sample()
	c.named()
	var nats []ovn.NAT
	for i := range n {
		a, m := fmt.Sprintf("172.25.%d.%d", i/256, i%256), fmt.Sprintf("02:00:00:01:%02x:%02x", i/256, i%256)
		nats = append(nats, ovn.NAT{UUID: ovn.UUID("n" + a), Type: "dnat_and_snat", ExternalIP: a, LogicalIP: "10.0.0.6"})
		c.put(pb("m"+a, ovn.TypeVIF, "public", here, fmt.Sprintf("%s 172.26.%d.%d 2001:db8:24::%x", m, i/256, i%256, i+4096)))
		c.edit("lsp-gw", func(p *ovn.PortBinding) {
			p.NATAddresses = append(p.NATAddresses, "02:00:00:00:00:01 "+a+` is_chassis_resident("cr-gw")`)
		})
	}
	c.northbound(nats...)
	return c.load()
}

// least is the least time of the processor that a step with all of these rows takes.
func least(t *testing.T, n int) time.Duration {
	t.Helper()
	rows, cfg := many(n), all
	cfg.Northbound = true
	best := time.Hour
	for range 3 {
		x, asked := NewTranslator(cfg, &indices{}, &loadbalancer.Book{}), 0
		start := worked(t)
		x.Step(rows, tenant{asked: &asked}, complete)
		best = min(best, worked(t)-start)
		if got := len(wanted.Rows(x.Tables(), intent.Routes)); got < 3*n {
			t.Fatalf("%d routes of %d VMs and floating IPs", got, n)
		}
		if asked != 1 {
			t.Fatalf("the tenant's routes were gone through %d times", asked)
		}
	}
	return best
}

// worked is the processor's time that this thread has had.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The work grows with the addresses, not with their square: 30 times as many take
// not 100 times as long, where it would be up to 900 times. What is compared is the
// time that the processor worked, so that neither its speed nor its load matters.
func TestWorkIsLinear(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const few, lots = 230, 6900
	a, b := least(t, few), least(t, lots)
	t.Logf("%d addresses: %s; %d: %s", 3*few, a, 3*lots, b)
	if b > 100*a {
		t.Errorf("%s for %d times the addresses of %s", b, lots/few, a)
	}
}

func BenchmarkStep(b *testing.B) {
	rows := many(7000)
	for b.Loop() {
		asked := 0
		NewTranslator(all, &indices{}, &loadbalancer.Book{}).Step(rows, tenant{asked: &asked}, complete)
	}
}
