package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func (d *BridgeLinks) intact(ctx context.Context, b intent.BridgeKey, p pair) (bool, error) {
	if !p.complete() || !up(p.host) || !up(p.port) || !d.hasMTU(p) || !isSettled(p.host, d.knobs()) || !isClosed(p.port) {
		return false, nil
	}
	datapath, err := d.config.Ports.Datapath(b)
	if err != nil || datapath == "netdev" && !offloadsAreOff(p.host.Attrs().Name) {
		return false, nil
	}
	if err := d.config.Ports.CheckPort(ctx, b, p.port.Attrs().Name); err != nil {
		return false, unanswered(err)
	}
	return d.adopt(ctx, p.host) == nil, nil
}

// unanswered is the error of a check that was not answered in time: it says nothing of what
// was to be checked. An ovs-vswitchd that is stopped does not answer.
func unanswered(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// adopt attaches the programs once to a pair that an earlier process made: its
// pins may be gone. To apply the whole pair anew would lose packets. Programs that
// were taken off since are an error: Apply puts them back.
func (d *BridgeLinks) adopt(ctx context.Context, l netlink.Link) error {
	if d.config.Attach == nil {
		return nil
	}
	if d.isAttached(l) {
		return d.stillAttached(l)
	}
	if err := d.config.Attach(ctx, l.Attrs().Name, l.Attrs().Index); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attached[l.Attrs().Index] = true
	return nil
}

var errTakenOff = errors.New("its program was detached")

func (d *BridgeLinks) stillAttached(l netlink.Link) error {
	if d.config.Attached == nil {
		return nil
	}
	ok, err := d.config.Attached(l.Attrs().Index)
	if err == nil && !ok {
		err = errTakenOff
	}
	return err
}

// Damage is what is wrong with the devices and programs of the pairs that were
// listed or applied, one line a bridge. Ports and flows are not looked at.
func (d *BridgeLinks) Damage() ([]string, error) {
	known := d.Bridges()
	var out []string
	err := d.config.Namespace.Netlink(func(h *netlink.Handle) error {
		found, err := pairs(h)
		if err != nil {
			return err
		}
		for _, b := range known {
			if err := d.damage(found[b]); err != nil {
				out = append(out, fmt.Sprintf("veth pair of bridge %s: %v", b, err))
			}
		}
		return nil
	})
	return out, err
}

func (d *BridgeLinks) damage(p pair) error {
	switch {
	case !p.complete():
		return errors.New("is missing")
	case !up(p.host) || !up(p.port):
		return errors.New("is down")
	case !d.hasMTU(p):
		return fmt.Errorf("has the MTUs %d and %d, and not %d", p.host.Attrs().MTU, p.port.Attrs().MTU, d.config.MTU)
	case !isSettled(p.host, d.knobs()) || !isClosed(p.port):
		return errors.New(strings.Join(append(unsettled(p.host, d.knobs()), unsettled(p.port, closed)...), ", "))
	case !d.isAttached(p.host):
		return nil // the next List attaches, or says why it cannot
	}
	return d.stillAttached(p.host)
}

// hasMTU tells whether both ends take what they have to: what is larger a pair drops
// in silence.
func (d *BridgeLinks) hasMTU(p pair) bool {
	return p.host.Attrs().MTU == d.config.MTU && p.port.Attrs().MTU == d.config.MTU
}
