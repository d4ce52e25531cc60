package evpn_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// Links and flows of others that have Sluice's names stay as they are, while
// sluiced runs and when everything of Sluice is removed.
func TestForeignObjects(t *testing.T) {
	w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{}))}
	const flow = "cookie=0xabc,priority=7,tcp,tp_dst=9"
	w.exec("a1", "ip", "link", "add", "sluice0", "type", "bridge")
	w.exec("b1", "ip", "link", "add", "sluice-vxlan", "type", "bridge")
	for _, n := range []string{"a1", "b1"} {
		w.exec(n, "ovs-ofctl", "add-flow", "br-ex", flow+",actions=drop")
	}
	w.exec("a1", "sh", "-ec", `ip link add br-1001 type bridge; ip link set br-1001 up; ip addr add 10.99.0.1/24 dev br-1001
		ip route add 10.98.0.0/24 via 10.99.0.2 table 1001 proto static; ip -6 route add fd98::/64 dev br-1001 table 1001 proto bird`)
	operators := func() string {
		return w.exec("a1", "sh", "-ec", "ip -o link show br-1001; ip -o -4 addr show br-1001; ip route show table 1001; ip -6 route show table 1001")
	}
	kept := operators()
	sluice0, vxlan := w.exec("a1", "ip", "-o", "link", "show", "sluice0"), w.exec("b1", "ip", "-o", "link", "show", "sluice-vxlan")
	w.start("")
	// The name of the veth pair is free to choose, that of the VXLAN device is not.
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	named := func(what, detail string) {
		t.Helper()
		w.eventually("b1 names "+what, func() error {
			s, err := w.status("b1")
			if err != nil {
				return err
			}
			for _, c := range s.Conditions {
				if !c.Ready && strings.Contains(c.Detail, detail) {
					return nil
				}
			}
			return fmt.Errorf("conditions: %+v", s.Conditions)
		})
	}
	named("the device in its way", "sluice-vxlan")
	if got := w.exec("b1", "ip", "-o", "link", "show", "sluice-vxlan"); got != vxlan {
		t.Errorf("the foreign sluice-vxlan was touched:\n%s\nbefore:\n%s", got, vxlan)
	}
	w.exec("b1", "sh", "-ec", "ip link add vxlan-1001 type vxlan id 1001 dstport 4789; ip link del sluice-vxlan")
	vxlan = w.exec("b1", "ip", "-d", "-o", "link", "show", "vxlan-1001")
	named("the holder of its UDP port", "UDP port 4789 is held by link vxlan-1001 (vxlan): remove or stop it, or give the fabric another UDP port")
	if got := w.exec("b1", "ip", "-d", "-o", "link", "show", "vxlan-1001"); got != vxlan {
		t.Errorf("the foreign vxlan-1001 was touched:\n%s\nbefore:\n%s", got, vxlan)
	}
	w.exec("b1", "ip", "link", "del", "vxlan-1001")
	w.connected()
	w.clean()

	foreign := func() {
		t.Helper()
		if got := w.exec("a1", "ip", "-o", "link", "show", "sluice0"); got != sluice0 {
			t.Errorf("the foreign sluice0 was touched:\n%s\nbefore:\n%s", got, sluice0)
		}
		if got := operators(); got != kept {
			t.Errorf("what an operator has of VRF 1001 was touched:\n%s\nbefore:\n%s", got, kept)
		}
		for _, n := range []string{"a1", "b1"} {
			if out := w.exec(n, "ovs-ofctl", "dump-flows", "br-ex"); !strings.Contains(out, "cookie=0xabc") {
				t.Errorf("the foreign flow of %s is gone:\n%s", n, out)
			}
		}
	}
	foreign()
	w.contested("a1")
	for _, n := range w.chassis() {
		if out, err := w.Exec(t.Context(), n, sluicectl(), "cleanup"); err == nil {
			t.Errorf("cleanup on %s while sluiced runs:\n%s", n, out)
		}
		w.kill(n, "sluiced")
		w.Logf("cleanup on %s:\n%s", n, w.exec(n, sluicectl(), "cleanup", "--config", w.node(n).Dir+"/sluiced.yaml"))
	}
	foreign()
	w.nothingLeft("sluice0")
}

