//go:build guest

package evpn_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// agentFRR is FRR's configuration beside ovn-bgp-agent, without VRFs. The node has two
// addresses at the reflector: sluiced takes the other.
const agentFRR = `hostname a1
log stdout informational
router bgp %[1]d
 bgp router-id %[2]s
 no bgp default ipv4-unicast
 neighbor %[3]s remote-as %[1]d
 neighbor %[3]s update-source %[4]s
 neighbor %[3]s timers connect 1
 address-family l2vpn evpn
  neighbor %[3]s activate
  advertise-all-vni
 exit-address-family
exit
`

// operators is a VRF of the form that the agent's have, and of an operator.
const operators = `ip link add vrf-3003 type vrf table 3003; ip link set vrf-3003 up
	ip link add br-3003 type bridge; ip link set br-3003 master vrf-3003
	ip link add vxlan-3003 type vxlan id 3003 dstport 14789; ip link set vxlan-3003 master br-3003
	ip link add vlan-3003 type dummy; ip link set vlan-3003 master vrf-3003; ip link set vlan-3003 up
	ip route add 10.33.0.0/24 dev vlan-3003 table 3003`

// takeover is one way to take a VRF over.
type takeover struct {
	name, path string
	// kept: vrf-1001 and br-1001 are used as they are.
	kept bool
	// alone: sluiced's neighbour never answers.
	alone bool
	// way is a script for the way into the provider bridge: the end in the VRF, and
	// the port.
	way, end, port string
}

const (
	vethWay = `ip link add veth-vrf-1001 address 02:00:00:00:10:02 type veth peer name veth-ovs-1001
		ip link set veth-ovs-1001 up; ovs-vsctl --timeout=30 add-port br-ex veth-ovs-1001`
	vlanWay = `ovs-vsctl --timeout=30 add-port br-ex vlan-1001 -- set interface vlan-1001 type=internal 'mac="02:00:00:00:10:02"'`
)

// A node with a whole VRF of ovn-bgp-agent, and FRR that speaks for it, is taken over
// under traffic: it is adopted, FRR's stanza goes, sluiced starts. On the kernel path
// vrf-1001 and br-1001 are used as they are; else they go, too, also where no neighbour
// ever ends its initial update. No end in the VRF is up for a moment without it, and an
// operator's VRF of the same form stays as it was.
func TestAdoptVRF(t *testing.T) {
	w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{KernelDatapath: true, Uplink: lab.UplinkGateway}))}
	a1, rr := w.node("a1"), w.node("rr")
	w.startOn("b1", "")
	w.exec("a1", "sh", "-ec", "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding\n"+operators)
	if err := w.StartFRR(t.Context(), "a1", fmt.Sprintf(agentFRR, lab.FabricAS, a1.VTEP4, rr.VTEP6, a1.VTEP6)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []takeover{
		{name: "eBPF path", path: "auto", way: vethWay, end: "veth-vrf-1001", port: "veth-ovs-1001"},
		{name: "kernel path", path: "kernel", kept: true, way: vethWay, end: "veth-vrf-1001", port: "veth-ovs-1001"},
		{name: "no neighbour", path: "auto", alone: true, way: vlanWay, end: "vlan-1001", port: "vlan-1001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{T: t, Lab: w.Lab}
			t.Cleanup(w.leaveAgent)
			w.nb("a", "set", "logical_router_port", "lrp-red-gw", "external_ids:sluice-path="+tt.path)
			w.agent(tt)
			w.reach("a-red1", addrB4, addrB6)
			w.reach("b-red1", addrA4, addrA6)
			others := func() string {
				return w.exec("a1", "sh", "-c", "ip -o link | grep 3003; ip route show table 3003")
			}
			before := others()
			w.adopts(tt)
			w.takesOver(tt)
			if now := others(); now != before {
				t.Errorf("an operator's VRF was\n%s\nand is\n%s", before, now)
			}
			w.kill("a1", "sluiced")
			w.exec("a1", sluicectl(), "cleanup", "--config", a1.Dir+"/sluiced.yaml")
		})
	}
}

// leaveAgent shows what a1 has if the test failed, and takes away what it left then.
func (w *world) leaveAgent() {
	if !w.Failed() {
		return
	}
	w.report()
	for _, script := range []string{
		"ip -d link; ip -4 route show table 1001; ip -6 route show table 1001; ovs-vsctl show", "vtysh -c 'show evpn vni' -c 'show bgp l2vpn evpn' -c 'show running'",
		sluicectl() + " vrf show 1001; " + sluicectl() + " diff; " + sluicectl() + " bgp routes",
	} {
		out, err := w.Exec(background, "a1", "sh", "-c", script+" 2>&1")
		w.Logf("%s: %v\n%s", script, err, tail(out, 8000))
	}
	if p, err := w.Process("a1", "sluiced"); err == nil {
		_ = p.Kill()
	}
	out, err := w.Exec(background, "a1", "sh", "-c", sluicectl()+` cleanup --config "$OVS_RUNDIR/adopt.yaml"
		vtysh -c 'configure terminal' -c 'vrf vrf-1001' -c 'no vni 1001' -c exit-vrf -c 'no router bgp 64512 vrf vrf-1001'
		for p in veth-ovs-1001 vlan-1001; do ovs-vsctl --if-exists del-port br-ex $p; done; ovs-ofctl del-flows br-ex cookie=998/-1
		for d in vxlan-1001 br-1001 lo-1001 veth-vrf-1001 vrf-1001; do ip link del $d; done`)
	w.Logf("cleanup: %v\n%s", err, out)
}

