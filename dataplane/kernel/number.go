package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// free finds a number whose names nobody has, neither a link nor a port of
// another bridge. A bridge whose port has outlived its device keeps its number.
func (d *BridgeLinks) free(h *netlink.Handle, b intent.BridgeKey) (int, error) {
	ports, err := d.config.Ports.OurPorts()
	if err != nil {
		return 0, err
	}
	candidates := slices.Collect(func(yield func(int) bool) {
		if n, ok := number(ports[b]); ok && !yield(n) {
			return
		}
		for n := range maxPairs {
			if !yield(n) {
				return
			}
		}
	})
	for _, n := range candidates {
		if owner, taken := d.config.Ports.HasPort(portName(n)); taken && (owner != b || ports[b] != portName(n)) {
			continue
		}
		host, err := find(h, hostName(n))
		if err != nil {
			return 0, err
		}
		port, err := find(h, portName(n))
		if err != nil {
			return 0, err
		}
		if host != nil && unfinished(host, "veth", hostMAC(n)) {
			if err := h.LinkDel(host); err != nil {
				return 0, fmt.Errorf("removing the unfinished %s: %w", hostName(n), err)
			}
			host, port = nil, nil
		}
		if host == nil && port == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("all names from %s to %s are taken: %w", hostName(0), hostName(maxPairs-1), reconcile.ErrForeign)
}

func hostName(n int) string { return "sluice" + strconv.Itoa(n) }
func portName(n int) string { return hostName(n) + "-ovs" }

func number(port string) (int, bool) {
	s, ok := strings.CutPrefix(port, "sluice")
	s, ok2 := strings.CutSuffix(s, "-ovs")
	n, err := strconv.Atoi(s)
	return n, ok && ok2 && err == nil && n >= 0 && n < maxPairs
}

func hostMAC(n int) intent.MAC { return intent.MAC{0xfe, 0x73, 0x6c, 0x75, byte(n >> 8), byte(n)} }
func portMAC(n int) intent.MAC { return intent.MAC{0xfe, 0x73, 0x6d, 0x75, byte(n >> 8), byte(n)} }
