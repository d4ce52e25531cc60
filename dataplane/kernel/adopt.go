package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// What the EVPN driver of ovn-bgp-agent calls its devices between a VRF and a
// provider bridge: a veth pair, or an internal port of Open vSwitch where the
// provider network has a VLAN. Its other devices have the names that Sluice's have.
const (
	agentVRFEnd    = "veth-vrf-"
	agentBridgeEnd = "veth-ovs-"
	agentVLAN      = "vlan-"
)

// markAdopted is on devices of ovn-bgp-agent that Sluice has no use for: they carry
// traffic until Sluice's do, and go then.
const markAdopted = "sluice:adopted:"

func adoptedMark(name string) string { return markAdopted + name }

// agentName is the name that ovn-bgp-agent gives: it cuts off what the kernel has no
// room for.
func agentName(prefix string, vni intent.VNI) string {
	name := prefix + vni.String()
	return name[:min(len(name), unix.IFNAMSIZ-1)]
}

// AgentPorts are the names that a VRF's way into a provider bridge may have.
func AgentPorts(vni intent.VNI) []string {
	return []string{agentName(agentVRFEnd, vni), agentName(agentBridgeEnd, vni), agentName(agentVLAN, vni)}
}

// AgentVRF is a VRF as the EVPN driver of ovn-bgp-agent makes it.
type AgentVRF struct {
	VNI intent.VNI
	// Devices are those without Sluice's mark.
	Devices []string
	// Evidence is what shows that ovn-bgp-agent made the VRF, and not an operator whose
	// VRFs have the same form: its way into a provider bridge.
	Evidence string
	// Ports are ports of a provider bridge that lead to the VRF, also with the mark.
	Ports []string
	// Routes are those into OVN that are not Sluice's, each with its device, and the
	// unreachable default routes, which would outlive the VRF.
	Routes []string
	marks  map[string]string // by device
	routes []fibRoute
	table  uint32
}

// Stranger is a VRF with such a name that is somebody else's.
type Stranger struct {
	VNI intent.VNI
	// Why tells what it lacks.
	Why string
}

func (s Stranger) String() string { return fmt.Sprintf("%s: %s", vrfOf(s.VNI).name, s.Why) }

// AgentVRFs finds what ovn-bgp-agent left: a VRF vrf-N with table N, and in it a
// bridge br-N with a VXLAN device vxlan-N of VNI N, and a way into a provider bridge.
// isPort tells whether Open vSwitch has a port of that name. strangers are devices with
// such names that are not of this form: somebody else's, and nothing is done to them.
// It reads only.
func AgentVRFs(ns netns.Namespace, isPort func(string) bool) (vrfs []AgentVRF, strangers []Stranger, err error) {
	err = look(ns, takeFIB, func(s *snapshot, f *fib) error {
		for _, l := range s.byIndex {
			word, ok := strings.CutPrefix(l.Attrs().Name, "vrf-")
			if !ok {
				continue
			}
			vni, ok := vniOf(word)
			if !ok || vni.String() != word {
				continue
			}
			v, why := s.agentVRF(f, vni, isPort)
			if why != "" {
				strangers = append(strangers, Stranger{vni, why})
			} else if len(v.Devices)+len(v.routes) > 0 {
				vrfs = append(vrfs, v)
			}
		}
		return nil
	})
	slices.SortFunc(vrfs, func(a, b AgentVRF) int { return cmp.Compare(a.VNI, b.VNI) })
	slices.SortFunc(strangers, func(a, b Stranger) int { return cmp.Compare(a.VNI, b.VNI) })
	return vrfs, strangers, err
}

// agentVRF looks at the devices of one VNI; why is not empty if they are not of the
// form that ovn-bgp-agent gives them, or nothing shows that it did.
func (s *snapshot) agentVRF(f *fib, vni intent.VNI, isPort func(string) bool) (v AgentVRF, why string) {
	v = AgentVRF{VNI: vni, marks: map[string]string{}}
	vrf, ok := s.byName[vrfOf(vni).name].(*netlink.Vrf)
	if !ok || vrf.Table != uint32(vni) {
		return v, fmt.Sprintf("it is no VRF with table %d", vni)
	}
	v.table = vrf.Table
	if has(vrf, vrfOf(vni).mark) && s.byMark[vxlanOf(vni).mark] == nil && s.byName[vxlanOf(vni).name] == nil {
		return v, "" // Sluice's own
	}
	bridge, vxlan := s.byName[bridgeOf(vni).name], s.byName[vxlanOf(vni).name]
	if bridge == nil || bridge.Type() != "bridge" || bridge.Attrs().MasterIndex != vrf.Index {
		return v, fmt.Sprintf("there is no bridge %s in it", bridgeOf(vni).name)
	}
	x, ok := vxlan.(*netlink.Vxlan)
	if !ok || x.VxlanId != int(vni) || x.MasterIndex != bridge.Attrs().Index {
		return v, fmt.Sprintf("%s has no port %s of VNI %d", bridge.Attrs().Name, vxlanOf(vni).name, vni)
	}
	take := func(l netlink.Link, mark string) {
		if !isOurs(l) {
			v.Devices, v.marks[l.Attrs().Name] = append(v.Devices, l.Attrs().Name), mark
		}
	}
	take(vrf, vrfOf(vni).mark)
	take(bridge, bridgeOf(vni).mark)
	take(vxlan, vxlanOf(vni).mark)
	if lo := s.byName[dummyOf(vni).name]; lo != nil && lo.Type() == "dummy" && lo.Attrs().MasterIndex == vrf.Index {
		take(lo, dummyOf(vni).mark)
	}
	inward := map[int]bool{}
	for _, w := range s.agentWays(vrf, vni, isPort) {
		for _, l := range w.devices {
			take(l, adoptedMark(l.Attrs().Name))
		}
		inward[w.devices[0].Attrs().Index] = true
		v.Evidence, v.Ports = w.evidence, append(v.Ports, w.port())
	}
	if v.Evidence == "" && isOurs(vrf) {
		return AgentVRF{VNI: vni}, "" // with a VXLAN device of its own
	}
	if v.Evidence == "" {
		return v, fmt.Sprintf("nothing shows that ovn-bgp-agent created it: neither a pair %s and %s nor a port %s of Open vSwitch is in it",
			agentName(agentVRFEnd, vni), agentName(agentBridgeEnd, vni), agentName(agentVLAN, vni))
	}
	for _, r := range f.tables[vrf.Table] {
		switch {
		case r.protocol == RouteProtocol || r.protocol == unix.RTPROT_KERNEL:
		case r.kind == unix.RTN_UNICAST && len(r.hops) == 1 && inward[r.hops[0].ifindex]:
			v.routes = append(v.routes, r)
			v.Routes = append(v.Routes, fmt.Sprintf("%s dev %s", r.prefix, s.byIndex[r.hops[0].ifindex].Attrs().Name))
		case isLast(r):
			v.routes = append(v.routes, r)
			v.Routes = append(v.Routes, fmt.Sprintf("unreachable %s", r.prefix))
		}
	}
	return v, ""
}

