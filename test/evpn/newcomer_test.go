package evpn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
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

// A tenant's ports get the VNI of another tenant of the cloud, with equal subnets, whose gateway
// port is on another node: each of the two nodes names the other's gateway port and chassis, and
// neither withdraws anything.
func TestVNIOfATenantElsewhere(t *testing.T) {
	w := shared(t)
	port := lab.GatewayPort("blue")
	restore := func() {
		_, _ = w.NB(background, "a", setting(lab.GatewaySwitchPort("blue"), "vni", "2001")...)
		_, _ = w.NB(background, "a", setting(lab.InterfaceSwitchPort("blue", "net"), "vni", "2001")...)
		_, _ = w.NB(background, "a", "lrp-set-gateway-chassis", port, "a1", "20", "--", "lrp-set-gateway-chassis", port, "a2", "10")
	}
	w.Cleanup(restore)
	w.nb("a", "lrp-set-gateway-chassis", port, "a2", "20", "--", "lrp-set-gateway-chassis", port, "a1", "10")
	subnets := []string{"10.10.0.0/24", "fd00:10::/64"}
	w.announced("a2", 2001, subnets...)
	w.connected()
	w.clean()
	w.setVNI("a", "blue", fmt.Sprint(vniRed))
	for node, row := range map[string]struct{ own, other, chassis string }{"a1": {"red", "blue", "a2"}, "a2": {"blue", "red", "a1"}} {
		w.eventually(node+" names the other router", func() error {
			s, err := w.status(node)
			if err != nil {
				return err
			}
			for _, o := range s.Problems {
				if o.Reason == "overlap-elsewhere" && o.Key == lab.InterfaceSwitchPort(row.own, "net") && o.State == status.Warning &&
					strings.Contains(o.Error, lab.GatewayPort(row.other)) && strings.Contains(o.Error, "chassis "+row.chassis) {
					return nil
				}
			}
			return fmt.Errorf("problems: %+v", s.Problems)
		})
	}
	for _, node := range []string{"a1", "a2"} {
		w.announced(node, vniRed, subnets...)
	}
	restore()
	w.announced("a1", 2001, subnets...)
	for _, node := range []string{"a1", "a2"} {
		w.eventually(node+" names nobody", func() error {
			s, err := w.status(node)
			if err == nil && slices.ContainsFunc(s.Problems, func(o status.Object) bool { return o.Reason == "overlap-elsewhere" }) {
				err = fmt.Errorf("problems: %+v", s.Problems)
			}
			return err
		})
	}
	w.connected()
	w.clean()
}
