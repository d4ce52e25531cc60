package bpf_test

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"structs"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// The guests of the rows: two of one address and MAC behind two taps, of which the
// loopback device stands for the first, and one in a VLAN of that.
var (
	vmGuest   = mac("fa:16:3e:00:00:05")
	strangerM = mac("fa:16:3e:00:00:66")
	answerM   = mac("fa:16:3e:aa:aa:aa")
	hostMD    = mac("02:00:00:00:0d:00")
	insideMD  = mac("02:00:00:00:0d:01")

	metadata4 = "169.254.169.254"
	metadata6 = "fe80::a9fe:a9fe"
	proxy6    = "fd6e::a9fe:a9fe"
	guest4    = "10.0.0.5"
	guest6    = "fe80::f816:3eff:fe00:5"

	here4   = taps.Source{IfIndex: lo, MAC: vmGuest, Addr: addr(guest4), Number: 300, Answer: answerM}
	here6   = taps.Source{IfIndex: lo, MAC: vmGuest, Number: 70000, Answer: answerM}
	tagged4 = taps.Source{IfIndex: lo, VLAN: 300, MAC: vmGuest, Addr: addr(guest4), Number: 5, Answer: answerM}
	tagged6 = taps.Source{IfIndex: lo, VLAN: 300, MAC: vmGuest, Number: 6, Answer: answerM}
	there4  = taps.Source{IfIndex: 9, MAC: vmGuest, Addr: addr(guest4), Number: uint32(identity.Max), Answer: answerM}
	other4  = taps.Source{IfIndex: lo, MAC: vmGuest, Addr: addr("10.0.1.5"), Number: 302, Answer: answerM}
)

const mdIndex = 44

// metadataWorld is the programs over some guests, with a proxy that lives.
type metadataWorld struct {
	t          *testing.T
	dir        string
	taps       *taps.Taps
	beat       *taps.Heartbeat
	tap, proxy *ebpf.Program
}

