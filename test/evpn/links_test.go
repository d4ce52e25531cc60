package evpn_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// links are the names of the devices on a node.
func (w *world) links(node string) []string {
	w.Helper()
	var list []struct {
		Name string `json:"ifname"`
	}
	if err := json.Unmarshal([]byte(w.exec(node, "ip", "-j", "link", "show")), &list); err != nil {
		w.Fatal(err)
	}
	var names []string
	for _, l := range list {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}

// A VRF has no device of its own: a node with many has the devices of one with
// two, on the same bridges.
func TestDevicesDoNotGrow(t *testing.T) {
	many := 100
	if nightly.On() {
		many = 1000
	}
	const few = 2
	var devices [2][]string
	for i, tenants := range []int{few, many} {
		t.Run(fmt.Sprintf("%d VRFs", tenants), func(t *testing.T) {
			w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{ExtraTenants: tenants - few, HostsPerTenant: 1}))}
			w.startOn("a1", "") // it has all gateways
			w.eventually(fmt.Sprintf("%d VRFs on a1", tenants), func() error {
				out, err := w.Exec(w.Context(), "a1", sluicectl(), "vrf", "list", "-o", "json")
				if err != nil {
					return err
				}
				var vrfs []status.VRF
				if err := json.Unmarshal([]byte(out), &vrfs); err != nil {
					return err
				}
				good := slices.DeleteFunc(vrfs, func(v status.VRF) bool { return v.State != status.OK })
				if len(good) != tenants {
					return fmt.Errorf("%d are ok", len(good))
				}
				return nil
			})
			devices[i] = w.links("a1")
			t.Logf("%d VRFs: %d devices: %s", tenants, len(devices[i]), strings.Join(devices[i], " "))
		})
	}
	if !slices.Equal(devices[0], devices[1]) {
		t.Errorf("with %d VRFs: %v\nwith %d VRFs: %v", few, devices[0], many, devices[1])
	}
}
