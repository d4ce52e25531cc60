package exposure

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Kinds of object.
const (
	kindPort     = "port"
	kindGateway  = "gateway"
	kindFloating = "floating-ip"
	kindNetwork  = "network"
	kindVRF      = "vrf"
)

// The keys of external_ids.
const (
	keyExpose   = "sluice-expose"
	keyNextHops = "sluice-next-hops"
	keyCIDRs    = "neutron:cidrs"

	// optionVirtualIP is the key of options with a virtual port's address.
	optionVirtualIP = "virtual-ip"
)

// object is something with an address that is to be exposed.
type object struct {
	kind string
	// name is the port's, or the external address.
	name string
	addr netip.Addr
	mac  intent.MAC
	// provider is the network that the frames are on.
	provider ovn.ProviderSwitch
	gateway  intent.GatewayKind
	// port is the Port_Binding that the frames come from, for people.
	port string
	// own are the gateway port's own networks: nothing is answered that is not on
	// one of them. Empty: not known.
	own []netip.Prefix
	// selves are the other addresses of a VM's port: they are no next hops of it.
	selves []netip.Prefix
	// hops are next hops that the port itself lists.
	hops []netip.Addr
}

func (o object) key() intent.GatewayKey {
	return intent.GatewayKey{Bridge: intent.BridgeKey(o.provider.Bridge), VLAN: uint16(o.provider.Localnet.Tag), MAC: o.mac}
}

// identity is what two objects that are the same have in common.
type identity struct {
	addr netip.Addr
	key  intent.GatewayKey
}

// report is an object of status, sorted as these are.
type report = status.Object

func sortReports(list []report) []report {
	slices.SortFunc(list, func(a, b report) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Error, b.Error))
	})
	return slices.Compact(list)
}

// say reports of an object; what is said of one address more than once counts once.
func (t *translation) say(state status.State, kind, name, why, detail string) {
	t.reports = append(t.reports, report{Kind: kind, Key: name, State: state, Reason: why, Error: detail})
}

func (t *translation) fail(kind, name, why string, err error) {
	t.say(status.Error, kind, name, why, err.Error())
}

func (t *translation) withhold(kind, name, why, detail string) {
	t.say(status.Withheld, kind, name, why, detail)
}
