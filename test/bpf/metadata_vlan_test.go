package bpf_test

import (
	"errors"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
)

// A trunk's subport: its frames are tagged on the way in and back, and only there. The
// guest is a packet socket: not every kernel has VLAN devices.
func TestMetadataVLAN(t *testing.T) {
	for _, hook := range tapHooks {
		t.Run(hook.String(), func(t *testing.T) {
			s := newSite(t, hook)
			s.serve("proxy", proxyListens...)
			for _, source := range []taps.Source{
				{IfIndex: s.index["tapvm1"], VLAN: 300, MAC: strangerM, Addr: addr("10.0.0.6"), Number: 1000, Answer: answerM},
				{IfIndex: s.index["tapvm1"], VLAN: 300, MAC: strangerM, Number: 1001, Answer: answerM},
			} {
				if err := s.taps.Put(source); err != nil {
					t.Fatal(err)
				}
			}
			m := &machine{t: t}
			s.in("vm1", func() (err error) {
				if m.ovs, err = packetSocket("eth0"); err != nil {
					return err
				}
				return unix.SetsockoptInt(m.ovs, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1)
			})
			defer unix.Close(m.ovs)
			const other = "fe80::6"
			asks := [][]byte{
				asking(strangerM, "10.0.0.6", metadata4, layers.ARPRequest),
				solicits(strangerM, other, solicitedGroup, metadata6, 255),
				tcp4(strangerM, answerM, "10.0.0.6", metadata4, segment(40000, 80, syn), ""),
				tcp6(strangerM, answerM, other, metadata6, segment(40000, 80, syn), ""),
				echo4(strangerM, answerM, "10.0.0.6", metadata4, 8),
				echo6(strangerM, answerM, other, metadata6, 128),
			}
			for _, ask := range asks {
				in := decode(ask)
				m.ovsFrame(withTag(0x8100, 300, ask))
				for {
					b, tag := m.tagged()
					out := decode(b)
					eth, ok := out.LinkLayer().(*layers.Ethernet)
					if !ok || eth.DstMAC.String() != strangerM.String() {
						continue // the kernel of the machine, or of the bridge
					}
					if tag != 300 || eth.SrcMAC.String() != answerM.String() {
						t.Errorf("an answer from %s has the VLAN %d", eth.SrcMAC, tag)
					}
					if in.NetworkLayer() != nil && out.NetworkLayer().NetworkFlow() != in.NetworkLayer().NetworkFlow().Reverse() && in.Layer(layers.LayerTypeICMPv6NeighborSolicitation) == nil {
						t.Errorf("answered %s to %s", out.NetworkLayer().NetworkFlow(), in.NetworkLayer().NetworkFlow())
					}
					if tcp, ok := out.Layer(layers.LayerTypeTCP).(*layers.TCP); ok && (!tcp.SYN || !tcp.ACK || tcp.Ack != 1001) {
						t.Errorf("answered with %+v", tcp)
					}
					break
				}
			}
			c, err := s.taps.Counters()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"steered4", "steered6", "replied4", "replied6", "answered_arp", "answered_nd"} {
				if c[name] == 0 {
					t.Errorf("nothing was counted as %s: %v", name, c)
				}
			}
			// A stranger in another VLAN, or in none, is not asked after.
			before := c["passed_unknown_source"]
			for _, b := range [][]byte{withTag(0x8100, 301, asks[2]), asks[2]} {
				if _, err := unix.Write(m.ovs, b); err != nil {
					t.Fatal(errors.Join(err))
				}
			}
			s.until("both went on", func() bool {
				c, err := s.taps.Counters()
				return err == nil && c["passed_unknown_source"] == before+2
			})
		})
	}
}
