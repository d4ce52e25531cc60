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
	w := &world{t, labtest.Up(t, lab.EVPN(lab.EVPNParams{}))}
	const flow = "cookie=0xabc,priority=7,tcp,tp_dst=9"
	w.exec("a1", "ip", "link", "add", "sluice0", "type", "bridge")
	w.exec("b1", "ip", "link", "add", "sluice-vxlan", "type", "bridge")
	for _, n := range []string{"a1", "b1"} {
		w.exec(n, "ovs-ofctl", "add-flow", "br-ex", flow+",actions=drop")
	}
	sluice0, vxlan := w.exec("a1", "ip", "-o", "link", "show", "sluice0"), w.exec("b1", "ip", "-o", "link", "show", "sluice-vxlan")
	w.start("")
	// The name of the veth pair is free to choose, that of the VXLAN device is not.
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.eventually("b1 names the device in its way", func() error {
		s, err := w.status("b1")
		if err != nil {
			return err
		}
		for _, c := range s.Conditions {
			if !c.Ready && strings.Contains(c.Detail, "sluice-vxlan") {
				return nil
			}
		}
		return fmt.Errorf("conditions: %+v", s.Conditions)
	})
	if got := w.exec("b1", "ip", "-o", "link", "show", "sluice-vxlan"); got != vxlan {
		t.Errorf("the foreign sluice-vxlan was touched:\n%s\nbefore:\n%s", got, vxlan)
	}
	w.exec("b1", "ip", "link", "del", "sluice-vxlan")
	w.connected()
	w.clean()

	foreign := func() {
		t.Helper()
		if got := w.exec("a1", "ip", "-o", "link", "show", "sluice0"); got != sluice0 {
			t.Errorf("the foreign sluice0 was touched:\n%s\nbefore:\n%s", got, sluice0)
		}
		for _, n := range []string{"a1", "b1"} {
			if out := w.exec(n, "ovs-ofctl", "dump-flows", "br-ex"); !strings.Contains(out, "cookie=0xabc") {
				t.Errorf("the foreign flow of %s is gone:\n%s", n, out)
			}
		}
	}
	foreign()
	for _, n := range w.chassis() {
		if out, err := w.Exec(t.Context(), n, sluicectl(), "cleanup"); err == nil {
			t.Errorf("cleanup on %s while sluiced runs:\n%s", n, out)
		}
		w.kill(n, "sluiced")
		w.Logf("cleanup on %s:\n%s", n, w.exec(n, sluicectl(), "cleanup", "--config", w.node(n).Dir+"/sluiced.yaml"))
	}
	foreign()
	for _, n := range w.chassis() {
		for line := range strings.Lines(w.exec(n, "ip", "-o", "link")) {
			if strings.Contains(line, "sluice") && !strings.Contains(line, "sluice0: ") {
				t.Errorf("left on %s: %s", n, line)
			}
		}
		if out := w.exec(n, "sh", "-c", `ovs-vsctl --no-heading --columns=name find Interface name!=x | grep sluice || true`); out != "" {
			t.Errorf("left in the switch of %s: %s", n, out)
		}
		if out := w.exec(n, "sh", "-c", "ls -A $SLUICE_BPFFS 2>/dev/null || true"); strings.TrimSpace(out) != "" {
			t.Errorf("left in the bpffs of %s: %s", n, out)
		}
	}
}

// A tenant sends to the node's own addresses: nothing arrives at its sockets,
// with the programs and without them.
func TestTenantNeverReachesTheHost(t *testing.T) {
	w := own(t, lab.EVPN(lab.EVPNParams{}), "")
	w.connected()
	n := w.node("a1")
	targets := []string{
		n.VTEP4.String(), n.VTEP6.String(), fmt.Sprintf("172.29.%d.2", n.Index), fmt.Sprintf("fd29:%d::2", n.Index), n.Encap.String(),
	}
	got := w.listen("a1", 7777)
	// The listener works: another node reaches it over the underlay.
	w.send("b1", targets[:2], 7777)
	w.eventually("the listener hears the underlay", func() error {
		if n := len(got()); n != 6 {
			return fmt.Errorf("%d datagrams of 6", n)
		}
		return nil
	})
	heard := len(got())
	attack := func(what string) {
		t.Helper()
		for _, vm := range []string{"a-red1", "a-blue1", "b-red1"} {
			w.send(vm, targets, 7777)
			for _, a := range targets {
				if out, err := w.Exec(t.Context(), vm, "ping", "-n", "-c2", "-i0.05", "-W0.3", a); err == nil {
					t.Errorf("%s: %s answers %s:\n%s", what, a, vm, out)
				}
			}
		}
		if all := got(); len(all) != heard {
			t.Errorf("%s: the host got %v", what, all[heard:])
		}
	}
	attack("with programs")
	for _, c := range w.chassis() {
		w.kill(c, "sluiced")
		// A link goes with its pin.
		w.exec(c, "sh", "-c", `find "$SLUICE_BPFFS" -type f -name '*link*' -print -delete`)
	}
	// The kernel lets go of an unpinned link only some time later.
	w.eventually("the programs are off", func() error {
		if _, err := w.Exec(t.Context(), "a-red1", "ping", "-n", "-c1", "-W0.3", addrB4); err == nil {
			return fmt.Errorf("a-red1 reaches %s", addrB4)
		}
		return nil
	})
	w.unreachable("a-red1", addrB4, addrB6)
	attack("without programs")
	for _, c := range w.chassis() {
		w.startAgain(c, "sluiced")
	}
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
