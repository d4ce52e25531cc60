package bpf_test

import (
	"bytes"
	"context"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// row is one packet and what becomes of it.
type row struct {
	name string
	in   ebpf.TraceRequest
	// drop is the reason the packet is dropped for, 0 when it is forwarded or answered.
	drop drop.Reason
	// out is the device that something is sent out of, 0 for none.
	out uint32
	// passes: the packet goes on to the host as it came, and nothing is counted.
	passes bool
	// step is a decision that must be among the trace's.
	step *ebpf.Step
	// headers are those that each packet of a large one has, if not IPv4 and TCP.
	headers int
	// check looks at the packet that goes out.
	check func(t *testing.T, in, out gopacket.Packet)
}

func fromFabric(b []byte) ebpf.TraceRequest {
	return ebpf.TraceRequest{Program: ebpf.FabricIn, Frame: b, VTEP: peer4, VNI: red}
}

func fromOVN(b []byte) ebpf.TraceRequest {
	return ebpf.TraceRequest{Program: ebpf.OverlayIn, Frame: b, IfIndex: lo}
}

func via(r ebpf.TraceRequest, vtep netip.Addr, vni intent.VNI) ebpf.TraceRequest {
	r.VTEP, r.VNI = vtep, vni
	return r
}

func withVLAN(r ebpf.TraceRequest, vlan uint16) ebpf.TraceRequest {
	r.VLAN = vlan
	return r
}

func decode(b []byte) gopacket.Packet {
	return gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
}

// TestRows has a packet for each branch of fabric_in and overlay_in. One world for
// all: to load it takes long on emulated processors.
func TestRows(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	for _, part := range []struct {
		name string
		rows func(*testing.T, string, *ebpf.Dataplane)
	}{
		{"forward", forwards},
		{"drop from the fabric", dropsFromFabric},
		{"drop from OVN", dropsFromOVN},
		{"ICMP to the fabric", icmpToFabric},
		// Next hops that are asked for become sources of errors, and relays need more routes.
		{"ICMP to OVN", icmpToOVN},
		{"answers", answers},
		{"relay", relays},
	} {
		t.Run(part.name, func(t *testing.T) { part.rows(t, dir, d) })
	}
}

func runRows(t *testing.T, dir string, d *ebpf.Dataplane, rows []row) {
	tr := tracer(t, dir)
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { r.run(t, d, tr) })
	}
}

func (r row) run(t *testing.T, d *ebpf.Dataplane, tr *ebpf.Tracer) {
	res, err := tr.Trace(context.Background(), r.in)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("steps:\n%s", res)
	if got := res.Dropped(); got != r.drop {
		t.Errorf("dropped for %v, want %v", got, r.drop)
	}
	var out uint32
	found := r.step == nil
	for _, s := range res.Steps {
		if s.What == ebpf.StepRedirect {
			out = s.Value
		}
		found = found || *r.step == s
	}
	if !found {
		t.Errorf("no step %q", r.step)
	}
	if out != r.out || res.Redirected != (r.out != 0) {
		t.Errorf("sent out of device %d (%v), want %d", out, res.Redirected, r.out)
	}
	if res.Passed != r.passes {
		t.Errorf("on to the host: %t, want %t", res.Passed, r.passes)
	}
	if r.passes && !bytes.Equal(res.Frame, r.in.Frame) {
		t.Errorf("the frame was changed:\n%x\n%x", r.in.Frame, res.Frame)
	}
	r.real(t, d, tr, res)
	if r.check != nil {
		r.check(t, decode(r.in.Frame), decode(res.Frame))
	}
	if out != 0 {
		checksums(t, res.Frame)
	}
}

