package evpn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nightly"
)

func (w *world) process(node, name string) *lab.Process {
	w.Helper()
	p, err := w.Process(node, name)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) kill(node, name string) {
	w.Helper()
	if err := w.process(node, name).Kill(); err != nil {
		w.Fatal(err)
	}
}

func (w *world) startAgain(node, name string) {
	w.Helper()
	if err := w.process(node, name).Start(); err != nil {
		w.Fatal(err)
	}
}

// ready waits until sluiced says so, and its neighbour has an established session.
func (w *world) ready(node string) {
	w.Helper()
	w.eventually("sluiced on "+node+" is ready", func() error {
		s, err := w.status(node)
		if err == nil && !s.Ready {
			err = fmt.Errorf("conditions: %+v", s.Conditions)
		}
		return err
	})
}

// kills is how often sluiced is killed.
func kills() int {
	if nightly.On() {
		return 50
	}
	return 10
}

// sluiced is killed at random moments, on one side or both, also while it still
// starts: no packet is lost while it is dead, nor when it comes back.
func TestKillsLoseNothing(t *testing.T) {
	w := shared(t)
	streams := w.streams()
	w.killed(kills() / 2)
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	w.announced("b1", vniRed, redRoutes...)
}

// The same while one tenant changes all the time, so that kills come between two
// writes: the other one loses nothing, and in the end all is as it is wanted.
func TestKillsDuringChanges(t *testing.T) {
	w := shared(t)
	t.Cleanup(func() { w.restore("blue", "2001") })
	var streams []*stream
	for _, vm := range []string{"a-red1", "b-red1"} {
		for _, addr := range far(vm) {
			streams = append(streams, w.stream(vm, addr))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	for _, cloud := range []string{"a", "b"} {
		group.Go(func() error { return w.churn(ctx, cloud) })
	}
	w.killed(kills() - kills()/2)
	stop()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, cloud := range []string{"a", "b"} {
		w.setVNI(cloud, "blue", "2001")
	}
	w.connected()
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	w.announced("b1", vniBlue, "10.20.0.0/24", "10.20.0.11/32")
	w.withdrawn("b1", 2002, "10.20.0.0/24", "10.20.0.11/32")

}

// churn changes the VNI of a cloud's blue router until ctx ends.
func (w *world) churn(ctx context.Context, cloud string) error {
	for i := 0; ctx.Err() == nil; i++ {
		args, vni := []string{}, fmt.Sprint(vniBlue+i%2)
		for _, port := range []string{lab.GatewaySwitchPort("blue"), lab.InterfaceSwitchPort("blue", "net")} {
			args = append(append(args, setting(port, "vni", vni)...), "--")
		}
		if _, err := w.NB(ctx, cloud, args[:len(args)-1]...); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(150 * time.Millisecond):
		}
	}
	return nil
}

// killed kills sluiced so often, and waits until it is well in the end.
func (w *world) killed(times int) {
	w.Helper()
	random := rand.New(rand.NewPCG(nightly.Seed(w.T, 1), 0))
	pause := func(most time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(most)))) }
	for i := range times {
		nodes := [][]string{{"a1"}, {"b1"}, {"a1", "b1"}}[random.IntN(3)]
		for _, n := range nodes {
			w.kill(n, "sluiced")
		}
		pause(time.Second)
		for _, n := range nodes {
			w.startAgain(n, "sluiced")
		}
		// Sometimes the next one comes before this one is ready.
		if random.IntN(3) > 0 {
			for _, n := range nodes {
				w.ready(n)
			}
		}
		pause(time.Second)
		w.Logf("kill %d of %v", i+1, nodes)
	}
	for _, n := range []string{"a1", "b1"} {
		w.ready(n)
	}
}

// A database, or a daemon of OVN, goes away and comes back. Traffic goes on where
// OVN's does, and what is changed afterwards is still noticed.
//
// A new ovn-controller clears the flows of br-int, and one that reads the local
// database anew releases its gateway ports and claims them again; ovs-vswitchd
// stands still for a second when its database went. There the loss is printed
// beside that of OVN's own traffic on the nodes.
func TestControlPlaneRestarts(t *testing.T) {
	for _, c := range []struct {
		node, process string
		keeps         bool
	}{
		{"a-central", "nb", true}, {"b-central", "nb", true}, {"a-central", "sb", true}, {"b-central", "sb", true},
		{"a-central", "northd", true}, {"b-central", "northd", true},
		{"a1", "ovsdb", false}, {"b1", "ovsdb", false}, {"a1", "controller", false}, {"b1", "controller", false},
	} {
		t.Run(c.node+" "+c.process, func(t *testing.T) {
			w := shared(t)
			// OVN's routers answer from the node that asks.
			yardstick := []*stream{
				w.stream("a-red2", "10.10.0.1"), w.stream("a-red2", "fd00:10::1"),
				w.stream("b-red1", "10.20.0.1"), w.stream("b-blue1", "fd00:20::1"),
			}
			streams := w.streams()
			w.kill(c.node, c.process)
			time.Sleep(500 * time.Millisecond)
			w.startAgain(c.node, c.process)
			for _, n := range []string{"a1", "b1"} {
				w.ready(n)
			}
			w.clean()
			time.Sleep(500 * time.Millisecond)
			own, ours := 0, 0
			for _, s := range yardstick {
				_, lost := s.stop()
				own += lost
			}
			for _, s := range streams {
				sent, lost := s.stop()
				ours += lost
				if c.keeps {
					s.noLoss(sent, lost)
				}
			}
			t.Logf("lost: %d in %d streams, %d in %d of OVN's own", ours, len(streams), own, len(yardstick))
			w.changes()
		})
	}
}

