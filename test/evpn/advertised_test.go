package evpn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// TestAdvertisedRoutes: OVN 25.03 says itself what of a router is to be known, and
// Sluice takes it from there. Only red's gateway port names a VNI.
func TestAdvertisedRoutes(t *testing.T) {
	w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{ProgramsA: ovnOf(t, "trixie")}))}
	w.set("a", lab.InterfaceSwitchPort("red", "net"), "vni", "")
	w.start("evpn:\n  dynamicRouting: on\n  learnedRoutes: on\n")
	w.announced("a1", vniRed, "172.24.0.11/32")
	w.withdrawn("a1", vniRed, "10.10.0.11/32", "10.10.0.0/24")
	router := lab.RouterName("red")
	redistribute := func(what string) {
		w.nb("a", "set", "logical_router", router, "options:dynamic-routing=true", "options:dynamic-routing-redistribute="+what)
	}
	redistribute("connected-as-host")
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.withdrawn("a1", vniRed, "10.10.0.0/24", "fd00:10::/64")
	w.connected()

	w.nb("a", "lb-add", "web", "198.51.100.80", "10.10.0.11", "--", "lr-lb-add", router, "web")
	redistribute("connected,lb")
	w.announced("a1", vniRed, "10.10.0.0/24", "fd00:10::/64", "198.51.100.80/32")
	w.withdrawn("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128", "172.24.0.0/16", "0.0.0.0/0")
	w.connected()
	w.reach("b-red1", "198.51.100.80")
	w.eventually("what is left out is said", func() error {
		s, err := w.status("a1")
		if err != nil {
			return err
		}
		for _, o := range s.Problems {
			if o.Reason == reason.LeftOut && strings.Contains(o.Error, "172.24.0.0/") {
				return nil
			}
		}
		return fmt.Errorf("objects: %+v", s.Problems)
	})

	w.givesBack()

	w.nb("a", "set", "logical_router", router, "options:dynamic-routing=false")
	w.withdrawn("a1", vniRed, "10.10.0.0/24", "fd00:10::/64", "198.51.100.80/32")
	w.eventually("nothing is left for OVN to learn", func() error {
		if out, err := w.Exec(w.Context(), "a1", "ip", "link", "show", intent.LearnedDevice); err == nil {
			return fmt.Errorf("the device is there: %s", out)
		}
		return nil
	})
}

// With an OVN before 25.03 the setting that gives routes to it is named as one without
// effect, and goes on being named until it is taken out.
func TestLearnedRoutesOfAnOlderOVN(t *testing.T) {
	w := shared(t)
	named := func(want bool) {
		t.Helper()
		w.eventually(fmt.Sprintf("the setting is named: %t", want), func() error {
			s, err := w.status("a1")
			got := slices.ContainsFunc(s.Problems, func(o status.Object) bool {
				return o.Kind == "setting" && o.Key == "evpn.learnedRoutes" && o.Reason == reason.OldOVN
			})
			if err == nil && got != want {
				err = fmt.Errorf("problems %+v", s.Problems)
			}
			return err
		})
	}
	w.kill("a1", "sluiced")
	w.startOn("a1", "evpn:\n  learnedRoutes: on\n")
	named(true)
	w.kill("a1", "sluiced")
	w.startOn("a1", "")
	w.ready("a1")
	named(false)
	w.clean()
}
