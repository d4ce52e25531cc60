package settings

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Underlay is the part of the configuration of routes that are learned from the underlay. Packets may
// have vtep as their source, beside the addresses that it names.
func Underlay(c config.Underlay, vtep netip.Addr) underlay.Config {
	out := underlay.Config{Metric: c.Install.Metric, Sources: append(append([]netip.Addr{}, c.Install.Source...), vtep)}
	for _, m := range c.Install.Accept {
		out.Accept = append(out.Accept, underlay.Match{Prefix: m.Prefix, GE: m.GE, LE: m.LE})
	}
	return out
}

// UnderlayAnnouncements are those of the configuration. A VTEP that is listed as a prefix
// is announced always.
func UnderlayAnnouncements(c config.UnderlayAnnounce, vtep netip.Addr) map[netip.Prefix]intent.UnderlayAnnouncement {
	out := map[netip.Prefix]intent.UnderlayAnnouncement{}
	if c.VTEP {
		p := netip.PrefixFrom(vtep, vtep.BitLen())
		out[p] = intent.UnderlayAnnouncement{Prefix: p, VTEP: true}
	}
	for _, p := range c.Prefixes {
		out[p] = intent.UnderlayAnnouncement{Prefix: p}
	}
	return out
}