// agent makes what ovn-bgp-agent's EVPN driver makes for red on a1, and FRR's stanza.
func (w *world) agent(tt takeover) {
	w.Helper()
	gw := strings.Trim(strings.TrimSpace(w.nb("a", "get", "logical_router_port", "lrp-red-gw", "mac")), `"`)
	w.exec("a1", "sh", "-ec", fmt.Sprintf(`gw=%s vtep=%s
		ip link add vrf-1001 type vrf table 1001; ip link set vrf-1001 up
		ip link add br-1001 address 02:00:00:00:10:01 type bridge stp_state 0; ip link set br-1001 master vrf-1001 addrgenmode none up
		ip link add vxlan-1001 type vxlan id 1001 dstport 4789 local $vtep nolearning
		ip link set vxlan-1001 master br-1001 addrgenmode none; ip link set vxlan-1001 type bridge_slave learning off; ip link set vxlan-1001 up
		ip link add lo-1001 type dummy; ip link set lo-1001 master vrf-1001 up
		ip addr add 10.10.0.11/32 dev lo-1001; ip addr add fd00:10::11/128 dev lo-1001 nodad
		ip route del local 10.10.0.11 dev lo-1001 table 1001
		until ip -6 route del local fd00:10::11 dev lo-1001 table 1001; do sleep 0.1; done
		ip -6 route del fd00:10::11 dev lo-1001 table 1001
		%s
		end=%s; ip link set $end master vrf-1001 up
		ip neigh add 172.24.0.11 lladdr $gw dev $end nud permanent; ip neigh add 2001:db8:24::b lladdr $gw dev $end nud permanent
		ip route add 172.24.0.11 dev $end table 1001 scope link; ip route add 10.10.0.0/24 via 172.24.0.11 dev $end table 1001
		ip -6 route add 2001:db8:24::b dev $end table 1001; ip -6 route add fd00:10::/64 via 2001:db8:24::b dev $end table 1001
		ip route add unreachable default table 1001 metric 4278198272; ip -6 route add unreachable default table 1001 metric 4278198272
		patch=$(ovs-vsctl get interface $(ovs-vsctl list-ports br-ex | grep ^patch-) ofport); port=$(ovs-vsctl get interface %s ofport)
		for src in ip,nw_src=10.10.0.0/24 ipv6,ipv6_src=fd00:10::/64; do
			ovs-ofctl add-flow br-ex cookie=998,priority=1000,in_port=$patch,dl_src=$gw,$src,actions=mod_dl_dst:02:00:00:00:10:02,output:$port
		done`, gw, w.node("a1").VTEP4, tt.way, tt.end, tt.port))
	w.frr("vrf vrf-1001", "vni 1001", "exit-vrf", fmt.Sprintf("router bgp %d vrf vrf-1001", lab.FabricAS),
		"address-family ipv4 unicast", "redistribute connected", "exit-address-family",
		"address-family ipv6 unicast", "redistribute connected", "exit-address-family",
		"address-family l2vpn evpn", "advertise ipv4 unicast", "advertise ipv6 unicast", "exit-address-family")
}

// frr configures a1's.
func (w *world) frr(lines ...string) {
	w.Helper()
	argv := []string{"vtysh", "-c", "configure terminal"}
	for _, line := range lines {
		argv = append(argv, "-c", line)
	}
	if out := w.exec("a1", argv...); strings.Contains(out, "% ") {
		w.Errorf("FRR: %s", out)
	}
}

// adopts adopts red on a1, and nothing else. Traffic goes on.
func (w *world) adopts(tt takeover) {
	w.Helper()
	file := w.node("a1").Dir + "/adopt.yaml"
	w.exec("a1", "sh", "-c", "cat >"+file+" <<END\n"+fmt.Sprintf(lab.Config, w.node("rr").VTEP4)+"END")
	adopt := func(args ...string) string {
		return w.exec("a1", append([]string{sluicectl(), "adopt", "--config", file}, args...)...)
	}
	streams := []*stream{w.stream("a-red1", addrB4, "-i", "0.05"), w.stream("b-red1", addrA6, "-i", "0.05")}
	w.Logf("%s", adopt())
	out := adopt("--apply", "--vrf", "1001")
	for _, want := range []string{
		"adopted VRF 1001: devices vrf-1001, br-1001, vxlan-1001, lo-1001, " + tt.end,
		"adopted 2 flows of bridge br-ex with cookie 998\n",
	} {
		if !strings.Contains(out, want) {
			w.Errorf("adopted: %s, want %s", out, want)
		}
	}
	if out := adopt(); !strings.HasPrefix(out, "leaves vrf-3003: ") || !strings.Contains(out, "\nnothing of another agent is here\n") {
		w.Errorf("listed again: %s", out)
	}
	w.reach("a-red1", addrB4, addrB6)
	w.reach("b-red1", addrA4, addrA6)
	for _, s := range streams {
		if sent, lost := s.stop(); lost > 2 || sent == 0 {
			w.Errorf("%s: %d of %d lost while it was adopted", s.name, lost, sent)
		}
	}
}