// nothingLeft: no device, port or pin of Sluice's is on a node; the device named
// is somebody else's.
func (w *world) nothingLeft(foreign string) {
	w.Helper()
	for _, n := range w.chassis() {
		for line := range strings.Lines(w.exec(n, "ip", "-o", "link")) {
			if strings.Contains(line, "sluice") && !strings.Contains(line, foreign+": ") {
				w.Errorf("left on %s: %s", n, line)
			}
		}
		if out := w.exec(n, "sh", "-c", `ovs-vsctl --no-heading --columns=name find Interface name!=x | grep sluice || true`); out != "" {
			w.Errorf("left in the switch of %s: %s", n, out)
		}
		if out := w.exec(n, "sh", "-c", "ls -A $SLUICE_BPFFS 2>/dev/null || true"); strings.TrimSpace(out) != "" {
			w.Errorf("left in the bpffs of %s: %s", n, out)
		}
	}
}

// contested gives a foreign flow the match of one of Sluice's: it stays, it is
// named, and Sluice's own is back once it has gone.
func (w *world) contested(node string) {
	w.Helper()
	match := w.exec(node, "sh", "-ec", `ovs-ofctl -O OpenFlow14 --no-names --no-stats dump-flows br-ex |
		grep 'nw_src=10.10.0.0/24' | grep -v cookie=0xabc | head -n1 | sed 's/^ *cookie=[^,]*, *//; s/ actions=.*//'`)
	match = strings.TrimSpace(match)
	if match == "" {
		w.Fatalf("no steering flow of 10.10.0.0/24:\n%s", w.exec(node, "ovs-ofctl", "dump-flows", "br-ex"))
	}
	w.exec(node, "ovs-ofctl", "-O", "OpenFlow14", "add-flow", "br-ex", "cookie=0xf00,"+match+",actions=drop")
	w.eventually("the foreign flow is named", func() error {
		s, err := w.status(node)
		if err != nil {
			return err
		}
		for _, o := range s.Problems {
			if o.Kind == "flow" && o.Reason == "foreign" && strings.Contains(o.Error, "0xf00") {
				return nil
			}
		}
		return fmt.Errorf("problems: %+v", s.Problems)
	})
	if out := w.exec(node, "ovs-ofctl", "dump-flows", "br-ex"); !strings.Contains(out, "cookie=0xf00") {
		w.Errorf("the foreign flow is gone:\n%s", out)
	}
	w.exec(node, "ovs-ofctl", "-O", "OpenFlow14", "del-flows", "br-ex", "cookie=0xf00/-1")
	w.connected()
	// One of a higher priority takes the packets from Sluice's, and is named too.
	port, _, _ := strings.Cut(match[strings.Index(match, "in_port=")+len("in_port="):], ",")
	w.exec(node, "ovs-ofctl", "-O", "OpenFlow14", "add-flow", "br-ex", "cookie=0xf01,priority=65535,ip,in_port="+port+",actions=drop")
	w.condition(node, "flows", false, "cookie=0xf01")
	w.exec(node, "ovs-ofctl", "-O", "OpenFlow14", "del-flows", "br-ex", "cookie=0xf01/-1")
	w.condition(node, "flows", true, "")
	w.connected()
	w.clean()
}

// listen collects the senders of datagrams on a port of a node.
func (w *world) listen(node string, port int) func() []string {
	w.Helper()
	var c net.PacketConn
	w.in(node, func() (err error) {
		c, err = net.ListenPacket("udp", fmt.Sprintf(":%d", port))
		return err
	})
	heard := make(chan string, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 2048)
		for {
			_, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			heard <- from.String()
		}
	}()
	w.Cleanup(func() { _ = c.Close(); <-done })
	var all []string
	return func() []string {
		for {
			select {
			case from := <-heard:
				all = append(all, from)
			default:
				return all
			}
		}
	}
}

// send sends a few datagrams to each of the addresses.
func (w *world) send(node string, addrs []string, port int) {
	w.Helper()
	for _, a := range addrs {
		w.in(node, func() error {
			c, err := net.Dial("udp", net.JoinHostPort(a, fmt.Sprint(port)))
			if err != nil {
				return err
			}
			defer c.Close()
			for range 3 {
				// An ICMP error to an earlier one is told here, and is fine.
				_, _ = c.Write([]byte("is anybody home?"))
			}
			return nil
		})
	}
}
