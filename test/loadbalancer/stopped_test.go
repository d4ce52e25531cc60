package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// stops are what is stopped.
var stops = []struct{ name, node, process string }{
	{"ovs-vswitchd", "a1", "vswitchd"}, {"ovsdb-server", "a1", "ovsdb"}, {"BGP neighbour", "rr", "bgpd"},
}

// TestStopped stops what a gateway node's sluiced talks to, as SIGSTOP does it: it neither
// answers nor goes away. The node, a1, is the only gateway chassis of both tenants, and their
// ports and backends are on a2. While the one is stopped, all that has nothing to do with it
// takes effect; when it goes on, so does the rest.
func TestStopped(t *testing.T) {
	w := shared(t)
	s := &stoppedNode{world: w, vips: []netip.Addr{netip.MustParseAddr("10.99.0.41"), netip.MustParseAddr("fd00:99::41")}}
	s.onlyGateway()
	s.newPeer()
	for s.n = 1; s.n <= len(stops); s.n++ {
		s.prepare()
	}
	for _, vip := range s.vips {
		at := intent.FormatEndpoint(vip, vipHTTP)
		w.add("tcp", map[string][]string{at: endpoints(vip, backend.HTTPPort)})
		w.probe(at)
		w.answered("c-fabric", "tcp", vip)
	}
	w.liveOn([]string{"a1"}, lab.Backends, s.vips...)
	for i, stop := range stops {
		t.Run(stop.name, func(t *testing.T) {
			w := &stoppedNode{world: &world{T: t, Lab: w.Lab}, vips: s.vips, n: i + 1}
			w.goesOn(stop.node, stop.process)
		})
	}
}

// stoppedNode is a1 while something is stopped.
type stoppedNode struct {
	*world
	vips []netip.Addr
	n    int // of what is stopped
}

// onlyGateway takes the other gateway chassis away from both tenants.
func (w *stoppedNode) onlyGateway() {
	w.Helper()
	w.nb(strings.Fields("lrp-del-gateway-chassis lrp-red-gw a2 -- lrp-del-gateway-chassis lrp-blue-gw a2")...)
	w.Cleanup(func() {
		if _, err := w.NB(context.Background(), "a", strings.Fields("lrp-set-gateway-chassis lrp-red-gw a2 10 -- lrp-set-gateway-chassis lrp-blue-gw a2 10")...); err != nil {
			w.Error(err)
		}
	})
}

// newPeer runs a BGP speaker on a3, which is no gateway and has none of Sluice's.
func (w *stoppedNode) newPeer() {
	w.Helper()
	rr, a3 := w.node("rr"), w.node("a3")
	file := filepath.Join(w.T.TempDir(), "gobgpd.toml")
	text := fmt.Sprintf("[global.config]\nas = %d\nrouter-id = %q\nport = -1\n[[neighbors]]\n[neighbors.config]\nneighbor-address = %q\npeer-as = %d\n"+
		"[neighbors.transport.config]\nlocal-address = %q\n[neighbors.timers.config]\nconnect-retry = 1\n"+
		"[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = \"l2vpn-evpn\"\n",
		lab.FabricAS, a3.VTEP4, rr.VTEP4, lab.FabricAS, a3.VTEP4)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
	cmd, err := w.Command(context.WithoutCancel(w.Context()), "a3", "gobgpd", "-f", file, "-p", "--api-hosts", "127.0.0.1:50051")
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	w.eventually("gobgpd answers", func() error {
		_, err := w.Exec(w.Context(), "a3", "gobgp", "global")
		return err
	})
}

// peer announces prefixes of a VTEP from a3, or withdraws them.
func (w *stoppedNode) peer(verb string, vtep netip.Addr, prefixes ...string) {
	w.Helper()
	for _, p := range prefixes {
		if _, err := w.Exec(w.Context(), "a3", "gobgp", "global", "rib", verb, "-a", "evpn", "prefix", p, "etag", "0", "label", "1001",
			"rd", fmt.Sprintf("%s:9", w.node("a3").VTEP4), "rt", fmt.Sprintf("%d:1001", lab.FabricAS), "encap", "vxlan",
			"router-mac", "02:00:00:00:09:0"+strconv.Itoa(w.n), "nexthop", vtep.String()); err != nil {
			w.Fatal(err)
		}
	}
}

