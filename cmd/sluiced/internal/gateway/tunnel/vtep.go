package tunnel

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// hostReports is the source of what is reported of the host's own facts.
const hostReports = "host"

// ownVTEP follows the node's tunnel address.
type ownVTEP struct {
	// lost says that the node takes no packets for the address; nil or empty: it does.
	lost atomic.Pointer[string]
	// device had the address when it was last seen; of LookAtVTEP alone.
	device string

	mu sync.Mutex // around reports
	// forgotten: the gateway has ended. LookAtVTEP may still be called.
	forgotten bool
}

// LookAtVTEP looks whether the node has its tunnel address. Without it nothing is announced:
// what comes would be lost.
func (t *Tunnel) LookAtVTEP(addresses []link.Address) {
	takes, err := link.New(netns.Namespace{}).Takes(t.cfg.VTEP)
	if err != nil {
		t.log.Warn("cannot find out whether the node has its VTEP", "vtep", t.cfg.VTEP, "error", err)
		return
	}
	device := deviceOf(addresses, t.cfg.VTEP)
	why := ""
	if !takes {
		why = VTEPLost(t.cfg.VTEP, t.vtep.device, device)
	}
	if device != "" {
		if t.vtep.device != "" && device != t.vtep.device {
			t.log.Info("the node's VTEP is on another device", "vtep", t.cfg.VTEP, "device", device)
		}
		t.vtep.device = device
	}
	old := t.vtep.lost.Swap(&why)
	if old != nil && *old == why || old == nil && takes {
		return
	}
	if takes {
		t.log.Info("the node has its VTEP again", "vtep", t.cfg.VTEP, "device", device)
		t.report(nil)
	} else {
		t.log.Error("the node has lost its VTEP; its routes are withdrawn", "vtep", t.cfg.VTEP, "device", t.vtep.device, "error", why)
		t.report([]status.Object{{Kind: "vtep", Key: t.cfg.VTEP.String(), State: status.Error, Reason: reason.NoVTEP, Error: why}})
	}
	t.looks.Send()
	t.node.VTEPChanged()
}

func (t *Tunnel) report(objects []status.Object) {
	t.vtep.mu.Lock()
	defer t.vtep.mu.Unlock()
	if !t.vtep.forgotten {
		t.reg.Reporter(hostReports).Replace(objects)
	}
}

// VTEPLost words where the address is not any more.
func VTEPLost(vtep netip.Addr, was, now string) string {
	switch {
	case now != "":
		return fmt.Sprintf("the device %s with the VTEP %s is down; set it up", now, vtep)
	case was != "":
		return fmt.Sprintf("the VTEP %s is gone from device %s; add the address again, then the routes with that preferred source (src %s), which the kernel has removed with it", vtep, was, vtep)
	}
	return fmt.Sprintf("no device of the node has the VTEP %s; add the address, or correct fabric.vtep", vtep)
}

func deviceOf(list []link.Address, a netip.Addr) string {
	for _, l := range list {
		if l.Prefix.Addr() == a {
			return l.Link
		}
	}
	return ""
}

// gate keeps announcements back that lead to an address that the node does not have.
func (v *ownVTEP) gate() string {
	if why := v.lost.Load(); why != nil {
		return *why
	}
	return ""
}
