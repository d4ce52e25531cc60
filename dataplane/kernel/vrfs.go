package kernel

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// innerMTU is that of the devices between the fabric and the routes: they are
// never the narrow place. A route's MTU is, so that the kernel answers what is
// larger instead of dropping it without a word.
const innerMTU = 65000

// The sysctls of the devices that route. Those of br-<vni> let a packet in whose
// way back is another device, sluice-vxlan; the way back of what comes from OVN is
// the device that it came from.
var (
	routing = with(closed, knob{"ipv6", "disable_ipv6", "0"}, knob{"ipv6", "forwarding", "1"}, knob{"ipv4", "forwarding", "1"})
	loose   = with(routing, knob{"ipv4", "rp_filter", "2"})
)

// anchor is an address of the devices that route, and that nothing uses: without
// one a device refuses what comes from where it does not lead to, also with loose
// reverse path filtering. RFC 7600 section 4.8 gives it to nobody.
var anchor = netip.MustParseAddr("192.0.0.8")

// VRFs is the driver of intent.KernelVRF.
type VRFs struct{ p *Path }

var _ reconcile.Driver[intent.VNI, intent.KernelVRF] = VRFs{}

// VRFs gives the driver of the devices of VRFs.
func (p *Path) VRFs() VRFs { return VRFs{p} }

// List has a VRF with the zero value if anything of its devices is not as Apply
// leaves it, also if there are but routes in its table.
func (d VRFs) List(ctx context.Context) (map[intent.VNI]intent.KernelVRF, error) {
	out := map[intent.VNI]intent.KernelVRF{}
	err := d.p.look(takeFIB, func(s *snapshot, f *fib) error {
		for mark := range s.byMark {
			vni, index, ok := vrfOfMark(mark)
			if !ok {
				continue
			}
			if _, there := out[vni]; !there {
				out[vni] = intent.KernelVRF{}
				d.noteInward(s, vni)
			}
			if index != 0 && d.intact(ctx, s, f, intent.KernelVRF{VNI: vni, Index: index}) {
				out[vni] = intent.KernelVRF{VNI: vni, Index: index}
			}
		}
		for _, table := range stranded(s, f) {
			if _, there := out[intent.VNI(table)]; !there {
				out[intent.VNI(table)] = intent.KernelVRF{}
			}
		}
		d.p.forgetInward(out)
		return nil
	})
	return out, err
}

// vrfOfMark finds the VNI in a mark of any device of a VRF, and the index in the
// one that has it.
func vrfOfMark(mark string) (vni intent.VNI, index uint16, ok bool) {
	if rest, found := strings.CutPrefix(mark, markIndex); found {
		n, err := fmt.Sscanf(rest, "%d:%d", &vni, &index)
		return vni, index, n == 2 && err == nil
	}
	for _, kind := range []string{"vrf", "vrf-bridge", "vrf-inner", "vrf-outer", "vrf-vxlan", "vrf-dummy"} {
		if rest, found := strings.CutPrefix(mark, "sluice:"+kind+":"); found {
			vni, ok = vniOf(rest)
			return vni, 0, ok
		}
	}
	return 0, 0, false
}

// Apply makes the devices of VRFs; the order within one is: table with its last
// route, bridge, guard, ports, up.
func (d VRFs) Apply(ctx context.Context, rows []reconcile.Row[intent.VNI, intent.KernelVRF]) []error {
	errs := make([]error, len(rows))
	err := d.p.config.Namespace.Netlink(func(h *netlink.Handle) error {
		s, err := takeSnapshot(h)
		if err != nil {
			return reconcile.Unchanged(err)
		}
		for i, r := range rows {
			if err := d.apply(ctx, s, r.Key, r.Value); err != nil {
				errs[i] = fmt.Errorf("devices of VRF %d: %w", r.Key, err)
			}
		}
		return nil
	})
	return all(errs, err)
}

// all gives each row an error that concerns them all.
func all(errs []error, err error) []error {
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return reconcile.Results(errs)
}

