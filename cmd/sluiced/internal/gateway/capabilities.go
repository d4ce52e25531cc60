package gateway

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/capability"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// capabilityReports is the source of what is reported of missing capabilities.
const capabilityReports = "capabilities"

// noteCapabilities reports what the node goes on without. What does not start without a capability
// is told by its component.
func (g *Gateway) noteCapabilities() {
	has, err := capability.Effective()
	if err != nil {
		g.log.Warn("the capabilities of the process cannot be read", "error", err)
		return
	}
	g.reg.Reporter(capabilityReports).Replace(lackingCapabilities(has, g.cfg))
}

// lackingCapabilities are those by which a part of the node does nothing and all else works.
func lackingCapabilities(has capability.Set, cfg *config.Config) []status.Object {
	var without []string
	if cfg.Fabric.MTU == 0 {
		without = append(without, "path MTUs are not learned from ICMP (or set fabric.mtu)")
	}
	if slices.ContainsFunc(cfg.BGP.Neighbors, func(b config.Neighbor) bool { return b.Interface != "" }) {
		without = append(without, "no neighbour of bgp.neighbors[].interface is found")
	}
	if has.Has(capability.NetRaw) || len(without) == 0 {
		return nil
	}
	return []status.Object{{Kind: "capability", Key: capability.NetRaw.String(), State: status.Warning, Reason: reason.MissingCapability,
		Error: fmt.Sprintf("sluiced has no %s: %s; give it the capability and restart it", capability.NetRaw, strings.Join(without, ", and "))}}
}
