package bpf_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A VXLAN device without tunnel metadata takes what comes from anybody; with
// vtep_guard, from VTEPs of the fabric alone, also while no process runs, until it is
// taken off. What is no VXLAN passes.
func TestVTEPGuard(t *testing.T) {
	m := newMachine(t, ebpf.HookAuto)
	for _, line := range []string{
		"ip -n NODE link add v4 type vxlan id 7 dstport 4789 nolearning local 192.0.2.1", "ip -n NODE link set v4 up",
		"ip -n NODE link add v6 type vxlan id 7 dstport 4789 nolearning local 2001:db8:ffff::1 udp6zerocsumrx", "ip -n NODE link set v6 up",
		"ip -n PEER addr add 192.0.2.10/24 dev under", "ip -n PEER addr add 2001:db8:ffff::10/64 dev under nodad",
	} {
		command(t, strings.NewReplacer("NODE", name(m.node), "PEER", name(m.far)).Replace(line))
	}
	others := map[netip.Addr]*net.UDPConn{}
	m.inside(m.far, func() error {
		for _, a := range []string{"192.0.2.10", "2001:db8:ffff::10"} {
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(a), 0)))
			if err != nil {
				return err
			}
			t.Cleanup(func() { c.Close() })
			others[netip.MustParseAddr(a)] = c
		}
		return nil
	})
	counts := func() string { return m.received("v4") + " " + m.received("v6") }
	const packets = 3
	send := func(sockets map[netip.Addr]*net.UDPConn) {
		t.Helper()
		for a, c := range sockets {
			to := "192.0.2.1"
			if a.Is6() {
				to = "2001:db8:ffff::1"
			}
			frame := append([]byte{8, 0, 0, 0, 0, 0, 7, 0}, make([]byte, 64)...)
			copy(frame[8:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9})
			for range packets {
				// The refusal of an earlier one may be told here.
				_, _ = c.WriteToUDPAddrPort(frame, netip.AddrPortFrom(netip.MustParseAddr(to), kernel.DefaultPort))
			}
		}
	}
	expect := func(want, when string) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for counts() != want {
			if time.Now().After(deadline) {
				t.Fatalf("%s: received %s, want %s", when, counts(), want)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	d := m.dataplane()
	send(others)
	expect("3 3", "without it")
	var rows []reconcile.Row[netip.Addr, intent.VTEP]
	for a := range m.peer {
		rows = append(rows, reconcile.Row[netip.Addr, intent.VTEP]{Key: a, Value: intent.VTEP{Addr: a}})
	}
	if errs := d.VTEPs().Apply(t.Context(), rows); errs != nil {
		t.Fatal(errs)
	}
	guard := func() {
		t.Helper()
		m.inside(m.node, func() error { return d.GuardVTEPs(kernel.DefaultPort) })
	}
	guard()
	guard()
	send(others)
	send(m.peer)
	expect("6 6", "with it")
	if n := m.dropped(drop.UnknownVTEP); n < 2*packets {
		t.Errorf("%d were counted, want %d", n, 2*packets)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	send(others)
	send(m.peer)
	expect("9 9", "without a process")
	d = m.dataplane()
	guard()
	send(others)
	send(m.peer)
	expect("12 12", "with another process")
	if err := d.UnguardVTEPs(); err != nil {
		t.Fatal(err)
	}
	if err := d.UnguardVTEPs(); err != nil {
		t.Errorf("once more: %v", err)
	}
	send(others)
	expect("15 15", "after it was taken off")
	guard()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	m.inside(m.node, func() error { return ebpf.Remove(m.dir, ebpf.Fabric) })
	send(others)
	expect("18 18", "after all was removed")
}

// dataplane is loaded for the node, with no device.
func (m *machine) dataplane() *ebpf.Dataplane {
	m.t.Helper()
	var d *ebpf.Dataplane
	m.inside(m.node, func() (err error) {
		d, err = ebpf.Load(ebpf.Config{Dir: m.dir, Log: slog.New(slog.DiscardHandler), Limits: fewRows, Node: node()})
		return err
	})
	return d
}

// received counts the packets of a device.
func (m *machine) received(device string) string {
	m.t.Helper()
	out, err := exec.Command("ip", "-n", name(m.node), "-s", "-j", "link", "show", device).Output()
	var links []struct {
		Stats64 struct {
			Rx struct{ Packets, Dropped int }
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &links)
	}
	if err != nil || len(links) != 1 {
		m.t.Fatalf("device %s: %v: %s", device, err, out)
	}
	return fmt.Sprint(links[0].Stats64.Rx.Packets)
}

func (m *machine) dropped(reason drop.Reason) uint64 {
	m.t.Helper()
	r, err := ebpf.OpenReader(m.dir, ebpf.Fabric)
	if err != nil {
		m.t.Fatal(err)
	}
	defer r.Close()
	counts, err := r.Drops()
	if err != nil {
		m.t.Fatal(err)
	}
	return counts[reason]
}

// name is as "ip netns" has it.
func name(ns netns.Namespace) string { return filepath.Base(ns.String()) }
