package main

import (
	"fmt"
	"net/netip"
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
	// device had the address when it was last seen; of hostChanged alone.
	device string
}

// lookAtVTEP looks whether the node has its tunnel address. Without it nothing is announced:
// what comes would be lost.
func (n *node) lookAtVTEP(h hostFacts) {
	takes, err := link.New(netns.Namespace{}).Takes(n.id.VTEP)
	if err != nil {
		n.d.log.Warn("whether the node has its VTEP cannot be told", "vtep", n.id.VTEP, "error", err)
		return
	}
	device := deviceOf(h.addresses, n.id.VTEP)
	why := ""
	if !takes {
		why = vtepLost(n.id.VTEP, n.vtep.device, device)
	}
	if device != "" {
		if n.vtep.device != "" && device != n.vtep.device {
			n.d.log.Info("the node's VTEP is on another device", "vtep", n.id.VTEP, "device", device)
		}
		n.vtep.device = device
	}
	old := n.vtep.lost.Swap(&why)
	if old != nil && *old == why || old == nil && takes {
		return
	}
	if takes {
		n.d.log.Info("the node has its VTEP again", "vtep", n.id.VTEP, "device", device)
		n.d.reg.Reporter(hostReports).Replace(nil)
	} else {
		n.d.log.Error("the node has lost its VTEP; its routes are withdrawn", "vtep", n.id.VTEP, "device", n.vtep.device, "error", why)
		n.d.reg.Reporter(hostReports).Replace([]status.Object{{Kind: "vtep", Key: n.id.VTEP.String(), State: status.Error, Reason: reason.NoVTEP, Error: why}})
	}
	n.look()
	if n.nextHops != nil { // not at the start
		n.nextHops.look()
	}
}

// vtepLost words where the address is not any more.
func vtepLost(vtep netip.Addr, was, now string) string {
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

// keptVTEP is the tunnel address of a node at work whose facts or addresses have changed. An
// address stays while the node has it, on whatever device; when it is gone, the first one of
// its family on lo takes its place, and without one it is waited for. One that ovn-encap-ip
// had named is followed there.
func keptVTEP(now netip.Addr, was, next nodeFacts, has bool, list []link.Address) (vtep netip.Addr, choose bool) {
	if now == was.encapIP && next.encapIP != was.encapIP {
		return now, true
	}
	if has {
		return now, false
	}
	for _, a := range list {
		if a.Link == "lo" && a.Global && a.Prefix.Addr().Is4() == now.Is4() {
			return a.Prefix.Addr(), false
		}
	}
	return now, false
}
