package metadata_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
)

// A VM of another project uses the address of a VM on its network, by what OVN allows it. It
// is never told what belongs to that VM: not where one of the two is served from its tap and
// the network has a namespace on the node, and not where both are served by the namespace.
func TestAddressOfAnotherPort(t *testing.T) {
	w := shared(t)
	defer w.externalPort("m1", "red")()
	for _, chassis := range []string{"m1", "m2"} {
		victim := w.vm(map[string]string{"m1": "m-red1", "m2": "m-red2"}[chassis])
		thief := thief(chassis)
		w.add(thief)
		w.ownData(victim.Name, thief.Name)
		own := strings.Join([]string{thief.MAC, thief.Addr4.String(), thief.Addr6.String()}, " ")
		for how, allowed := range map[string][]string{
			"without port security": {"lsp-set-addresses", thief.Name, own, "unknown", "--", "lsp-set-port-security", thief.Name},
			"with allowed addresses": {"lsp-set-addresses", thief.Name, own, "--", "lsp-set-port-security", thief.Name,
				strings.Join([]string{own, victim.Addr4.String(), linkLocal(victim.MAC)}, " ")},
		} {
			w.nb(append([]string{"--wait=hv"}, allowed...)...)
			w.takesAddresses(thief, victim, chassis+" "+how)
		}
		w.ownData(victim.Name, thief.Name)
		if err := w.DelVM(background, thief.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// thief is a VM of another project on red's network.
func thief(chassis string) lab.VM {
	return lab.VM{
		Name: "m-thief", Chassis: chassis, Tenant: "red", Network: "net", Instance: "inst-thief", Project: "project-thief",
		Addr4: netip.MustParseAddr("10.30.0.66"), Addr6: netip.MustParseAddr("fd00:30::66"), MAC: "fa:16:3e:00:00:66",
	}
}

// takesAddresses has a VM ask with the addresses of another one, by its own MAC address on a
// route of its own link, and by a MAC address that nobody has through the metadata port.
func (w *world) takesAddresses(thief, victim lab.VM, how string) {
	w.Helper()
	vm, gateway := thief.Name, "ip route replace 169.254.169.254 via "+w.network("red").MetadataAddrs()[0].Addr().String()
	sources := map[family]string{ipv4: victim.Addr4.String(), ipv6: linkLocal(victim.MAC)}
	each := fmt.Sprintf("for a in %s/32 %s/128; do ip addr %%s $a dev eth0 %%s; done", sources[ipv4], sources[ipv6])
	w.sh(vm, fmt.Sprintf(each, "add", "nodad"))
	defer w.sh(vm, fmt.Sprintf(each, "del", "")+"; ip link set eth0 address "+thief.MAC+"; "+gateway)
	for _, change := range []string{"ip route replace 169.254.169.254 dev eth0", "ip link set eth0 address fa:16:3e:00:00:99; " + gateway} {
		w.sh(vm, change+"; ip neigh flush dev eth0")
		var group sync.WaitGroup
		for f, source := range sources {
			group.Go(func() {
				q := question{vm: vm, family: f, from: netip.AddrPortFrom(netip.MustParseAddr(source), 0), patience: unanswered()}
				r, err := w.ask(w.Context(), q)
				if err == nil && r.status != http.StatusNotFound && string(r.body) != thief.Instance {
					w.Errorf("%s, %s, as %s: %d, it is told that it is %q", how, f, source, r.status, r.body)
				}
			})
		}
		group.Wait()
	}
}

// linkLocal is the address that is made of a MAC address.
func linkLocal(mac string) string {
	var b [6]byte
	if _, err := fmt.Sscanf(mac, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]); err != nil {
		panic(err)
	}
	return fmt.Sprintf("fe80::%x:%x:%x:%x", uint16(b[0]^2)<<8|uint16(b[1]), uint16(b[2])<<8|0xff, 0xfe00|uint16(b[3]), uint16(b[4])<<8|uint16(b[5]))
}

// externalPort gives a network a port of type external that is bound to a chassis: it has no
// tap, so the network has a namespace there, until the port is removed.
func (w *world) externalPort(chassis, tenant string) (remove func()) {
	w.Helper()
	name, group := "m-external", "external-"+chassis
	w.nb("ha-chassis-group-add", group, "--", "ha-chassis-group-add-chassis", group, chassis, "10", "--",
		"lsp-add", w.network(tenant).Switch(tenant), name, "--", "lsp-set-type", name, "external", "--",
		"lsp-set-addresses", name, "fa:16:3e:00:00:77 10.30.0.77 fd00:30::77", "--",
		"set", "Logical_Switch_Port", name, `external_ids:neutron\:device_id=inst-external`, `external_ids:neutron\:project_id=project-external`)
	id := w.nb("--bare", "--columns=_uuid", "find", "HA_Chassis_Group", "name="+group)
	w.nb("--wait=hv", "set", "Logical_Switch_Port", name, "ha_chassis_group="+id)
	w.isServedOn(chassis, name, status.FromNamespace, reason.ExternalPort)
	return func() {
		w.nb("lsp-del", name)
		w.nb("ha-chassis-group-del", group)
		w.eventually("the namespace has gone", func() error {
			if got := w.namespaces(chassis); slices.Contains(got, w.network(tenant).Namespace()) {
				return fmt.Errorf("namespaces %q", got)
			}
			return nil
		})
	}
}