// takesOver is what comes after.
func (w *world) takesOver(tt takeover) {
	w.Helper()
	numbers := func() string {
		return w.exec("a1", "sh", "-c", "for d in vrf-1001 br-1001; do ip -o link show $d | cut -d : -f 1; done")
	}
	kept, watched := numbers(), w.watchEnd("a1", tt.end)
	streams := []*stream{w.stream("a-red1", addrB4, "-i", "0.05"), w.stream("b-red1", addrA6, "-i", "0.05")}
	start := time.Now()
	w.frr("vrf vrf-1001", "no vni 1001", "exit-vrf")
	// FRR wants the second step again while the first one is under way.
	w.eventually("FRR has let go of the VRF", func() error {
		out, err := w.Exec(w.Context(), "a1", "vtysh", "-c", "configure terminal", "-c", fmt.Sprintf("no router bgp %d vrf vrf-1001", lab.FabricAS))
		if err == nil && strings.Contains(out, "% ") {
			err = fmt.Errorf("FRR: %s", out)
		}
		return err
	})
	w.Logf("FRR's stanza is gone after %d ms", time.Since(start).Milliseconds())
	neighbour := w.node("rr").VTEP4.String()
	if tt.alone {
		neighbour = w.node("b1").VTEP4.String() // it does not listen
	}
	// The node comes back with other things than it left: its neighbours keep them for a
	// short time. It waits as long for one that does not answer.
	text := fmt.Sprintf(strings.Replace(lab.Config, "  neighbors:", "  gracefulRestart:\n    time: 10s\n  neighbors:", 1), neighbour)
	if _, err := w.StartSluiced(w.Context(), "a1", lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}); err != nil {
		w.Fatal(err)
	}
	if !tt.alone {
		w.reach("a-red1", addrB4, addrB6)
		w.reach("b-red1", addrA4, addrA6)
	}
	w.agentGone(tt)
	if !tt.alone {
		w.eventually("all is done on a1", func() error { return w.settled("a1") })
		w.reach("a-red1", addrB4, addrB6)
	}
	for _, s := range streams {
		sent, lost := s.stop()
		w.Logf("%s: %d of %d lost, %d ms without an answer", s.name, lost, sent, 50*s.longest())
	}
	watched()
	if now := numbers(); tt.kept && now != kept {
		w.Errorf("the VRF and its bridge were not kept: %q, %q", kept, now)
	}
	w.unreachable("a-red1", w.node("a1").VTEP4.String(), w.node("a1").VTEP6.String())
}

// agentGone waits until nothing of the agent's is left but what Sluice uses.
func (w *world) agentGone(tt takeover) {
	w.Helper()
	names := []string{"vxlan-1001", "lo-1001", tt.end, tt.port}
	if !tt.alone {
		names = append(names, "priority=1000") // else the rows that take their place wait
	}
	if !tt.kept {
		names = append(names, "vrf-1001", "br-1001")
	}
	w.eventually(fmt.Sprintf("%v are gone", names), func() error {
		left := w.exec("a1", "sh", "-c", "ip -o link; ovs-vsctl list-ports br-ex; ovs-ofctl --no-stats dump-flows br-ex")
		for _, name := range names {
			if strings.Contains(left, name) {
				return fmt.Errorf("%s is there: %s", name, left)
			}
		}
		return nil
	})
}

// watchEnd watches a device; the function that it gives ends that and says whether the
// device was up without its VRF, and that it went.
func (w *world) watchEnd(node, device string) func() {
	w.Helper()
	cmd, err := w.Command(w.Context(), node, "ip", "-o", "monitor", "link")
	if err != nil {
		w.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	return func() {
		w.Helper()
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		gone := false
		for line := range strings.Lines(out.String()) {
			deleted := strings.HasPrefix(line, "Deleted ")
			_, name, _ := strings.Cut(strings.TrimPrefix(line, "Deleted "), ": ")
			if !strings.HasPrefix(name, device+"@") && !strings.HasPrefix(name, device+":") {
				continue
			}
			gone = gone || deleted
			if flags, _, _ := strings.Cut(name, ">"); !deleted && strings.Contains(flags, ",UP") && !strings.Contains(line, " master ") {
				w.Errorf("up without its VRF: %s", line)
			}
		}
		if !gone {
			w.Errorf("%s did not go: %s", device, out.String())
		}
	}
}

// longest is the longest run of packets that were sent and not answered.
func (s *stream) longest() int {
	longest, last := 0, 0
	for _, m := range pingAnswer.FindAllStringSubmatch(s.out.String(), -1) {
		n, _ := strconv.Atoi(m[1])
		longest, last = max(longest, n-last-1), n
	}
	return longest
}
