package translation

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// InSync tells which databases are in sync; false before the first event.
func (t *Translation) InSync() (s ovn.InSync, known bool) {
	if now := t.inSync.Load(); now != nil {
		return *now, true
	}
	return s, false
}

// OVNInSync tells whether Southbound and the local database are.
func (t *Translation) OVNInSync() bool {
	s, _ := t.InSync()
	return s.SB && s.VSwitch
}

// AllInSync tells whether all databases are.
func (t *Translation) AllInSync() bool {
	s, known := t.InSync()
	return known && s.All()
}

// AllRemembered is AllInSync, or of Northbound what is remembered is known.
func (t *Translation) AllRemembered() bool {
	s, known := t.InSync()
	return known && s.Remembered().All()
}

// Waits tells whether Northbound rows that decide what a VRF exposes are still to come.
func (t *Translation) Waits(vni intent.VNI) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if vni == intent.DefaultVRF {
		return t.exposure.Pending()
	}
	return t.tenants.Pending(vni)
}

// Needed tells why a node is needed that exposes without EVPN, and whether it is.
func (t *Translation) Needed() (why string, needed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exposure.Needed()
}

// Choice is why a VRF is to be on its path; false where OVN asks for no such VRF.
func (t *Translation) Choice(vni intent.VNI) (evpn.Choice, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tenants.Choice(vni)
}

// Steps is another number whenever Claims, Exposed or Balanced may be others.
func (t *Translation) Steps() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tenants.Steps()
}

// Claims are the gateway ports with their route targets.
func (t *Translation) Claims() []evpn.Claim {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tenants.Claims()
}

// Exposed are the subnets of this node's routers.
func (t *Translation) Exposed() []evpn.Exposed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tenants.Exposed()
}

// Balanced are the VIPs of VRFs.
func (t *Translation) Balanced() []loadbalancer.Balanced {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tenants.Balanced()
}

// Explain is evpn.Translator.Explain. Call it with OVN's rows in view.
func (t *Translation) Explain(rows *ovn.Rows, q status.Query) ([]status.Step, evpn.Where) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tenants.Explain(rows, q)
}

// Inside is evpn.Translator.Inside. Call it with OVN's rows in view.
func (t *Translation) Inside(rows *ovn.Rows, q status.Query) (steps []status.Step, inside bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tenants.Inside(rows, q)
}

// ExplainExposed tells whether an address is exposed without EVPN, and why.
func (t *Translation) ExplainExposed(a netip.Addr) status.Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exposure.Explain(a)
}

// Known tells whether there was an event.
func (t *Translation) Known() bool { return t.inSync.Load() != nil }
