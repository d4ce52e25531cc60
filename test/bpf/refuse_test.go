package bpf_test

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// clsactOf is the qdisc that the second line is in.
func clsactOf(ifindex int) *netlink.GenericQdisc {
	return &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifindex,
		Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
}

// A device without its program hands nothing to the host. As a control, the same
// frames do arrive once the second line is gone too.
func TestLostProgram(t *testing.T) {
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			m := newMachine(t, hook)
			m.start(1500)
			m.traffic()
			index := m.devices[ebpf.OverlayIn]
			var near intent.MAC
			var sockets []*net.UDPConn
			m.inside(m.node, func() error {
				if err := m.d.Detach(ebpf.OverlayIn, index); err != nil {
					return err
				}
				dev, err := net.InterfaceByIndex(index)
				if err != nil {
					return err
				}
				near = intent.MAC(dev.HardwareAddr)
				for _, a := range []string{"192.0.2.1", "2001:db8:ffff::1"} {
					c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(a), Port: 7777})
					if err != nil {
						return err
					}
					sockets = append(sockets, c)
					t.Cleanup(func() { c.Close() })
				}
				return nil
			})
			toHost := func(payload string) {
				m.ovsFrame(frame(ether(gwMAC, near, layers.EthernetTypeIPv4), ip4("192.0.2.77", "192.0.2.1", layers.IPProtocolUDP), udp(), gopacket.Payload(payload)))
				m.ovsFrame(frame(ether(gwMAC, near, layers.EthernetTypeIPv6), ip6("2001:db8:ffff::77", "2001:db8:ffff::1", layers.IPProtocolUDP), udp(), gopacket.Payload(payload)))
			}
			for range 20 {
				toHost("tenant")
			}
			m.inside(m.node, func() error { return netlink.QdiscDel(clsactOf(index)) })
			toHost("control")
			for _, c := range sockets {
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
				buf := make([]byte, 64)
				n, err := c.Read(buf)
				if got := string(buf[:n]); err != nil || got != "control" {
					t.Errorf("%s heard %q first, %v", c.LocalAddr(), got, err)
				}
			}
		})
	}
}

// secondLine is a device with a program, and what is known of its second line.
type secondLine struct {
	t     *testing.T
	d     *ebpf.Dataplane
	index int
}

func (s secondLine) is(want bool, when string) {
	s.t.Helper()
	if ok, err := s.d.Attached(ebpf.OverlayIn, s.index); ok != want || err != nil {
		s.t.Errorf("%s: attached %t, %v", when, ok, err)
	}
}

// ours is the filter, or nil.
func (s secondLine) ours() *netlink.BpfFilter {
	s.t.Helper()
	all, err := netlink.FilterList(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: s.index}}, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range all {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Name == "sluice_refuse" {
			return b
		}
	}
	return nil
}

// A second line that was taken away or broken is missed, and made again; a foreign
// filter in its place stays, and is named.
func TestSecondLineIsMended(t *testing.T) {
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			s := secondLine{t: t, index: index}
			if err := ns.Do(func() error {
				s.d = load(t, ebpf.Config{Dir: bpffs(t), Node: node(), Hook: hook, Limits: fewRows})
				return s.mended()
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func (s secondLine) mended() error {
	attach := func() error { return s.d.Attach(ebpf.OverlayIn, s.index) }
	if err := attach(); err != nil {
		return err
	}
	s.is(true, "as made")
	filter := s.ours()
	if filter == nil {
		return errors.New("there is no filter sluice_refuse")
	}
	before := filter.Id
	if err := attach(); err != nil || s.ours().Id != before {
		s.t.Errorf("made anew without need, %v", err)
	}
	if err := netlink.FilterDel(filter); err != nil {
		return err
	}
	s.is(false, "without the filter")
	if err := attach(); err != nil {
		return err
	}
	s.is(true, "with the filter again")

	other := *filter
	other.Fd = passing(s.t).FD()
	if err := netlink.FilterReplace(&other); err != nil {
		return err
	}
	s.is(false, "with another program in the filter")
	if err := attach(); err != nil {
		return err
	}
	s.is(true, "with its program again")

	other.Name = "theirs"
	if err := errors.Join(netlink.FilterDel(filter), netlink.FilterAdd(&other)); err != nil {
		return err
	}
	if err := attach(); !errors.Is(err, reconcile.ErrForeign) {
		s.t.Errorf("with a foreign filter in the place: %v", err)
	}
	if err := errors.Join(netlink.FilterDel(&other), netlink.QdiscDel(clsactOf(s.index))); err != nil {
		return err
	}
	s.is(false, "without the qdisc")
	if err := attach(); err != nil {
		return fmt.Errorf("without the qdisc: %w", err)
	}
	s.is(true, "with the qdisc again")
	return nil
}