func loadTaps(t *testing.T, dir string, hook pinned.Hook) *taps.Taps {
	t.Helper()
	d, err := taps.Load(taps.Config{Dir: dir, Hook: hook, StaleAfter: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func beating(t *testing.T, dir string) *taps.Heartbeat {
	t.Helper()
	h, err := taps.OpenHeartbeat(dir)
	if err == nil {
		err = h.Beat()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func newMetadataWorld(t *testing.T) *metadataWorld {
	t.Helper()
	dir := bpffs(t)
	w := &metadataWorld{t: t, dir: dir, taps: loadTaps(t, dir, pinned.HookAuto), beat: beating(t, dir)}
	for _, s := range []taps.Source{here4, here6, tagged4, tagged6, there4, other4} {
		if err := w.taps.Put(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.taps.SetProxy(taps.Proxy{Host: mdIndex, HostMAC: hostMD, Inside: insideMD}); err != nil {
		t.Fatal(err)
	}
	w.tap, w.proxy = w.program("tap_in"), w.program("proxy_in")
	return w
}

func (w *metadataWorld) program(name string) *ebpf.Program {
	w.t.Helper()
	p, err := ebpf.LoadPinnedProgram(pinned.ProgramPin(w.dir, name), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.Close() })
	return p
}

// in802 is a program that has the tag of a VLAN before p sees the packet.
func (w *metadataWorld) in802(p *ebpf.Program, proto, vlan uint16) *ebpf.Program {
	w.t.Helper()
	calls, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1,
		Contents: []ebpf.MapKV{{Key: uint32(0), Value: p}}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { calls.Close() })
	tagger, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R2, int32(proto>>8|proto<<8)), asm.Mov.Imm(asm.R3, int32(vlan)), asm.FnSkbVlanPush.Call(),
		asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMapPtr(asm.R2, calls.FD()), asm.Mov.Imm(asm.R3, 0), asm.FnTailCall.Call(),
		asm.Mov.Imm(asm.R0, 99), asm.Return(),
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { tagger.Close() })
	return tagger
}

// Verdicts of <linux/pkt_cls.h>.
const (
	actUnspec   = 1<<32 - 1
	actShot     = 2
	actRedirect = 7
)

// skb is struct __sk_buff of <linux/bpf.h> as far as a test run takes it.
type skb struct {
	_       structs.HostLayout
	_       [10]uint32 // len .. ingress_ifindex
	IfIndex uint32
	_       [30]uint32 // tc_index .. wire_len
	GSOSegs uint32
	_       [2]uint32 // sk
	GSOSize uint32
	_       [3]uint32 // tstamp_type, hwtstamp
}

// completeSum has a test run begin with a sum over the whole packet as a NIC delivers it
// (CHECKSUM_COMPLETE), and fail where the program made it wrong. Since Linux 6.16.
const completeSum = 1 << 2

// steeredRow is one packet and what becomes of it.
type steeredRow struct {
	name string
	in   []byte
	// proto and vlan are the tag's; proto 0 is 802.1Q, and vlan 0 no tag.
	proto, vlan uint16
	gso         uint32
	// want is the packet that goes out; nil: it is dropped, or goes on as it came.
	want []byte
	// outcome is what is counted. Without any the packet goes on.
	outcome string
}

func (r steeredRow) verdict() uint32 {
	switch {
	case r.want != nil:
		return actRedirect
	case len(r.outcome) > 4 && r.outcome[:4] == "drop":
		return actShot
	}
	return actUnspec
}

// run has a program see the packets of the rows, with each kind of checksum.
func (w *metadataWorld) run(p *ebpf.Program, rows []steeredRow) {
	w.t.Helper()
	for _, r := range rows {
		w.t.Run(r.name, func(t *testing.T) {
			before := w.counters()
			flags := w.once(t, p, r, 0)
			// Of ARP, and of what is dropped, nobody looks at the sum any more.
			if r.gso == 0 && r.verdict() != actShot && r.outcome != "answered_arp" {
				flags += w.once(t, p, r, completeSum)
			}
			after := w.counters()
			maps.DeleteFunc(after, func(name string, n uint64) bool { return n == before[name] })
			want := map[string]uint64{}
			if r.outcome != "" {
				want[r.outcome] = before[r.outcome] + uint64(flags)
			}
			if !maps.Equal(after, want) {
				t.Errorf("counted %v, want %v", after, want)
			}
		})
	}
}

// once tells how many packets the program saw: none, where the kernel has no such test run.
func (w *metadataWorld) once(t *testing.T, p *ebpf.Program, r steeredRow, flags uint32) int {
	t.Helper()
	if r.vlan != 0 {
		p = w.in802(p, cmp.Or(r.proto, 0x8100), r.vlan)
	}
	context := skb{IfIndex: lo, GSOSize: r.gso}
	if r.gso > 0 {
		context.GSOSegs = uint32(len(r.in))/r.gso + 1
	}
	opts := &ebpf.RunOptions{Data: r.in, DataOut: make([]byte, len(r.in)+256), Context: context, Flags: flags}
	verdict, err := p.Run(opts)
	if flags != 0 && errors.Is(err, unix.EINVAL) {
		return 0
	}
	if err != nil {
		t.Fatalf("flags %d: %v", flags, err)
	}
	if verdict != r.verdict() {
		t.Errorf("flags %d: verdict %d, want %d", flags, int32(verdict), int32(r.verdict()))
	}
	want := r.want
	if want == nil {
		want = r.in
	}
	if verdict != actShot && !bytes.Equal(opts.DataOut, want) {
		t.Errorf("flags %d: the packet is\n%swant\n%s", flags, decode(opts.DataOut).Dump(), decode(want).Dump())
	}
	return 1
}

func (w *metadataWorld) counters() map[string]uint64 {
	w.t.Helper()
	c, err := w.taps.Counters()
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// segment is a TCP segment of a guest's, or of the proxy's.
func segment(sport, dport uint16, set func(*layers.TCP)) *layers.TCP {
	t := &layers.TCP{SrcPort: layers.TCPPort(sport), DstPort: layers.TCPPort(dport), Seq: 1000, Window: 64240}
	if set != nil {
		set(t)
	}
	return t
}

func syn(t *layers.TCP) {
	t.SYN = true
	t.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: []byte{5, 0xb4}}}
}

func pushed(t *layers.TCP) { t.ACK, t.PSH, t.Ack = true, true, 77 }

func tcp4(src, dst intent.MAC, from, to string, t *layers.TCP, payload string) []byte {
	return frame(ether(src, dst, layers.EthernetTypeIPv4), ip4(from, to, layers.IPProtocolTCP), t, gopacket.Payload(payload))
}

func tcp6(src, dst intent.MAC, from, to string, t *layers.TCP, payload string) []byte {
	return frame(ether(src, dst, layers.EthernetTypeIPv6), ip6(from, to, layers.IPProtocolTCP), t, gopacket.Payload(payload))
}

func echo4(src, dst intent.MAC, from, to string, kind uint8) []byte {
	return frame(ether(src, dst, layers.EthernetTypeIPv4), ip4(from, to, layers.IPProtocolICMPv4),
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, 0), Id: 7, Seq: 1}, gopacket.Payload("hello"))
}

func echo6(src, dst intent.MAC, from, to string, kind uint8) []byte {
	return frame(ether(src, dst, layers.EthernetTypeIPv6), ip6(from, to, layers.IPProtocolICMPv6),
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}, &layers.ICMPv6Echo{Identifier: 7, SeqNumber: 1}, gopacket.Payload("hello"))
}

func numbered4(n uint32) string { return identity.Address4(identity.Number(n)).String() }
func numbered6(n uint32, guest string) string {
	return identity.Address6(identity.Number(n), netip.MustParseAddr(guest)).String()
}

// asking is an ARP request, or another operation, of a guest.
func asking(from intent.MAC, sender, target string, op uint16) []byte {
	return frame(ether(from, mac("ff:ff:ff:ff:ff:ff"), layers.EthernetTypeARP), &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
		SourceHwAddress: from[:], SourceProtAddress: net.ParseIP(sender).To4(), DstHwAddress: make([]byte, 6), DstProtAddress: net.ParseIP(target).To4()})
}
