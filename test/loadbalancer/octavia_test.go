package loadbalancer_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// octavia is a load balancer as ovn-octavia-provider 8.0.0 writes it: two listeners with one
// pool, of IPv4 and IPv6, whose last member is disabled; a listener that is down; a floating
// IP. The provider leaves out of vips what is not to be served.
const octavia = "7f3a1c52-6f5e-4d1a-9a6b-0f7e0c4f7a11"

var (
	octaviaVIPs = []netip.Addr{netip.MustParseAddr("10.10.0.110"), netip.MustParseAddr("fd00:10::110")}
	octaviaFIP  = netip.MustParseAddr("172.24.0.110")
)

func (w *world) octavia() {
	w.Helper()
	members := func(of netip.Addr) string {
		return strings.Join(endpoints(of, backend.HTTPPort)[:lab.Backends-1], ",")
	}
	var tokens []string
	for _, vip := range octaviaVIPs {
		for i, e := range endpoints(vip, backend.HTTPPort) {
			tokens = append(tokens, fmt.Sprintf("member_m%d_%s_S1", i, strings.NewReplacer("[", "", "]", "").Replace(e)))
		}
	}
	args := []string{"--id=@lb", "create", "Load_Balancer", "name=" + octavia, "protocol=tcp", "selection_fields=ip_src,ip_dst,tp_src,tp_dst"}
	for key, value := range map[string]string{
		"enabled": "True", "neutron:vip": octaviaVIPs[0].String(), "neutron:vip_port_id": "P0", "neutron:vip_fip": octaviaFIP.String(), "neutron:additional_vips": octaviaVIPs[1].String(),
		"lr_ref": router, "ls_refs": fmt.Sprintf(`{"%s": 11}`, lab.SwitchName("red", "net")), "listener_L1": "80:pool_A", "listener_L2": "8000:pool_A", "listener_L3:D": "443:pool_A",
		"pool_A": strings.Join(tokens, ","), "neutron:member_status": `{"m4": "OFFLINE"}`,
	} {
		args = append(args, fmt.Sprintf("external_ids:%q=%q", key, value))
	}
	for _, a := range append(slices.Clone(octaviaVIPs), octaviaFIP) {
		for _, port := range []uint16{80, 8000} {
			args = append(args, fmt.Sprintf("vips:%q=%q", intent.FormatEndpoint(a, port), members(a)))
		}
	}
	args = append(args, "--", "add", "Logical_Router", router, "load_balancer", "@lb")
	for _, network := range []string{"net", "other"} {
		args = append(args, "--", "add", "Logical_Switch", lab.SwitchName("red", network), "load_balancer", "@lb")
	}
	w.nb(args...)
	w.forget(octavia)
}

// Rows of Octavia's provider for OVN work as they are, for the fabric and for VMs.
func TestOctavia(t *testing.T) {
	w := shared(t)
	w.octavia()
	for _, node := range []string{"a1", "a2", "a3"} {
		w.eventually(node+" has the VIPs", func() error {
			list, err := w.vips(node)
			n := 0
			for _, v := range list {
				if v.LoadBalancer != octavia {
					continue
				}
				n++
				// The tenant's VRF has nothing to do with a floating IP.
				want := "ebpf"
				if v.Address == octaviaFIP && v.Switch == "" {
					want = "ovn"
				}
				if v.Path != want || v.State != "ok" || len(v.Backends) != lab.Backends-1 {
					err = errors.Join(err, fmt.Errorf("%+v", v))
				}
			}
			// Of the switches with VMs, and of the VRF on its gateways: a1, and a2, which stands by.
			if want := map[string]int{"a1": 12, "a2": 12, "a3": 6}[node]; n != want {
				err = errors.Join(err, fmt.Errorf("%d VIPs, want %d", n, want))
			}
			return err
		})
	}
	ask := func(client string, to netip.AddrPort) (string, error) {
		out, err := w.Exec(w.Context(), client, "curl", "-gsS", "--max-time", httpPatience, "http://"+to.String()+"/")
		name, _, _ := strings.Cut(out, " ")
		return name, err
	}
	for _, a := range append(slices.Clone(octaviaVIPs), octaviaFIP) {
		for _, port := range []uint16{80, 8000} {
			to := netip.AddrPortFrom(a, port)
			for _, client := range []string{"c-fabric", "c-same", "c-net"} {
				if client == "c-fabric" && a == octaviaFIP {
					continue
				}
				w.eventually(fmt.Sprintf("%s is answered by %s", client, to), func() error {
					_, err := ask(client, to)
					return err
				})
				for range 8 {
					if name, err := ask(client, to); err != nil || name == fmt.Sprintf("be%d", lab.Backends) {
						t.Errorf("%s was answered by %q of %s (%v)", client, name, to, err)
					}
				}
			}
		}
		// The listener that is down.
		if name, err := ask("c-same", netip.AddrPortFrom(a, 443)); err == nil {
			t.Errorf("%s answers on port 443: %s", a, name)
		}
	}
}
