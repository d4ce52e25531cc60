package namespace

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// Part is one of the things that are made for the proxy, or for a network.
type Part struct {
	// Kind is namespace, device or port, and Name the name: of a pair both.
	Kind, Name string
	There      bool
	// Ours: it is Sluice's.
	Ours bool
}

// Foreign tells whether something of others has the name.
func (p Part) Foreign() bool { return p.There && !p.Ours }

// Parts are those that Ensure makes. It reads only.
func (p *Proxy) Parts() ([]Part, error) { return p.pair().parts(p.config.Node) }

// Parts are those that Apply makes for a network. It reads only.
func (d *Networks) Parts(network string) ([]Part, error) {
	p := d.pair(network, intent.MAC{})
	out, err := p.parts(d.config.Node)
	if err != nil {
		return nil, err
	}
	port, there, err := d.config.Ports.FindPort(p.outside)
	if err != nil {
		return nil, fmt.Errorf("port %s: %w", p.outside, err)
	}
	return append(out, Part{"port", p.outside, there, there && port.Network == network}), nil
}

func (p pair) parts(node netns.Namespace) ([]Part, error) {
	there, ours, err := p.space.ours()
	if err != nil {
		return nil, err
	}
	space := Part{"namespace", p.space.name(), there, ours}
	device := Part{Kind: "device", Name: p.outside + " and " + p.inside}
	err = node.Netlink(func(h *netlink.Handle) error {
		outer, err := kernel.Find(h, p.outside)
		if err == nil && outer != nil {
			device.There, device.Ours = true, p.marked(outer) || p.unfinished(outer)
		}
		return err
	})
	return []Part{space, device}, err
}