// sluiced starts anew while the Northbound database is away for a moment: whether
// addresses are behind NAT is not known, which is no reason to remove or withdraw
// anything.
func TestStartBeforeNorthbound(t *testing.T) {
	for node, central := range map[string]string{"a1": "a-central", "b1": "b-central"} {
		t.Run(node, func(t *testing.T) {
			w := shared(t)
			streams := w.streams()
			w.kill(node, "sluiced")
			w.kill(central, "nb")
			w.startAgain(node, "sluiced")
			w.eventually("sluiced on "+node+" works without the Northbound database", func() error {
				s, err := w.status(node)
				if err == nil && (s.VTEP == netip.Addr{} || slices.ContainsFunc(s.Tables, func(t status.Table) bool { return t.Name == "gateways" && t.Actual == 0 })) {
					err = fmt.Errorf("conditions %+v, tables %+v", s.Conditions, s.Tables)
				}
				return err
			})
			time.Sleep(2 * time.Second) // whatever is removed is removed now
			w.startAgain(central, "nb")
			w.ready(node)
			w.clean()
			for _, s := range streams {
				s.noLoss(s.stop())
			}
			w.changes()
		})
	}
}

// The chassis' name goes from the local database for a moment, as when it is written
// anew: that makes the node nobody else.
func TestNameIsWrittenAnew(t *testing.T) {
	w := shared(t)
	before, err := w.status("a1")
	if err != nil {
		t.Fatal(err)
	}
	session := func() string { return w.exec("a1", "sh", "-c", sluicectl()+" bgp neighbors -o json | grep since") }
	since := session()
	streams := w.streams()
	w.exec("a1", "ovs-vsctl", "remove", "Open_vSwitch", ".", "external_ids", "system-id")
	w.eventually("sluiced on a1 sees it", func() error {
		s, err := w.status("a1")
		if err == nil && s.Ready {
			err = errors.New("ready")
		}
		return err
	})
	w.exec("a1", "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:system-id="+before.Chassis)
	w.ready("a1")
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	if now := session(); now != since {
		t.Errorf("another session: since %s, before %s", now, since)
	}
	w.changes()
}

// changes checks that each cloud's changes still come through.
func (w *world) changes() {
	w.Helper()
	for cloud, node := range map[string]string{"a": "a1", "b": "b1"} {
		subnet := map[string]string{"a": "10.10.0.11/32", "b": "10.20.0.11/32"}[cloud]
		w.set(cloud, lab.InterfaceSwitchPort("blue", "net"), "vni", "")
		w.withdrawn(node, vniBlue, subnet)
		w.set(cloud, lab.InterfaceSwitchPort("blue", "net"), "vni", "2001")
		w.announced(node, vniBlue, subnet)
	}
	w.connected()
}

// After a restart of ovs-vswitchd the veth pair and the steering flows are back.
func TestSwitchRestarts(t *testing.T) {
	for _, n := range []string{"a1", "b1"} {
		t.Run(n, func(t *testing.T) {
			w := shared(t)
			before := w.flows(n)
			if before == "" {
				t.Fatal("no steering flows")
			}
			w.kill(n, "vswitchd")
			w.startAgain(n, "vswitchd")
			w.eventually("the steering flows of "+n+" are back", func() error {
				if got := w.flows(n); got != before {
					return fmt.Errorf("flows:\n%s\nwant:\n%s", got, before)
				}
				return nil
			})
			w.connected()
			w.clean()
		})
	}
}

// The underlay link goes away and comes back: routes return by themselves. While the node has
// a route to nothing, what it has learned stays as it is.
func TestUnderlayFlaps(t *testing.T) {
	w := shared(t)
	w.cutUnderlay("a1")
	w.told("a1", "vtep", "all", reason.CutOff, true)
	w.unreachable("a-red1", addrB4, addrB6)
	w.says("a1", []string{addrB4 + "/32", addrB6 + "/128"}, "route", "list", "--vrf", "1001")
	w.mendUnderlay("a1")
	w.connected()
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.clean()
}

// A node that is cut off says so after BGP has forgotten all VTEPs too, until its routes are back.
func TestCutOffStays(t *testing.T) {
	w := shared(t)
	rr := w.node("rr")
	defer func() {
		w.mendUnderlay("a1")
		w.configured("a1", fmt.Sprintf("    - address: %s\n", rr.VTEP4))
		w.connected()
	}()
	for _, reflector := range []netip.Addr{rr.VTEP4, rr.VTEP6} {
		w.configured("a1", fmt.Sprintf("    - {address: \"%s\", holdTime: 3s, keepalive: 1s}\n  gracefulRestart: {enabled: false}\n  peerLinger: 0s\n", reflector))
		w.eventually("a1 has its session", func() error {
			b, err := w.bgp("a1")
			if err == nil && (b.State != "established" || b.Received == 0) {
				err = fmt.Errorf("%+v", b)
			}
			return err
		})
		w.connected()
		w.cutUnderlay("a1")
		w.told("a1", "vtep", "all", reason.CutOff, true)
		w.hasProblem("a1", "vtep", reason.CutOff, true, "knows no VTEP")
		w.mendUnderlay("a1")
		w.told("a1", "vtep", "all", reason.CutOff, false)
		w.connected()
	}
}

// The reflector dies: what was learned stays, and is announced anew after.
func TestReflectorRestarts(t *testing.T) {
	w := shared(t)
	streams := w.streams()
	w.kill("rr", "bgpd")
	time.Sleep(2 * time.Second)
	w.startAgain("rr", "bgpd")
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.announced("b1", vniRed, redRoutes...)
	w.announced("b1", vniBlue, "10.20.0.11/32", "fd00:20::11/128")
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
}
