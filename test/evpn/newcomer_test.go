package evpn_test

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// A tenant's ports get the VNI of another tenant that runs, with equal subnets: the one that
// runs loses no packet, whichever router is first by name and over a restart of sluiced, and
// the newcomer gets the error.
func TestVNIOfATenantThatRuns(t *testing.T) {
	w := shared(t)
	router := func(tenant string) string {
		return strings.TrimSpace(w.sb("b", "--bare", "--columns=_uuid", "find", "Datapath_Binding", "external_ids:name="+lab.RouterName(tenant)))
	}
	runs, comes, vni, restored := "red", "blue", "1001", "2001"
	if router("red") < router("blue") { // the newcomer is the first by name
		runs, comes, vni, restored = comes, runs, restored, vni
	}
	w.Cleanup(func() {
		for _, port := range []string{lab.GatewaySwitchPort(comes), lab.InterfaceSwitchPort(comes, "net")} {
			_, _ = w.NB(background, "b", setting(port, "vni", restored)...)
		}
	})
	w.unharmed(runs, func() {
		w.setVNI("b", comes, vni)
		w.problem("b1", "overlap", lab.InterfaceSwitchPort(comes, "net"))
		p := w.process("b1", "sluiced")
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		w.startAgain("b1", "sluiced")
		w.ready("b1")
		w.problem("b1", "overlap", lab.InterfaceSwitchPort(comes, "net"))
	})
	w.setVNI("b", comes, restored)
	w.connected()
	w.clean()
}