// routed waits until a1 has routes of a VRF, or has none of them any more.
func (w *stoppedNode) routed(vni int, want bool, prefixes ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("a1 has %v of VRF %d: %t", prefixes, vni, want), func() error {
		out, err := w.Exec(w.Context(), "a1", w.sluicectl(), "route", "list", "--vrf", strconv.Itoa(vni))
		for _, p := range prefixes {
			i := slices.IndexFunc(strings.Split(out, "\n"), func(line string) bool { return slices.Contains(strings.Fields(line), p) })
			if err == nil && (i >= 0) != want {
				err = errors.New(out)
			}
		}
		return err
	})
}

// atReflector waits until a1 announces prefixes of a VRF, or none of them any more.
func (w *stoppedNode) atReflector(vni int, want bool, prefixes ...string) {
	w.Helper()
	vtep := w.node("a1").VTEP4.String()
	w.eventually(fmt.Sprintf("the reflector has %v of a1, VRF %d: %t", prefixes, vni, want), func() error {
		for _, p := range prefixes {
			prefix := netip.MustParsePrefix(p)
			out, err := w.Exec(w.Context(), "rr", "vtysh", "-c", "show bgp l2vpn evpn route type prefix")
			if err != nil {
				return err
			}
			if got := announces(out, fmt.Sprintf("[%d]:[%s]", prefix.Bits(), prefix.Addr()), vtep, fmt.Sprintf("RT:%d:%d", lab.FabricAS, vni)); got != want {
				return fmt.Errorf("%s: %t in %s", p, got, out)
			}
		}
		return nil
	})
}

// announces tells whether a listing of FRR has a route from a VTEP with a target.
func announces(listing, prefix, vtep, target string) bool {
	lines := strings.Split(listing, "\n")
	for i, line := range lines {
		if !strings.Contains(line, prefix) {
			continue
		}
		for _, next := range lines[i+1 : min(i+6, len(lines))] {
			if strings.Contains(next, "[5]:") {
				break
			}
			if strings.Contains(next, target) && strings.Contains(strings.Join(lines[i:min(i+6, len(lines))], "\n"), vtep) {
				return true
			}
		}
	}
	return false
}

// vtepKnown waits until the programs of a1 take packets from a VTEP.
func (w *stoppedNode) vtepKnown(vtep netip.Addr) {
	w.Helper()
	w.eventually(fmt.Sprintf("a1 takes packets from %s", vtep), func() error {
		m, err := ebpf.LoadPinnedMap(filepath.Join(w.node("a1").BPFFS, "vteps_v1"), &ebpf.LoadPinOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer m.Close()
		var key, value []byte
		for it := m.Iterate(); it.Next(&key, &value); {
			if a := vtep.As16(); string(key) == string(a[:]) {
				return nil
			}
		}
		return errors.New("it does not")
	})
}

// diesOn waits until no VIP of a node leads to a backend any more.
func (w *stoppedNode) diesOn(node string, addresses ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%v are dead on %s", addresses, node), func() error {
		list, err := w.world.vips(node)
		n := 0
		for _, v := range list {
			for _, b := range v.Backends {
				if slices.Contains(addresses, b.Addr.String()) && b.State == status.BackendUp {
					err = errors.Join(err, fmt.Errorf("%s leads to %s", v.Address, b.Addr))
				}
			}
			if slices.Contains(w.vips, v.Address) && v.State == "ok" {
				n++
			}
		}
		if err == nil && n != len(w.vips) {
			err = fmt.Errorf("%d of %d VIPs are as wanted", n, len(w.vips))
		}
		return err
	})
}

// stopProcess stops a process, until what it returns is called.
func (w *stoppedNode) stopProcess(node, name string) (goOn func()) {
	w.Helper()
	p, err := w.Process(node, name)
	if err == nil {
		err = p.Signal(syscall.SIGSTOP)
	}
	if err != nil {
		w.Fatal(err)
	}
	resume := func() { _ = p.Signal(syscall.SIGCONT) }
	w.Cleanup(resume)
	return resume
}

// far are what a3 announces: gone and stays of an old VTEP before anything is stopped, fresh of
// a new one then. Routes linger whose VTEP has no other, or has a new one: see decision 5.
func (w *stoppedNode) far() (old, fresh netip.Addr, gone []string, stays string, come []string) {
	old, fresh = netip.AddrFrom4([4]byte{172, 30, 98, byte(w.n)}), netip.AddrFrom4([4]byte{172, 30, 99, byte(w.n)})
	gone = []string{fmt.Sprintf("10.78.%d.0/24", w.n), fmt.Sprintf("fd00:78:%d::/64", w.n)}
	come = []string{fmt.Sprintf("10.77.%d.0/24", w.n), fmt.Sprintf("fd00:77:%d::/64", w.n)}
	return old, fresh, gone, fmt.Sprintf("10.79.%d.0/24", w.n), come
}

