package evpn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// The node's provider bridge gets the address of the routers' default gateway, as
// in a DevStack: from then on the node answers for it, and Sluice does not. The
// tenants' exposed networks go through Sluice all the same.
func TestBridgeAddressIsTheGateway(t *testing.T) {
	w := shared(t)
	const take = "ip addr flush dev br-ex; ip link set br-ex down"
	t.Cleanup(func() { _, _ = w.Exec(background, "a1", "sh", "-c", take) })
	w.exec("a1", "sh", "-ec", "ip addr add 172.24.0.1/16 dev br-ex; ip addr add 2001:db8:24::1/64 dev br-ex nodad; ip link set br-ex up")
	answers := func(want bool) {
		t.Helper()
		w.eventually(fmt.Sprintf("a1 answers as next hop: %t", want), func() error {
			flows := w.flows("a1")
			if strings.Contains(flows, "arp_tpa=172.24.0.0/16") != want || strings.Contains(flows, "nd_target=2001:db8:24::/64") != want {
				return fmt.Errorf("flows:\n%s", flows)
			}
			return nil
		})
	}
	learned := func(mac string) {
		t.Helper()
		if _, err := w.SB(w.Context(), "a", "--all", "destroy", "MAC_Binding"); err != nil {
			t.Fatal(err)
		}
		w.eventually("the routers have learned "+mac, func() error {
			// A router asks when it has a packet.
			for _, far := range []string{addrB4, addrB6} {
				_, _ = w.Exec(w.Context(), "a-red1", "ping", "-n", "-c1", "-W0.3", far)
			}
			for _, ip := range []string{"172.24.0.1", "2001:db8:24::1"} {
				got, err := w.SB(w.Context(), "a", "--bare", "--columns=mac", "find", "MAC_Binding", "logical_port="+lab.GatewayPort("red"), fmt.Sprintf("ip=%q", ip))
				if err != nil || strings.TrimSpace(got) != mac {
					return fmt.Errorf("%s is at %q, %v", ip, got, err)
				}
			}
			return nil
		})
		w.connected()
	}
	answers(false)
	learned(w.mac("a1", "br-ex"))
	w.exec("a1", "sh", "-ec", take)
	answers(true)
	learned("02:53:4c:55:49:43")
	w.clean()
}