func (d VRFs) apply(ctx context.Context, s *snapshot, vni intent.VNI, v intent.KernelVRF) error {
	if vni == 0 || vni > intent.MaxVNI || v.VNI != vni {
		return reconcile.Unchanged(fmt.Errorf("no VRF has the VNI %d", vni))
	}
	vrf, err := d.vrf(s, v)
	if err != nil {
		return err
	}
	if err := lastRoutes(s.h, vrf.Table); err != nil {
		return err
	}
	if !up(vrf) {
		if err := s.h.LinkSetUp(vrf); err != nil {
			return fmt.Errorf("setting %s up: %w", vrf.Name, err)
		}
	}
	bridge, err := d.bridge(ctx, s, vrf, vni)
	if err != nil {
		return err
	}
	if d.p.config.Whole {
		err = d.vxlan(s, bridge, vni)
	} else {
		err = d.inward(s, bridge, vni)
	}
	if err != nil {
		return err
	}
	if err := s.h.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("setting %s up: %w", bridge.Attrs().Name, err)
	}
	if err := bareAddress(s.h, bridge, anchor, unix.RT_SCOPE_HOST, vrf.Table); err != nil {
		return err
	}
	if d.p.config.Dummy {
		return d.dummy(s, vrf, vni)
	}
	return s.removeNamed(dummyOf(vni))
}

// vrf makes vrf-<vni>, with the index in a mark.
func (d VRFs) vrf(s *snapshot, v intent.KernelVRF) (*netlink.Vrf, error) {
	n := vrfOf(v.VNI)
	l, err := s.ours(n)
	if err != nil {
		return nil, reconcile.Unchanged(err)
	}
	if l == nil {
		table, err := freeTable(s, v)
		if err != nil {
			return nil, reconcile.Unchanged(err)
		}
		if l, err = s.create(n, &netlink.Vrf{LinkAttrs: netlink.NewLinkAttrs(), Table: table}); err != nil {
			return nil, err
		}
	}
	want := indexMark(v.VNI, v.Index)
	if !has(l, want) {
		if err := s.h.LinkAddAltName(l, want); err != nil {
			return nil, fmt.Errorf("marking device %s: %w", n.name, err)
		}
	}
	for _, name := range l.Attrs().AltNames {
		if strings.HasPrefix(name, markIndex) && name != want {
			if err := s.h.LinkDelAltName(l, name); err != nil {
				return nil, fmt.Errorf("device %s: %w", n.name, err)
			}
		}
	}
	if err := settle(s.h, l, routing); err != nil {
		return nil, err
	}
	if l, err = s.again(l.Attrs().Name); err != nil {
		return nil, err
	}
	vrf, ok := l.(*netlink.Vrf)
	if !ok {
		return nil, fmt.Errorf("device %s is a %s: %w", n.name, l.Type(), reconcile.ErrForeign)
	}
	return vrf, nil
}

// freeTable finds the number of a table that nobody uses: no VRF, no rule, no
// route of others.
func freeTable(s *snapshot, v intent.KernelVRF) (uint32, error) {
	taken := map[uint32]string{}
	for _, l := range s.byIndex {
		if vrf, ok := l.(*netlink.Vrf); ok {
			taken[vrf.Table] = "VRF " + vrf.Name
		}
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := s.h.RuleList(family)
		if err != nil {
			return 0, fmt.Errorf("listing rules: %w", err)
		}
		for _, r := range rules {
			taken[uint32(r.Table)] = fmt.Sprintf("the rule of preference %d", r.Priority)
		}
	}
	var why []string
	for _, table := range tables(v) {
		routes, err := tableRoutes(table)
		if err != nil {
			return 0, err
		}
		for _, r := range routes {
			if r.protocol != RouteProtocol {
				taken[table] = fmt.Sprintf("a route to %s of protocol %d", r.prefix, r.protocol)
			}
		}
		if taken[table] == "" {
			return table, nil
		}
		why = append(why, fmt.Sprintf("%d has %s", table, taken[table]))
	}
	return 0, fmt.Errorf("no routing table is free, %s: %w", strings.Join(why, ", "), reconcile.ErrForeign)
}

// lastRoute ends the search in a VRF's table: without it a destination that the
// VRF does not have would be looked for in the tables of the node.
func lastRoute(table uint32, any netip.Addr) fibRoute {
	return fibRoute{table: table, prefix: netip.PrefixFrom(any, 0), kind: unix.RTN_UNREACHABLE, protocol: RouteProtocol, metric: metricLast}
}

// isLast tells whether a route, of any protocol, is such a one.
func isLast(r fibRoute) bool {
	return r.kind == unix.RTN_UNREACHABLE && r.prefix.Bits() == 0 && r.metric == metricLast
}

func lastRoutes(h *netlink.Handle, table uint32) error {
	for _, any := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		r := lastRoute(table, any)
		if err := r.replace(h); err != nil {
			return err
		}
	}
	return nil
}
