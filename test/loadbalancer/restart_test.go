package loadbalancer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// away is how long what was killed stays away.
const away = 1500 * time.Millisecond

// A database or a daemon of OVN or Open vSwitch is killed, and comes back: connections to
// VIPs go on where they were, from the fabric and from VMs, and what is changed
// afterwards is noticed.
func TestConnectionsGoOnOverKills(t *testing.T) {
	w := shared(t)
	vips := [2]netip.Addr{netip.MustParseAddr("10.99.0.40"), netip.MustParseAddr("fd00:99::40")}
	for _, vip := range vips {
		w.webOnSwitches(vip)
		w.answered("c-fabric", "tcp", vip)
	}
	type process struct{ node, process string }
	killed := []process{{"a-central", "sb"}, {"a1", "controller"}, {"a1", "vswitchd"}, {"a2", "ovsdb"}}
	if nightly.On() {
		killed = append(killed, process{"a-central", "nb"}, process{"a-central", "northd"}, process{"a1", "ovsdb"},
			process{"a2", "controller"}, process{"a2", "vswitchd"}, process{"a3", "vswitchd"})
	}
	for _, c := range killed {
		t.Run(c.process+" of "+c.node, func(t *testing.T) {
			w := &world{T: t, Lab: w.Lab}
			var all []*streams
			for _, vip := range vips {
				for _, client := range []string{"c-fabric", "c-same", "c-net"} {
					all = append(all, w.streams(client, vip, 4))
				}
			}
			p, err := w.Process(c.node, c.process)
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(away)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			for _, s := range all {
				s.check()
			}
			w.nb("--wait=hv", "sync")
			for _, m := range vms {
				w.pathFor(m, vips[0], "ebpf", lab.Backends)
			}
			for _, s := range all {
				s.check()
			}
			for i, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.41"), netip.MustParseAddr("fd00:99::41")} {
				at := intent.FormatEndpoint(vip, vipHTTP)
				w.onSwitches("tcp", map[string][]string{at: endpoints(vip, backend.HTTPPort)})
				for _, client := range []string{"c-fabric", vms[i].name} {
					w.answered(client, "tcp", vip)
				}
			}
		})
	}
}

// A load balancer that comes and goes faster than nodes follow leaves nothing behind, and
// works when it stays.
func TestComesAndGoes(t *testing.T) {
	w := shared(t)
	stays := netip.MustParseAddr("fd00:99::42")
	w.webOnSwitches(stays)
	w.answered("c-fabric", "tcp", stays)
	streams := w.streams("c-fabric", stays, 8)
	theirs := w.streams("c-same", stays, 8)
	random := rand.New(rand.NewPCG(nightly.Seed(t, 1), 0))
	vip := netip.MustParseAddr("10.99.0.42")
	at := intent.FormatEndpoint(vip, vipHTTP)
	list := endpoints(vip, backend.HTTPPort)
	const name = "comes and goes"
	w.forget(name)
	begin := func() {
		some := list[:1+random.IntN(len(list))]
		w.nb("lb-add", name, at, strings.Join(some, ","), "tcp", "--", "lr-lb-add", router, name, "--", "ls-lb-add", lab.SwitchName("red", "net"), name)
	}
	pause := func() { time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) }
	for range 40 {
		begin()
		pause()
		if random.IntN(3) == 0 {
			w.nb("set", "Load_Balancer", name, "options:ct_flush=true")
			pause()
		}
		w.nb("lb-del", name)
		pause()
	}
	none := func() error {
		for _, n := range []string{"a1", "a2", "a3"} {
			all, err := w.vips(n)
			for _, v := range all {
				if v.Address == vip {
					err = fmt.Errorf("%+v", v)
				}
			}
			if out, failed := w.Exec(w.Context(), n, w.sluicectl(), "diff"); failed != nil {
				err = errors.Join(err, fmt.Errorf("diff: %w\n%s", failed, out))
			}
			if err != nil {
				return fmt.Errorf("%s: %w", n, err)
			}
		}
		return nil
	}
	w.eventually("nothing of it is left", none)
	begin()
	for _, client := range []string{"c-fabric", "c-same"} {
		w.answered(client, "tcp", vip)
	}
	streams.check()
	theirs.check()
	w.nb("lb-del", name)
	w.eventually("nothing of it is left", none)
}