// prepare announces what is to be withdrawn.
func (w *stoppedNode) prepare() {
	w.Helper()
	old, _, gone, stays, _ := w.far()
	w.peer("add", old, append(gone, stays)...)
	w.routed(1001, true, append(gone, stays)...)
}

// blue is a port of the other VRF.
func (w *stoppedNode) blue() (vm lab.VM, routes []string) {
	vm = lab.VM{
		Name: fmt.Sprintf("a-blue%d", 40+w.n), Chassis: "a2", Tenant: "blue", Network: "net",
		Addr4: netip.MustParseAddr(fmt.Sprintf("10.10.0.%d", 140+w.n)), Addr6: netip.MustParseAddr(fmt.Sprintf("fd00:10::%d", 140+w.n)),
	}
	return vm, []string{vm.Addr4.String() + "/32", vm.Addr6.String() + "/128"}
}

// goesOn stops a process, and does all that has nothing to do with it.
func (w *stoppedNode) goesOn(node, process string) {
	vm, ports := w.blue()
	old, fresh, gone, stays, come := w.far()
	bgp := process == "bgpd" // nothing comes from it, or goes to it
	began := time.Now()
	goOn := w.stopProcess(node, process)
	// Flows of red are to be written, which wait: its driver is asked, and does not return.
	more := lab.Network{Name: "more" + strconv.Itoa(w.n), Subnet4: netip.MustParsePrefix(fmt.Sprintf("10.5%d.0.0/24", w.n)), Subnet6: netip.MustParsePrefix(fmt.Sprintf("fd00:5%d::/64", w.n))}
	if err := w.AddNetwork(w.Context(), "a", "red", more); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = w.DelNetwork(context.Background(), "a", "red", more.Name) })
	if err := w.AddVM(w.Context(), "a", vm); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = w.DelVM(context.Background(), vm.Name) })
	if process == "vswitchd" {
		w.stuck(true)
	}
	w.routed(2001, true, ports...)
	if !bgp {
		w.atReflector(2001, true, ports...)
		w.peer("del", old, gone...)
		w.routed(1001, false, gone...)
		w.peer("add", fresh, come...)
		w.routed(1001, true, come...)
		w.vtepKnown(fresh)
	}
	w.stop("be1")
	w.diesOn("a1", "10.10.0.21", "fd00:10::21")
	if nightly.On() && !bgp {
		w.forAMinute(began, fresh)
	}
	w.Logf("%s of %s was stopped for %s", process, node, time.Since(began).Round(time.Millisecond))
	goOn()

	w.atReflector(1001, true, more.Subnet4.String(), more.Subnet6.String())
	w.atReflector(2001, true, ports...)
	w.serve("be1")
	w.liveOn([]string{"a1"}, lab.Backends, w.vips...)
	for _, vip := range w.vips {
		w.answered("c-fabric", "tcp", vip)
	}
	w.stuck(false)
	w.peer("del", old, stays)
	if bgp {
		w.peer("del", old, gone...)
	} else {
		w.peer("del", fresh, come...)
	}
}

// forAMinute outlasts the time-outs of calls that wait for what is stopped: the rest goes on after
// these, too.
func (w *stoppedNode) forAMinute(began time.Time, fresh netip.Addr) {
	w.Helper()
	late := []string{fmt.Sprintf("10.76.%d.0/24", w.n), fmt.Sprintf("fd00:76:%d::/64", w.n)}
	for ; time.Since(began) < time.Minute; time.Sleep(5 * time.Second) {
		w.peer("add", fresh, late...)
		w.routed(1001, true, late...)
		w.peer("del", fresh, late...)
		w.routed(1001, false, late...)
	}
}

// stuck waits until a1 says that a driver has not returned, or says so no more.
func (w *stoppedNode) stuck(want bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("a driver of a1 is stuck: %t", want), func() error {
		out, err := w.Exec(w.Context(), "a1", "sh", "-c", w.sluicectl()+" status || test $? = 3")
		if err == nil && strings.Contains(out, "has not returned") != want {
			err = errors.New(out)
		}
		return err
	})
}
