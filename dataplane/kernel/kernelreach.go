package kernel

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
)

// reaches are what a route leads through.
func (p *Path) reaches(key intent.RouteKey, route intent.Route) []reach {
	var out []reach
	for _, n := range route.NextHops.All() {
		r := reach{mac: n.RouterMAC, v6: key.Prefix.Addr().Is6()}
		if p.config.Whole {
			r.vni = key.VNI
		}
		out = append(out, r)
	}
	return out
}

// reachable is what there is to lead through, and where.
func (e *encoder) reachable() map[reach][]neighbour {
	out := map[reach][]neighbour{}
	bridges := map[int]intent.VNI{}
	if fabric := e.s.byMark[fabricMark]; fabric != nil && !e.p.config.Whole {
		bridges[fabric.Attrs().Index] = 0
	}
	for mark, l := range e.s.byMark {
		if vni, _, ok := vrfOfMark(mark); ok && e.p.config.Whole && mark == bridgeOf(vni).mark {
			bridges[l.Attrs().Index] = vni
		}
	}
	for n, mac := range e.f.neighbours {
		if vni, ok := bridges[n.ifindex]; ok {
			r := reach{vni: vni, mac: mac, v6: n.addr.Is6()}
			out[r] = append(out[r], n)
		}
	}
	return out
}

// provide makes what a route leads through.
func (p *Path) provide(e *encoder, n need) error {
	if n.vni == 0 && n.at.addr.Is6() {
		if err := fabric6(e.s.byMark[fabricMark], "1", "0"); err != nil {
			return err
		}
	}
	if n.vni != 0 {
		at := station{e.s.byMark[vxlanOf(n.vni).mark].Attrs().Index, n.mac}
		if e.f.forwarding[at] != n.vtep {
			if err := e.s.h.NeighSet(stationEntry(at, n.vtep)); err != nil {
				return fmt.Errorf("forwarding entry %s to %s: %w", n.mac, n.vtep, err)
			}
			e.f.forwarding[at] = n.vtep
		}
	}
	return e.f.setNeighbour(e.s.h, n.at, n.mac)
}

// prune removes what no route leads through any more.
func (p *Path) prune(e *encoder) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.listed || len(p.unused) == 0 {
		return nil
	}
	there := e.reachable()
	for r := range p.unused {
		for _, n := range there[r] {
			if err := e.f.removeNeighbour(e.s.h, n); err != nil {
				return err
			}
		}
		if err := p.forgetStation(e, r); err != nil {
			return err
		}
		delete(p.unused, r)
	}
	if p.config.Whole {
		return nil // what leads through sluice-vxlan is not counted
	}
	for r := range p.users {
		if r.v6 && r.vni == 0 {
			return nil
		}
	}
	// No IPv6 route leads through sluice-vxlan any more.
	return fabric6(e.s.byMark[fabricMark], "0", "1")
}

// forgetStation removes the entry of a VXLAN device unless the other family uses it.
func (p *Path) forgetStation(e *encoder, r reach) error {
	vxlan := e.s.byMark[vxlanOf(r.vni).mark]
	if r.vni == 0 || vxlan == nil || p.users[reach{r.vni, r.mac, !r.v6}] > 0 {
		return nil
	}
	at := station{vxlan.Attrs().Index, r.mac}
	vtep, ok := e.f.forwarding[at]
	if !ok {
		return nil
	}
	delete(e.f.forwarding, at)
	if err := e.s.h.NeighDel(stationEntry(at, vtep)); err != nil && !gone(err) {
		return fmt.Errorf("removing forwarding entry %s: %w", r.mac, err)
	}
	return nil
}

// fabric6 sets disable_ipv6 of sluice-vxlan: the kernel takes no IPv6 route through
// a device without IPv6. It gets no address by it, and its programs let nothing in.
func fabric6(fabric netlink.Link, from, to string) error {
	if fabric == nil {
		return nil
	}
	path := knob{"ipv6", "disable_ipv6", to}.path(fabric.Attrs().Name)
	old, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && string(old[:1]) != from {
		return nil
	}
	return sysctl(path, to)
}

// fabricKnobs are the sysctls of sluice-vxlan: with IPv6 as long as there is a
// neighbour for a route of the kernel path.
func fabricKnobs(h *netlink.Handle, l netlink.Link) ([]knob, error) {
	// Without IPv6 the kernel drops all IPv6 routes through the device.
	all, err := link.Dump(func() ([]netlink.Neigh, error) { return h.NeighList(l.Attrs().Index, unix.AF_INET6) })
	if err != nil {
		return nil, fmt.Errorf("listing the neighbours of %s: %w", l.Attrs().Name, err)
	}
	for _, n := range all {
		if addr, ok := addrOfNeighbour(n); ok && n.State&netlink.NUD_PERMANENT != 0 && isHandle(addr) {
			return with(closed, knob{"ipv6", "disable_ipv6", "0"}), nil
		}
	}
	return closed, nil
}
