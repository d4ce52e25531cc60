//go:build guest

package evpn_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
)

// redOn puts red's VRF on a path in both clouds, by annotation, and waits until
// it is on it everywhere.
func (w *world) redOn(path string) {
	w.Helper()
	for _, cloud := range []string{"a", "b"} {
		w.nb(cloud, "set", "logical_router_port", "lrp-red-gw", "external_ids:sluice-path="+path)
	}
	for _, node := range []string{"a1", "b1"} {
		w.eventually(fmt.Sprintf("%s has red on path %s", node, path), func() error {
			v, err := w.vrf(node, vniRed)
			if err == nil && (v.State != status.OK || v.Path != path || v.Reason != "annotated") {
				err = fmt.Errorf("VRF %+v", v)
			}
			return err
		})
	}
}

func (w *world) vrf(node string, vni int) (v status.VRF, err error) {
	out, err := w.Exec(w.Context(), node, sluicectl(), "vrf", "show", fmt.Sprint(vni), "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &v)
	}
	return v, err
}

// onAnyPath is the lab with nodes that may forward IPv6, as the kernel path needs.
func onAnyPath(t *testing.T) *world {
	t.Helper()
	w := shared(t)
	for _, n := range w.chassis() {
		w.exec(n, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
	}
	t.Cleanup(func() {
		for _, cloud := range []string{"a", "b"} {
			_, _ = w.NB(background, cloud, "remove", "logical_router_port", "lrp-red-gw", "external_ids", "sluice-path")
		}
		if t.Failed() {
			for _, n := range []string{"a1", "b1"} {
				for _, show := range []string{
					sluicectl() + " vrf show 1001; " + sluicectl() + " diff", "ip -d link show type vrf; ip rule; ip -6 rule",
					"ip route show vrf vrf-1001; ip -6 route show vrf vrf-1001; ip neigh; ip -6 neigh", "ip -s -d link | grep -A6 '1001'",
					sluicectl() + " status; " + sluicectl() + " bgp neighbors -o json", "ss -tanp; ip -s link show " + lab.UnderlayLink + "; nstat -az | grep -v ' 0 '",
				} {
					out, err := w.Exec(background, n, "sh", "-c", show)
					t.Logf("%s: %s: %v\n%s", n, show, err, tail(out, 6000))
				}
			}
		}
	})
	return w
}

// A VRF changes its path under traffic and loses at most two packets of each
// stream; the other tenant's loses none.
func TestFlipPath(t *testing.T) {
	w := onAnyPath(t)
	w.clean()
	for _, path := range []string{"kernel", "ebpf"} {
		w.flips(path)
		w.parity(false)
	}
	w.clean()
}

// flips changes red's path. Blue's path stays, and it may lose nothing. An emulated processor
// that falls behind loses packets of everybody. What Sluice does not touch is the control: VMs
// of one network on the same two chassis, and the test's own clock, since one that stands still loses BGP
// sessions, too. A change in which these were disturbed says nothing and is made once
// more, whatever red and blue have lost in it.
func (w *world) flips(path string) {
	w.Helper()
	other := map[string]string{"kernel": "ebpf", "ebpf": "kernel"}[path]
	for flips := []flip{}; ; {
		flips = append(flips, w.flip(path))
		again, problem := judge(flips, func(text string) { w.Logf("to path %s: %s", path, text) })
		if problem != "" {
			w.Errorf("to path %s: %s", path, problem)
		}
		if !again {
			return
		}
		w.redOn(other)
		w.connected()
	}
}

// flip changes red's path once.
func (w *world) flip(path string) (f flip) {
	w.Helper()
	var of []*int
	var streams []*stream
	still := standstill()
	for _, one := range []struct {
		vm, addr string
		lost     *int
	}{
		{"a-red1", addrB4, &f.red[0]}, {"b-red1", addrA6, &f.red[1]}, {"a-blue1", addrB4, &f.blue},
		// On chassis a2 and a1, where the gateways are.
		{"a-red1", "10.10.0.12", &f.control[0]}, {"a-red2", "fd00:10::11", &f.control[1]},
	} {
		streams, of = append(streams, w.stream(one.vm, one.addr)), append(of, one.lost)
	}
	w.redOn(path)
	w.reach("a-red1", addrB4, addrB6)
	for i, s := range streams {
		sent, lost := s.stop()
		w.Logf("to path %s: %s: %d of %d lost", path, s.name, lost, sent)
		if sent == 0 {
			w.Fatalf("%s sent nothing", s.name)
		}
		*of[i] = lost
	}
	f.still = still()
	w.Logf("to path %s: the machine stood still for %v at most", path, f.still)
	return f
}

// The whole table of what works on either path, on each.
func TestPathParity(t *testing.T) {
	w := onAnyPath(t)
	for _, path := range []string{"kernel", "ebpf"} {
		w.redOn(path)
		w.clean()
		w.reach("a-red1", addrB4, addrB6)
		w.parity(true)
	}
	w.reach("a-red1", addrB4, addrB6)
	w.clean()
}

// Both paths, where the provider networks are VLANs on two bridges, of either kind of
// datapath: the userspace one is that of DPDK.
func TestPathVLANs(t *testing.T) {
	for _, kernel := range []bool{true, false} {
		t.Run(map[bool]string{true: "system", false: "netdev"}[kernel], func(t *testing.T) {
			w := own(t, lab.EVPN(lab.EVPNParams{KernelDatapath: kernel, VLAN: 100, TwoBridges: true}), fabricOf("  mtu: 1350\n"))
			for _, n := range w.chassis() {
				w.exec(n, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
			}
			w.connected()
			for _, path := range []string{"kernel", "ebpf"} {
				w.redOn(path)
				w.clean()
				w.reach("a-red1", addrB4, addrB6)
				w.parity(false)
			}
		})
	}
}
