package loadbalancer

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// Path is what serves a VIP.
type Path string

// The paths.
const (
	PathEBPF Path = "ebpf"
	PathOVN  Path = "ovn"
)

// Choice is the path of a VIP, and why.
type Choice struct {
	Path Path
	// Reason is a word of pkg/reason, Detail a sentence, which may be empty.
	Reason, Detail string
}

// Balanced is a VIP of a VRF or a switch, and what serves it.
type Balanced struct {
	// Switch is the switch's name as people know it; empty for a VIP of a VRF.
	Switch string
	// Balancer is the name of the row, or its _uuid where it has none.
	Balancer string
	VIP      intent.VIP
	// Backends are what the row says of them, and probes.
	Backends []Backend
	Choice   Choice
	// Standby: the gateway port is elsewhere.
	Standby bool
}

// Choose decides. outside tells of a backend's address why packets from where the VIP is
// served do not get there as they are; empty: they do.
func Choose(v VIP, outside func(netip.Addr) string) Choice {
	if v.Broken != nil {
		return Choice{PathOVN, reason.BadLoadBalancer, v.Broken.Error()}
	}
	if a := v.Address.Addr(); martian(a) {
		return Choice{PathOVN, reason.MartianVIP, fmt.Sprintf("nobody forwards to %s", a)}
	}
	if v.Path == PathOVN {
		return Choice{PathOVN, reason.PathConfigured, "options:" + optionPath + " of the load balancer"}
	}
	for _, b := range v.Backends {
		if martian(b.Address.Addr()) {
			return Choice{PathOVN, reason.MartianVIP, fmt.Sprintf("backend %s has an address to which nothing forwards", b.Address.Addr())}
		}
		if why := outside(b.Address.Addr()); why != "" {
			return Choice{PathOVN, reason.BackendOutside, fmt.Sprintf("backend %s is %s", b.Address.Addr(), why)}
		}
		if v.Protocol == intent.SCTP && b.Address.Port() != v.Address.Port() {
			return Choice{PathOVN, reason.SCTPPort, fmt.Sprintf("backend %s has another port than the VIP, which SCTP's checksum covers", b.Address)}
		}
	}
	if option := v.withoutBackends(); option != "" && v.up() == 0 {
		return Choice{PathOVN, reason.NoBackends, "options:" + option + " is true, and no backend is up"}
	}
	if v.live() == 0 {
		return Choice{PathEBPF, reason.NoBackends, "no backend gets new sessions"}
	}
	return Choice{Path: PathEBPF, Reason: reason.PathAuto}
}

func martian(a netip.Addr) bool { return intent.Martian(netip.PrefixFrom(a, a.BitLen())) }

// withoutBackends is the option by which OVN does something about packets to a VIP without
// backends.
func (v VIP) withoutBackends() string {
	switch {
	case v.Reject:
		return optionReject
	case v.Event:
		return optionEvent
	}
	return ""
}

// live counts the backends that get new flows.
func (v VIP) live() (n int) {
	for _, b := range v.Backends {
		if b.share() > 0 {
			n++
		}
	}
	return n
}

// up counts those that OVN would lead flows to: it knows of health, and of no weights.
func (v VIP) up() (n int) {
	for _, b := range v.Backends {
		if !b.Down {
			n++
		}
	}
	return n
}

// probed takes over what is known of the backends' health. As in OVN one of which nothing
// is known counts as alive.
func (v VIP) probed(health func(backend netip.AddrPort) string) {
	for i, b := range v.Backends {
		status := health(b.Address)
		v.Backends[i].Down = status == "offline" || status == "error"
	}
}

// Answers tells whether packets to the VIP are to come: to a backend that gets new flows,
// or to OVN, which tells clients or whoever listens to its events that there is none.
func (v VIP) Answers() bool { return v.Live() || v.withoutBackends() != "" }

// Reached tells the same where OVN balances, which knows no weights.
func (v VIP) Reached() bool {
	return v.withoutBackends() != "" || v.up() > 0
}

// Live tells whether a packet to the VIP gets to a backend.
func (v VIP) Live() bool { return v.live() > 0 }

// Intent is the VIP in a VRF. A client of one with affinity gets its backend by its address:
// the same on all nodes, whatever they know of it.
func (v VIP) Intent(vni intent.VNI) intent.VIP {
	var list []intent.Backend
	for _, b := range v.Backends {
		list = append(list, intent.Backend{Addr: b.Address.Addr(), Port: b.Address.Port(), Weight: b.share()})
	}
	return intent.VIP{
		Key:      intent.VIPKey{VNI: vni, Protocol: v.Protocol, Addr: v.Address.Addr(), Port: v.Address.Port()},
		Backends: intent.NewBackendSet(list...), Slots: uint32(v.TableSize), Affinity: uint16(v.Affinity / time.Second),
		ByAddress: v.ByAddress || v.Affinity > 0, Flush: v.Flush,
	}
}
