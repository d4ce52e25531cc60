package exposure

import (
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// Explain tells whether this node exposes an address, and as what, or why not.
func (t *Translator) Explain(a netip.Addr) status.Step {
	s := status.Step{Layer: status.LayerOVN, Object: fmt.Sprintf("exposed address %s", a)}
	if o, ok := t.exposed[a]; ok {
		s.Found = true
		s.Detail = fmt.Sprintf("%s, by port %s, on %s as %s", o.kind, o.port, o.provider.Network, o.key())
		return s
	}
	s.Hint = "Ask on the node where the VM, or for a centralised floating IP the gateway port, is bound; 'sluicectl status' shows what is withheld here."
	switch why, refused := t.refused[a]; {
	case refused:
		s.Detail = why
	case !t.cfg.Used():
		s.Detail, s.Hint = "this node exposes nothing without EVPN", "See exposure in the configuration."
	case !t.cfg.address(a):
		s.Detail, s.Hint = "exposure.prefixes excludes it", "Add its prefix there."
	default:
		s.Detail = "nothing that is bound to this node has it, of the kinds that the configuration exposes" + t.kinds()
	}
	return s
}

// kinds names what the configuration exposes.
func (t *Translator) kinds() string {
	text := ""
	for _, k := range []struct {
		on   bool
		name string
	}{{t.cfg.Ports, "ports"}, {t.cfg.FloatingIPs, "floatingIPs"}, {t.cfg.Gateways, "gateways"}} {
		if k.on {
			text += ", " + k.name
		}
	}
	return ": " + text[len(", "):]
}
