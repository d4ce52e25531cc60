package evpn

import (
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Claim is what a port says of a VRF: a gateway port that is here or may come, or
// another router's on a provider network whose ports this node follows.
type Claim struct {
	Port   string
	VNI    intent.VNI
	Policy Policy
}

// Steps is another number after whatever may change the Claims.
func (t *Translator) Steps() uint64 { return t.steps }

// Claims lists those that the node sees. One port may be there under two names.
func (t *Translator) Claims() []Claim {
	var out []Claim
	for _, r := range t.results {
		for _, g := range r.Gateways {
			out = append(out, Claim{g.Gateway.LogicalPort, g.Gateway.VNI, g.Policy})
		}
	}
	if t.known == nil {
		return out
	}
	reader := translation{cfg: t.cfg}
	for _, s := range t.known.switches {
		for port, a := range s.annotated {
			out = append(out, Claim{port, a.vni, reader.policy(a)})
		}
	}
	return out
}

// annotate notes what a port of a provider switch says. What it says wrongly is an
// error of the object on its own node.
func (s knownSwitch) annotate(p ovn.PortBinding) {
	if a, present, f := readAnnotation(p.ExternalIDs); present && f == nil {
		s.annotated[p.LogicalPort] = a
	}
}