// agentWay is a way of ovn-bgp-agent's from a VRF into a provider bridge: first its
// device in the VRF, last the one that is the port.
type agentWay struct {
	devices  []netlink.Link
	evidence string
}

func (w agentWay) port() string { return w.devices[len(w.devices)-1].Attrs().Name }

// agentWays are the ways of a VRF. A device vlan-N that is no port of Open vSwitch is
// some VLAN of an operator's.
func (s *snapshot) agentWays(vrf netlink.Link, vni intent.VNI, isPort func(string) bool) (out []agentWay) {
	inVRF := func(l netlink.Link) bool { return l != nil && l.Attrs().MasterIndex == vrf.Attrs().Index }
	l, peer := s.byName[agentName(agentVRFEnd, vni)], s.byName[agentName(agentBridgeEnd, vni)]
	if inVRF(l) && l.Type() == "veth" && peer != nil && peer.Type() == "veth" && peer.Attrs().ParentIndex == l.Attrs().Index {
		out = append(out, agentWay{[]netlink.Link{l, peer}, fmt.Sprintf("%s in it is a pair with %s", l.Attrs().Name, peer.Attrs().Name)})
	}
	if l := s.byName[agentName(agentVLAN, vni)]; inVRF(l) && isPort(l.Attrs().Name) {
		out = append(out, agentWay{[]netlink.Link{l}, fmt.Sprintf("%s in it is a port of Open vSwitch", l.Attrs().Name)})
	}
	return out
}

// Adopt makes the VRF Sluice's: the routes into OVN first, then each device. Traffic
// goes on as it did. It may be called again after an error.
func (v AgentVRF) Adopt(ns netns.Namespace) error {
	return ns.Netlink(func(h *netlink.Handle) error {
		var errs []error
		for _, r := range v.routes {
			errs = append(errs, adoptRoute(h, r))
		}
		for _, name := range v.Devices {
			l, err := find(h, name)
			if err == nil && l == nil {
				err = fmt.Errorf("device %s has gone", name)
			}
			if err == nil && !has(l, v.marks[name]) {
				if err = h.LinkAddAltName(l, v.marks[name]); err != nil {
					err = fmt.Errorf("marking device %s: %w", name, err)
				}
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// adoptRoute puts a route of Sluice's protocol and metric beside one, and takes that
// one away. Sluice replaces it in one step by its own, and vrf_guard lets packets to
// it through. The last route has the same metric, and is replaced.
func adoptRoute(h *netlink.Handle, r fibRoute) error {
	if isLast(r) {
		ours := lastRoute(r.table, r.prefix.Addr())
		return ours.replace(h)
	}
	ours := r
	ours.protocol, ours.metric = RouteProtocol, RouteMetric
	ours.hops = slices.Clone(r.hops)
	// The gateway's own route may be another one by now.
	ours.hops[0].onlink = ours.hops[0].gateway.IsValid()
	if err := ours.replace(h); err != nil {
		return err
	}
	return removeRoute(h, r)
}

// Adopted names the devices that are only there to be removed.
func Adopted(ns netns.Namespace) (names []string, err error) {
	err = ns.Netlink(func(h *netlink.Handle) error {
		s, err := takeSnapshot(h)
		if err != nil {
			return err
		}
		for mark, l := range s.byMark {
			if strings.HasPrefix(mark, markAdopted) {
				names = append(names, l.Attrs().Name)
			}
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// RemoveAdopted removes a device that Adopted named, if it still has its mark.
func RemoveAdopted(ns netns.Namespace, name string) error {
	return ns.Netlink(func(h *netlink.Handle) error {
		l, err := find(h, name)
		if err != nil || l == nil || !has(l, adoptedMark(name)) {
			return err
		}
		if err := h.LinkDel(l); err != nil && !gone(err) {
			return fmt.Errorf("removing device %s: %w", name, err)
		}
		return nil
	})
}
