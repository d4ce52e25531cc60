package paths

import (
	"fmt"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// oneWay reports the settings of the node by which all flows between two VMs
// would take one of several next hops on the kernel path, unlike on the eBPF path. They are
// looked at only if there is a choice, and never changed.
func (p *Paths) oneWay() []status.Object {
	var choices [2]bool // IPv4, IPv6
	p.tables.Pipeline.View(func() {
		tables.Of(p.tables, intent.KernelRoutes).EachLocked(func(k intent.RouteKey, r intent.Route) {
			if r.NextHops.Len() < 2 {
				return
			}
			if k.Prefix.Addr().Is4() {
				choices[0] = true
			} else {
				choices[1] = true
			}
		})
	})
	var out []status.Object
	for family, choice := range choices {
		ipv6 := family == 1
		if !choice {
			continue
		}
		ports, err := p.hashPorts(ipv6)
		if err != nil {
			p.log.Warn("how the kernel chooses among several next hops cannot be read", "error", err)
			continue
		}
		if !ports {
			out = append(out, status.Object{Kind: "sysctl", Key: kernel.HashPolicy(ipv6), State: status.Warning, Reason: reason.HashPolicy,
				Error: fmt.Sprintf("routes on the kernel path have several next hops, and the kernel chooses without looking at ports: set %s to 1", kernel.HashPolicy(ipv6))})
		}
	}
	return out
}
