//go:build guest

package evpn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// What an operator has where the kernel path would be stays as it is, while sluiced
// runs, at its end, and when everything of Sluice is removed; what is in the way of
// which object is said, and the rest goes on.
func TestPathForeign(t *testing.T) {
	w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{KernelDatapath: true}))}
	w.exec("a1", "sh", "-ec", `echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
		ip link add vrf-1001 type vrf table 1001; ip link set vrf-1001 up
		ip link add br-1001 type bridge; ip link set br-1001 master vrf-1001; ip link set br-1001 up; ip addr add 10.99.0.1/24 dev br-1001
		ip route add 10.98.0.0/24 via 10.99.0.2 dev br-1001 onlink table 1001 proto static
		ip route add 10.97.0.0/24 via 10.99.0.2 dev br-1001 onlink table 2001 proto bird
		ovs-ofctl add-flow br-ex cookie=0xabc,priority=7,tcp,tp_dst=9,actions=drop`)
	w.exec("b1", "sh", "-ec", "ip link add vxlan-1001 type vxlan id 1001 dstport 4789; ip link set vxlan-1001 up")
	objects := func() string {
		return w.exec("a1", "sh", "-ec", `for d in vrf-1001 br-1001; do ip -d -o link show $d | sed 's/[a-z_]*_timer *[0-9.]*//g'; done; ip -o addr show br-1001; ip route show table 1001
			ip route show table 2001 proto bird; ovs-ofctl --no-stats dump-flows br-ex cookie=0xabc/-1`)
	}
	before, vxlan := objects(), w.exec("b1", "ip", "-d", "-o", "link", "show", "vxlan-1001")
	same := func(when string) {
		t.Helper()
		if after := objects(); after != before {
			t.Errorf("%s it is\n%s\nand was\n%s", when, after, before)
		}
		if after := w.exec("b1", "ip", "-d", "-o", "link", "show", "vxlan-1001"); after != vxlan {
			t.Errorf("%s it is\n%s\nand was\n%s", when, after, vxlan)
		}
	}
	w.start("")
	w.eventually("b1 names the holder of the port, and what to do", func() error {
		s, err := w.status("b1")
		for _, c := range s.Conditions {
			if !c.Ready && strings.Contains(c.Detail, "UDP port 4789 is held by link vxlan-1001 (vxlan): remove or stop it, or give the fabric another UDP port") {
				return nil
			}
		}
		return fmt.Errorf("%w; conditions %+v", err, s.Conditions)
	})
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	for _, port := range []string{"lrp-red-gw", "lrp-blue-gw"} {
		w.nb("a", "set", "logical_router_port", port, "external_ids:sluice-path=kernel")
	}
	w.problem("a1", "foreign", "1001")
	w.eventually("red stays on its path, blue changes to the other", func() error {
		red, err := w.vrf("a1", vniRed)
		blue, err2 := w.vrf("a1", vniBlue)
		if err == nil && (red.Path != "ebpf" || red.Reason != reason.PathChanging || red.StateReason != reason.Foreign || blue.Path != "kernel") {
			err = fmt.Errorf("red %+v, blue %+v", red, blue)
		}
		return errors.Join(err, err2)
	})
	same("while sluiced runs")
	w.kill("a1", "sluiced")
	same("when it has ended")
	w.startAgain("a1", "sluiced")
	w.ready("a1")
	same("when it has started again")
	for _, n := range w.chassis() {
		w.kill(n, "sluiced")
		w.Logf("cleanup on %s:\n%s", n, w.exec(n, sluicectl(), "cleanup", "--config", w.node(n).Dir+"/sluiced.yaml"))
	}
	same("after the cleanup")
	w.nothingLeft("none")
	if out := w.exec("a1", "sh", "-c", "ip -o link | grep 2001 || true"); out != "" {
		t.Errorf("left of blue: %s", out)
	}
}