// real runs the packet outside of trace mode: the same happens, and it is counted.
func (r row) real(t *testing.T, d *ebpf.Dataplane, tr *ebpf.Tracer, traced ebpf.TraceResult) {
	before, dropsBefore := counts(t, d)
	redirected, out, _, err := tr.Run(r.in, 1)
	if err != nil {
		t.Fatal(err)
	}
	if redirected != traced.Redirected || !bytes.Equal(out, traced.Frame) {
		t.Errorf("trace mode did something else than the real run:\n%x\n%x", traced.Frame, out)
	}
	after, dropsAfter := counts(t, d)
	for reason := range dropsAfter {
		want := uint64(0)
		if reason == r.drop {
			want = 1
		}
		if got := dropsAfter[reason] - dropsBefore[reason]; got != want {
			t.Errorf("drop counter %v rose by %d, want %d", reason, got, want)
		}
	}
	forwarded, drops, answers := after.Packets-before.Packets, after.Drops-before.Drops, after.Answers-before.Answers
	wantForwarded, wantDrops, wantAnswers := uint64(0), uint64(0), uint64(0)
	switch {
	case r.drop != 0 && r.out != 0:
		wantDrops, wantAnswers = 1, 1
	case r.drop != 0:
		wantDrops = 1
	case isAnswer(traced):
		wantAnswers = 1
	case r.passes:
	default:
		wantForwarded = r.packets()
	}
	if forwarded != wantForwarded || drops != wantDrops || answers != wantAnswers {
		t.Errorf("counted %d packets, %d drops, %d answers, want %d, %d, %d", forwarded, drops, answers, wantForwarded, wantDrops, wantAnswers)
	}
	// Every packet that a large one becomes has the headers.
	want := uint64(len(r.in.Frame)-14) + (r.packets()-1)*uint64(r.segmentHeaders())
	if bytes := after.Bytes - before.Bytes; forwarded > 0 && bytes != want {
		t.Errorf("counted %d bytes, want %d", bytes, want)
	}
}

const gsoHeaders = 20 + 20 // IPv4 and TCP

func (r row) segmentHeaders() int {
	if r.headers != 0 {
		return r.headers
	}
	return gsoHeaders
}

// packets are those on a wire.
func (r row) packets() uint64 {
	if r.in.GSOSize == 0 {
		return 1
	}
	return uint64((len(r.in.Frame)-14-r.segmentHeaders()-1)/int(r.in.GSOSize) + 1)
}

func isAnswer(res ebpf.TraceResult) bool {
	for _, s := range res.Steps {
		if s.What == ebpf.StepARP || s.What == ebpf.StepND || s.What == ebpf.StepEcho {
			return true
		}
	}
	return false
}

// counts sums the counters of all VRFs.
func counts(t *testing.T, d *ebpf.Dataplane) (sum ebpf.Counter, drops map[drop.Reason]uint64) {
	t.Helper()
	vrfs, err := d.Reader().Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vrfs {
		for _, c := range []ebpf.Counter{v.FromFabric, v.ToFabric} {
			sum.Packets += c.Packets
			sum.Bytes += c.Bytes
			sum.Drops += c.Drops
			sum.Answers += c.Answers
		}
	}
	if drops, err = d.Reader().Drops(); err != nil {
		t.Fatal(err)
	}
	return sum, drops
}

// checksums verifies every checksum of a frame that goes out.
func checksums(t *testing.T, b []byte) {
	t.Helper()
	p := decode(b)
	if e := p.ErrorLayer(); e != nil {
		t.Errorf("the packet does not parse: %v", e.Error())
	}
	network := p.NetworkLayer()
	if network == nil {
		return // ARP
	}
	for _, l := range p.Layers() {
		if n, ok := l.(gopacket.NetworkLayer); ok {
			network = n // inside a tunnel it is another
		}
		if c, ok := l.(interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}); ok {
			if err := c.SetNetworkLayerForChecksum(network); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err, mismatches := p.VerifyChecksums(); err != nil || len(mismatches) > 0 {
		t.Errorf("checksums: %v %+v", err, mismatches)
	}
}
