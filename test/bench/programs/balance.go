package programs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	cilium "github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/maglev"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Traffic is which flows packets to VIPs are of.
type Traffic struct {
	Name     string
	Protocol intent.Protocol
	// Flows is how many there are, by turns at random; 0: each packet begins one.
	Flows uint32
}

// traffics are what is measured of VIPs.
var traffics = []Traffic{
	{"one TCP flow", intent.TCP, 1}, {"100,000 TCP flows", intent.TCP, 100_000}, {"new TCP flows", intent.TCP, 0}, {"one UDP flow", intent.UDP, 1},
}

// Balance is one line of the table of fabric_in with packets to VIPs.
type Balance struct {
	Traffic        Traffic
	Family         int
	VIPs, Backends int
	// Wrapper, Redirect, Reference and Live are for one packet, each the first quartile of
	// many runs: nothing but making the packet; a redirect besides; a balancer that does
	// nothing else; and fabric_in.
	Wrapper, Redirect, Reference, Live time.Duration
}

// ReferenceRatio and LiveRatio are against the program that only redirects; Ratio is
// fabric_in against the reference.
func (b Balance) ReferenceRatio() float64 { return b.over(b.Reference, b.Redirect) }

// LiveRatio: see ReferenceRatio.
func (b Balance) LiveRatio() float64 { return b.over(b.Live, b.Redirect) }

// Ratio: see ReferenceRatio.
func (b Balance) Ratio() float64 { return b.over(b.Live, b.Reference) }

func (b Balance) over(x, y time.Duration) float64 { return float64(x-b.Wrapper) / float64(y-b.Wrapper) }

// packets is how many a test run has, and warm how many go before: most of all flows.
const (
	packets = 20_000
	warm    = 1_000_000
)

// RunBalance measures packets to VIPs, for each number of VIPs and backends.
func RunBalance(ctx context.Context, dir string, rounds int) (out []Balance, err error) {
	for _, vips := range []int{1, 1000, 10_000} {
		for _, backends := range []int{10, 1000} {
			rows, err := balances(ctx, filepath.Join(dir, fmt.Sprintf("balance_%d_%d", vips, backends)), vips, backends, rounds)
			out = append(out, rows...)
			if err != nil {
				return out, fmt.Errorf("%d VIPs, %d backends: %w", vips, backends, err)
			}
		}
	}
	return out, nil
}

func balances(ctx context.Context, dir string, vips, backends, rounds int) (out []Balance, err error) {
	d, err := loadLimited(dir, ebpf.Limits{Flows: 1 << 18, VIPs: 1 << 16})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	w := balanceWorld{vips: vips, backends: backends}
	// As on a node that has run for half a minute.
	if err := errors.Join(w.fill(ctx, d), d.SweepFlowFront(ctx)); err != nil {
		return nil, err
	}
	var ref referenceObjects
	if err := loadReferenceObjects(&ref, nil); err != nil {
		return nil, fmt.Errorf("load the reference: %w", err)
	}
	defer ref.Close()
	if err := w.fillReference(&ref); err != nil {
		return nil, fmt.Errorf("fill the reference: %w", err)
	}
	live, err := cilium.LoadPinnedProgram(filepath.Join(dir, "prog_"+ebpf.FabricIn.String()), nil)
	if err != nil {
		return nil, err
	}
	defer live.Close()
	for _, t := range traffics {
		for _, family := range []int{4, 6} {
			b := Balance{Traffic: t, Family: family, VIPs: vips, Backends: backends}
			if err := w.measure(&b, &ref, live, rounds); err != nil {
				return out, fmt.Errorf("%s, IPv%d: %w", t.Name, family, err)
			}
			out = append(out, b)
		}
	}
	return out, nil
}

// balanceWorld is VIPs that share their backends.
type balanceWorld struct{ vips, backends int }

var (
	vips4, vips6 = netip.MustParseAddr("10.99.0.1"), netip.MustParseAddr("fd00:99::1")
	ends4, ends6 = netip.MustParseAddr("10.10.0.1"), netip.MustParseAddr("fd00:10::1")
)

// nth is the address so many after one.
func nth(a netip.Addr, n int) netip.Addr {
	b := a.As16()
	binary.BigEndian.PutUint32(b[12:], binary.BigEndian.Uint32(b[12:])+uint32(n))
	return netip.AddrFrom16(b).Unmap()
}

func (w balanceWorld) fill(ctx context.Context, d *ebpf.Dataplane) error {
	if err := fill(ctx, d, 1, 1, false); err != nil {
		return err
	}
	size, err := maglev.Size(w.backends, 0)
	if err != nil {
		return err
	}
	var vips []reconcile.Row[intent.VIPKey, intent.VIP]
	var routes []reconcile.Row[intent.RouteKey, intent.Route]
	for _, prefix := range []netip.Prefix{netip.PrefixFrom(ends4, 16).Masked(), netip.PrefixFrom(ends6, 64).Masked()} {
		k := intent.NewRouteKey(vni, prefix)
		routes = append(routes, reconcile.Row[intent.RouteKey, intent.Route]{Key: k, Value: intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: gw}})
	}
	for _, f := range []struct{ vip, end netip.Addr }{{vips4, ends4}, {vips6, ends6}} {
		var list []intent.Backend
		for i := range w.backends {
			list = append(list, intent.Backend{Addr: nth(f.end, i), Port: 8080, Weight: 1})
		}
		set := intent.NewBackendSet(list...)
		for i := range w.vips {
			a := nth(f.vip, i)
			host := intent.NewHostKey(vni, a)
			routes = append(routes, reconcile.Row[intent.RouteKey, intent.Route]{Key: host, Value: intent.Route{Key: host, Kind: intent.RouteLocal, Gateway: gw, VIP: true}})
			for _, p := range []intent.Protocol{intent.TCP, intent.UDP} {
				k := intent.VIPKey{VNI: vni, Protocol: p, Addr: a, Port: 80}
				vips = append(vips, reconcile.Row[intent.VIPKey, intent.VIP]{Key: k, Value: intent.VIP{Key: k, Backends: set, Slots: uint32(size)}})
			}
		}
	}
	return firstError(d.VIPs().Apply(ctx, vips), d.Routes().Apply(ctx, routes))
}

