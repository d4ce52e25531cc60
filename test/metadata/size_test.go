package metadata_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nova"
)

// User data of 64 KiB arrives as it is, through an MTU of 9000 and one of 1400, and a
// large body arrives at Nova.
func TestLargeDocuments(t *testing.T) {
	w := shared(t)
	var jumbo []string
	for i, chassis := range []string{"m1", "m2"} {
		n := w.network("red")
		n.Name, n.MTU = fmt.Sprintf("jumbo%d", i), 9000
		n.ID = lab.NetworkID(n.Name)
		n.Subnet4, n.Subnet6 = netip.MustParsePrefix(fmt.Sprintf("10.3%d.0.0/24", i+1)), netip.MustParsePrefix(fmt.Sprintf("fd00:3%d::/64", i+1))
		if err := w.AddNetwork(t.Context(), "m", "red", n); err != nil {
			t.Fatal(err)
		}
		vm := lab.VM{
			Name: "m-jumbo" + fmt.Sprint(i+1), Chassis: chassis, Tenant: "red", Network: n.Name, Instance: "inst-jumbo" + fmt.Sprint(i+1), Project: "project-red",
			Addr4: n.Subnet4.Addr().Next().Next().Next(), Addr6: n.Subnet6.Addr().Next().Next().Next(), MAC: fmt.Sprintf("fa:16:3e:00:01:%02x", i),
		}
		t.Cleanup(func() {
			if err := w.DelNetwork(background, "m", "red", n.Name); err != nil {
				t.Error(err)
			}
		})
		w.add(vm)
		jumbo = append(jumbo, vm.Name)
	}
	w.ownData(jumbo...)
	for _, vm := range append(jumbo, vms...) {
		for _, f := range families {
			r, err := w.ask(t.Context(), question{vm: vm, family: f, path: "/openstack/latest/user_data"})
			if err != nil || !bytes.Equal(r.body, userData(vm)) {
				t.Errorf("%s, %s: %v, %d bytes of user data", vm, f, err, len(r.body))
			}
			body := bytes.Repeat([]byte(vm+" says \x00\xff"), 4096)
			w.nova.Requests()
			r, err = w.ask(t.Context(), question{vm: vm, family: f, method: http.MethodPost, path: "/openstack/latest/password", body: body})
			if err != nil || r.status != http.StatusBadRequest { // too large a password
				t.Errorf("%s, %s: a large body: %d, %v", vm, f, r.status, err)
			}
			if got := w.nova.Requests(); len(got) != 1 || !bytes.Equal(got[0].Body, body) {
				t.Errorf("%s, %s: Nova got %d requests; want one with %d bytes", vm, f, len(got), len(body))
			}
		}
	}
}

// What Nova answers comes back as it is, and what it does not answer is told as such.
func TestNovaInTrouble(t *testing.T) {
	w := shared(t)
	t.Cleanup(func() { w.nova.SetFault(nova.Fault{}) })
	for _, status := range []int{400, 403, 404, 409, 429, 500, 502, 503, 504} {
		w.nova.SetFault(nova.Fault{Status: status})
		for _, vm := range []string{"m-red1", "m-red2"} {
			r, err := w.ask(t.Context(), question{vm: vm, family: ipv4})
			if err != nil || r.status != status {
				t.Errorf("%s: Nova says %d, it is told %d, %v", vm, status, r.status, err)
			}
		}
	}
}
