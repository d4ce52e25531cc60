package underlay

import (
	"log/slog"
	"maps"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// routing is link.Facts as far as the paths to the BGP neighbours need it.
type routing interface {
	Towards(netip.Addr) (link.Underlay, error)
	ByDefault(netip.Addr) (bool, error)
}

// lastRoutes finds the devices of the underlay, and knows those of before.
type lastRoutes struct {
	cfg     *config.Config
	routing routing
	log     *slog.Logger
	last    map[string]intent.UnderlayDevice
	// routed are the neighbours that had a route of their own. nil: no path was looked
	// up yet, and last is what an earlier start left.
	routed map[netip.Addr]bool
	// lost are the neighbours to which the last look has found no path.
	lost map[netip.Addr]error
}

// newLastRoutes begins with the devices that an earlier start left.
func newLastRoutes(cfg *config.Config, log *slog.Logger, left map[string]intent.UnderlayDevice) *lastRoutes {
	return &lastRoutes{cfg: cfg, routing: link.New(netns.Namespace{}), log: log, last: left}
}

// devices are the configured devices, else the devices of the paths to the neighbours. The devices
// of before stay while a neighbour has no path, or has a default route in place of its own route:
// that may lead to the management network. At the first look after a restart, a default route by a
// device that the earlier start did not have counts as such. Without exposure there are none.
func (w *lastRoutes) devices() map[string]intent.UnderlayDevice {
	out := map[string]intent.UnderlayDevice{}
	w.lost = map[netip.Addr]error{}
	if !w.cfg.Exposure.Used() {
		return out
	}
	add := func(name string) { out[name] = intent.UnderlayDevice{Name: name} }
	for _, name := range w.cfg.Exposure.Devices {
		add(name)
	}
	if len(out) > 0 {
		return out
	}
	first := w.routed == nil
	if first {
		w.routed = map[netip.Addr]bool{}
	}
	for _, b := range w.cfg.BGP.Neighbors {
		if b.Interface != "" {
			add(b.Interface)
			continue
		}
		path, err := w.routing.Towards(b.Address)
		if err != nil {
			w.log.Debug("the path to a BGP neighbour cannot be found", "neighbor", b.Address, slog.Any("error", err))
			w.lost[b.Address] = err
			maps.Copy(out, w.last)
			continue
		}
		if path.Name == "lo" {
			continue
		}
		_, known := w.last[path.Name]
		anywhere := w.leadsAnywhere(b.Address)
		if !anywhere || first && len(w.last) > 0 && !known {
			w.routed[b.Address] = true
		}
		if anywhere && w.routed[b.Address] {
			maps.Copy(out, w.last)
			continue
		}
		add(path.Name)
	}
	w.last = out
	return maps.Clone(out)
}

// leadsAnywhere tells whether the route to a neighbour is a default route, or not known.
func (w *lastRoutes) leadsAnywhere(neighbor netip.Addr) bool {
	byDefault, err := w.routing.ByDefault(neighbor)
	return err != nil || byDefault
}
