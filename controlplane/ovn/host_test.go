package ovn

import (
	"net/netip"
	"testing"
)

// TestFollowerHost: nothing is told before the node's own addresses are known, and
// a change of those on a bridge of ours touches every router. The ports of the
// provider switch are followed as long as nobody is on its bridge.
func TestFollowerHost(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.nb("lsp-add", "public", "vm-public")
	l.tenant(1, "public", "a1")
	host := make(chan HostAddresses)
	w := l.follow(Config{Host: host, Needs: Needs{Neighbours: func(r *Rows, g GatewayPort) bool {
		bridge, ok := r.BridgeOf(g.Localnet.Options["network_name"])
		return ok && len(r.HostAddresses(bridge)) == 0
	}}})
	told := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.all
	}
	l.waitFor("Southbound", func() bool {
		s := w.Status()
		return s.InSync.VSwitch && len(w.ports()) > 0
	})
	if n := told(); n != 0 {
		t.Errorf("%d events before the addresses of the node", n)
	}
	few := append([]string{"ln-public"}, owned("r1", false)...)
	all := append(few[:len(few):len(few)], "vm-public")
	host <- HostAddresses{"eth0": {netip.MustParseAddr("192.0.2.1")}}
	w.untilPorts("nobody on the bridge", all...)
	before := told()
	host <- HostAddresses{"eth0": {netip.MustParseAddr("2001:db8::1")}}
	host <- HostAddresses{"br-ex": {netip.MustParseAddr("172.24.4.1")}}
	w.untilPorts("the node on the bridge", few...)
	if n := told(); n != before+1 {
		t.Errorf("%d events for one change that matters", n-before)
	}
	host <- nil
	w.untilPorts("nobody on the bridge again", all...)
}