// fillReference gives the reference what fabric_in has; one table for each family.
func (w balanceWorld) fillReference(ref *referenceObjects) error {
	size, err := maglev.Size(w.backends, 0)
	if err != nil {
		return err
	}
	for family, f := range []struct{ vip, end netip.Addr }{{vips4, ends4}, {vips6, ends6}} {
		var list []maglev.Backend
		row := map[string]uint32{}
		for i := range w.backends {
			b := intent.Backend{Addr: nth(f.end, i), Port: 8080}
			key := b.TableKey(intent.TCP)
			row[key] = uint32(family*w.backends + i)
			list = append(list, maglev.Backend{Key: key, Weight: 1})
			if err := ref.Backends.Put(row[key], referenceBackend{Addr: b.Addr.As16(), Port: wire(8080)}); err != nil {
				return err
			}
		}
		table, err := maglev.Build(list, size)
		if err != nil {
			return err
		}
		first := uint32(family * size)
		for i, index := range table.Slots {
			if err := ref.Slots.Put(first+uint32(i), row[table.Keys[index]]); err != nil {
				return err
			}
		}
		for i := range w.vips {
			for _, p := range []intent.Protocol{intent.TCP, intent.UDP} {
				k := referenceVipKey{Addr: nth(f.vip, i).As16(), Port: wire(80), Proto: uint8(p)}
				if err := ref.Vips.Put(k, referenceVip{First: first, Slots: uint32(size)}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wire is a port in wire order.
func wire(port uint16) uint16 { return port<<8 | port>>8 }

// measure times all programs in turns, so that a change of the clock rate meets all.
func (w balanceWorld) measure(b *Balance, ref *referenceObjects, live *cilium.Program, rounds int) error {
	frame, plan := b.plan()
	samples := make([][]time.Duration, 4)
	for round := range rounds + 1 {
		for i, prog := range []*cilium.Program{nil, ref.RedirectOnly, ref.Reference, live} {
			err := ref.Measured.Delete(uint32(0))
			if prog != nil {
				err = ref.Measured.Put(uint32(0), prog)
			}
			if err != nil && !errors.Is(err, cilium.ErrKeyNotExist) {
				return err
			}
			if err := ref.Plans.Put(uint32(0), plan); err != nil {
				return err
			}
			n := packets
			if round == 0 {
				n = warm
			}
			verdict, each, err := ref.Replay.Benchmark(frame, n, nil)
			if err != nil {
				return err
			}
			plan.Next += uint32(n)
			if want := map[bool]uint32{true: unspec, false: redirected}[prog == nil]; verdict != want {
				return fmt.Errorf("program %d: the verdict is %d, not %d", i, verdict, want)
			}
			if round > 0 {
				samples[i] = append(samples[i], each)
			}
		}
	}
	for i, to := range []*time.Duration{&b.Wrapper, &b.Redirect, &b.Reference, &b.Live} {
		slices.Sort(samples[i])
		*to = samples[i][len(samples[i])/4]
	}
	return nil
}

// Verdicts of <linux/pkt_cls.h>: TC_ACT_UNSPEC, TC_ACT_REDIRECT.
const (
	unspec     = ^uint32(0)
	redirected = 7
)

// plan is the packet, and how it changes from one to the next.
func (b *Balance) plan() (frame []byte, p referencePlan) {
	eth := &layers.Ethernet{SrcMAC: far[:], DstMAC: near[:], EthernetType: layers.EthernetTypeIPv4}
	var network gopacket.NetworkLayer
	var l3, l4 gopacket.SerializableLayer
	p.Source, p.Dest, p.Ports = 14+12, 14+16, 14+20
	if b.Family == 4 {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocol(b.Traffic.Protocol), SrcIP: far4.AsSlice(), DstIP: vips4.AsSlice()}
		network, l3 = ip, ip
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocol(b.Traffic.Protocol), SrcIP: far6.AsSlice(), DstIP: vips6.AsSlice()}
		network, l3 = ip, ip
		p.Source, p.Dest, p.Ports = 14+8+12, 14+24+12, 14+40
	}
	if b.Traffic.Protocol == intent.TCP {
		tcp := &layers.TCP{SrcPort: 32768, DstPort: 80, SYN: b.Traffic.Flows == 0, ACK: b.Traffic.Flows > 0}
		_ = tcp.SetNetworkLayerForChecksum(network)
		l4 = tcp
	} else {
		udp := &layers.UDP{SrcPort: 32768, DstPort: 80}
		_ = udp.SetNetworkLayerForChecksum(network)
		l4 = udp
	}
	buffer := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buffer, opts, eth, l3, l4, gopacket.Payload(make([]byte, 40))); err != nil {
		panic(err) // the layers are constant
	}
	copy(p.Head[:], buffer.Bytes())
	p.Flows, p.Vips = b.Traffic.Flows, uint32(b.VIPs)
	p.Vni, p.Vtep = uint32(vni), binary.BigEndian.Uint32(vtep.AsSlice())
	return buffer.Bytes(), p
}
