package evpn_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
)

// An exposed router loses its gateway port and gets it back, and is set on another provider
// network, a VLAN of the same bridge: it is withdrawn and announced anew, the other tenant
// loses nothing.
func TestGatewayPortIsMadeAgain(t *testing.T) {
	w := shared(t)
	routes := []string{"10.20.0.11/32", "fd00:20::11/128"}
	lrp, lsp, router := lab.GatewayPort("red"), lab.GatewaySwitchPort("red"), lab.RouterName("red")
	column := func(name string) []string {
		return strings.Fields(strings.NewReplacer("[", "", "]", "", ",", " ", `"`, "").Replace(w.nb("b", "get", "Logical_Router_Port", lrp, name)))
	}
	add := append([]string{"--may-exist", "lrp-add", router, lrp, column("mac")[0]}, column("networks")...)
	add = append(add, "--", "lrp-set-gateway-chassis", lrp, "b1", "20")
	on := func(sw string) []string {
		out := []string{"--if-exists", "lsp-del", lsp, "--", "lsp-add", sw, lsp, "--", "lsp-set-type", lsp, "router", "--", "lsp-set-addresses", lsp, "router",
			"--", "lsp-set-options", lsp, "router-port=" + lrp}
		for _, word := range [][2]string{{"vni", "1001"}, {"as", fmt.Sprint(lab.FabricAS)}} {
			out = append(append(out, "--"), setting(lsp, word[0], word[1])...)
		}
		return out
	}
	w.Cleanup(func() {
		_, _ = w.NB(background, "b", add...)
		_, _ = w.NB(background, "b", on("public")...)
		_, _ = w.NB(background, "b", "--if-exists", "ls-del", "public9")
	})
	mended := masked{}
	back := func(vlan uint16) {
		w.Helper()
		w.announced("b1", vniRed, routes...)
		// ovn-controller 23.03 at times goes on sending the router's packets to the localnet port
		// of the network before, as ofproto/trace shows.
		w.reachRenewed(mended, "b1", "b-red1", "10.10.0.11", "fd00:10::11")
		w.connected()
		w.clean()
		var red status.VRF
		if err := json.Unmarshal([]byte(w.exec("b1", sluicectl(), "vrf", "show", "1001", "-o", "json")), &red); err != nil || len(red.Gateways) != 1 || red.Gateways[0].VLAN != vlan {
			t.Errorf("gateways %+v, %v; want one on VLAN %d", red.Gateways, err, vlan)
		}
	}
	blue := []*stream{w.stream("b-blue1", "10.10.0.11"), w.stream("b-blue1", "fd00:10::11")}

	w.nb("b", "lrp-del", lrp)
	w.withdrawn("b1", vniRed, routes...)
	w.nb("b", add...)
	back(0)

	w.nb("b", "ls-add", "public9", "--", "lsp-add", "public9", "provnet-public9", "--", "lsp-set-type", "provnet-public9", "localnet",
		"--", "lsp-set-addresses", "provnet-public9", "unknown", "--", "lsp-set-options", "provnet-public9", "network_name=physnet1",
		"--", "set", "Logical_Switch_Port", "provnet-public9", "tag=99")
	w.nb("b", on("public9")...)
	w.eventually("the gateway port is on VLAN 99", func() error { return w.gatewayVLAN("b1", 99) })
	back(99)
	w.nb("b", on("public")...)
	w.eventually("the gateway port is without a VLAN again", func() error { return w.gatewayVLAN("b1", 0) })
	back(0)
	t.Logf("%v", mended)
	w.nb("b", "ls-del", "public9")
	for _, s := range blue {
		s.noLoss(s.stop())
	}
	w.clean()
}

// gatewayVLAN tells whether red's gateway port on a node has a VLAN, or none.
func (w *world) gatewayVLAN(node string, vlan uint16) error {
	out, err := w.Exec(w.Context(), node, sluicectl(), "vrf", "show", "1001", "-o", "json")
	if err != nil {
		return err
	}
	var red status.VRF
	if err := json.Unmarshal([]byte(out), &red); err != nil || len(red.Gateways) != 1 || red.Gateways[0].VLAN != vlan {
		return fmt.Errorf("gateways %+v, %v", red.Gateways, err)
	}
	return nil
}

// A virtual port (of a VIP that two VMs share) is claimed by one VM, and then by the other:
// its address is announced from the first claim on, and leads to whoever has claimed it last.
func TestVirtualPortIsClaimed(t *testing.T) {
	w := shared(t)
	// Of a family each: a virtual port has one address.
	addrs := map[string]string{"vip4": "10.10.0.200", "vip6": "fd00:10::200"}
	parents := []string{"a-red1", "a-red2"}
	var routes []string
	sw := lab.Network{Name: "net"}.Switch("red")
	// OVN 23.03 drops neighbour advertisements of ports with port security (interoperation.md).
	secured := map[string]string{}
	for _, vm := range parents {
		secured[vm] = strings.Trim(strings.TrimSpace(w.nb("a", "get", "Logical_Switch_Port", vm, "port_security")), `["]`)
		w.nb("a", "lsp-set-port-security", vm)
	}
	w.Cleanup(func() {
		for vm, addresses := range secured {
			_, _ = w.NB(background, "a", "lsp-set-port-security", vm, addresses)
		}
		for name, addr := range addrs {
			_, _ = w.NB(background, "a", "--if-exists", "lsp-del", name)
			for _, vm := range parents {
				_, _ = w.Exec(background, vm, "ip", "addr", "del", prefix(addr), "dev", "eth0")
			}
		}
	})
	for name, addr := range addrs {
		routes = append(routes, prefix(addr))
		w.nb("a", "lsp-add", sw, name, "--", "lsp-set-type", name, "virtual", "--", "lsp-set-addresses", name, "02:00:00:00:02:00 "+addr,
			"--", "set", "Logical_Switch_Port", name, `options:virtual-ip="`+addr+`"`, `options:virtual-parents="`+strings.Join(parents, ",")+`"`)
	}
	for i, vm := range []string{"a-red1", "a-red2", "a-red1"} {
		other := parents[(i+1)%2]
		for _, addr := range addrs {
			if i > 0 {
				w.exec(other, "ip", "addr", "del", prefix(addr), "dev", "eth0")
			}
			w.exec(vm, "ip", "addr", "add", prefix(addr), "dev", "eth0", "nodad")
		}
		w.eventually(vm+" has claimed both", func() error { return w.claims(vm, addrs) })
		w.announced("a1", vniRed, routes...)
		w.withdrawn("a1", vniBlue, routes...)
		w.reach("b-red1", "10.10.0.200", "fd00:10::200")
	}
	for name := range addrs {
		w.nb("a", "lsp-del", name)
	}
	w.withdrawn("a1", vniRed, routes...)
	w.clean()
}

func prefix(addr string) string {
	a := netip.MustParseAddr(addr)
	return netip.PrefixFrom(a, a.BitLen()).String()
}

// claims has a VM say that it has the addresses, as keepalived does, and tells whether OVN
// has bound their ports to it.
func (w *world) claims(vm string, addrs map[string]string) error {
	mac, err := net.ParseMAC(w.mac(vm, "eth0"))
	if err != nil {
		return err
	}
	for name, addr := range addrs {
		if _, err := w.Exec(w.Context(), vm, "python3", "-c", sayFrame, fmt.Sprintf("%x", announcement(mac, netip.MustParseAddr(addr)))); err != nil {
			return err
		}
		out, err := w.SB(w.Context(), "a", "--bare", "--columns=virtual_parent", "find", "Port_Binding", "logical_port="+name)
		if err != nil || strings.TrimSpace(out) != vm {
			return fmt.Errorf("%s belongs to %q, %v", name, strings.TrimSpace(out), err)
		}
	}
	return nil
}

const sayFrame = `import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
s.send(bytes.fromhex(sys.argv[1]))`

// announcement is a gratuitous ARP request (RFC 5227), or an unsolicited neighbour
// advertisement (RFC 4861 section 7.2.6).
func announcement(mac net.HardwareAddr, a netip.Addr) []byte {
	if a.Is4() {
		ip := a.AsSlice()
		frame := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac...)
		frame = append(frame, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1)
		frame = append(append(frame, mac...), ip...)
		return append(append(frame, 0, 0, 0, 0, 0, 0), ip...)
	}
	all := netip.MustParseAddr("ff02::1").AsSlice()
	icmp := append([]byte{136, 0, 0, 0, 0x20, 0, 0, 0}, a.AsSlice()...)
	icmp = append(append(icmp, 2, 1), mac...)
	pseudo := append(append(append([]byte{}, a.AsSlice()...), all...), 0, 0, 0, byte(len(icmp)), 0, 0, 0, 58)
	sum := uint32(0)
	for b := append(pseudo, icmp...); len(b) > 1; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	icmp[2], icmp[3] = byte(^sum>>8), byte(^sum)
	frame := append([]byte{0x33, 0x33, 0, 0, 0, 1}, mac...)
	frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(icmp)), 58, 255)
	return append(append(append(frame, a.AsSlice()...), all...), icmp...)
}

// A router's interface on a provider network is not exposed, and says so; with the word for
// it, it is. See external-ids.md, sluice-expose.
func TestInterfaceOnAProviderNetwork(t *testing.T) {
	w := shared(t)
	const port = "provnet-red"
	routes := []string{"10.20.0.11/32", "fd00:20::11/128"}
	lsp := lab.InterfaceSwitchPort("red", "net")
	w.Cleanup(func() {
		_, _ = w.NB(background, "b", "--if-exists", "lsp-del", port)
		_, _ = w.NB(background, "b", "remove", "Logical_Switch_Port", lsp, "external_ids", "sluice-expose")
	})
	w.nb("b", "lsp-add", lab.Network{Name: "net"}.Switch("red"), port, "--", "lsp-set-type", port, "localnet", "--", "lsp-set-addresses", port, "unknown",
		"--", "lsp-set-options", port, "network_name=physnet1", "--", "set", "Logical_Switch_Port", port, "tag=98")
	w.withdrawn("b1", vniRed, routes...)
	w.eventually("b1 says why", func() error {
		s, err := w.status("b1")
		if err != nil {
			return err
		}
		for _, o := range s.Problems {
			if o.Kind == "interface" && o.Key == lsp && o.Reason == "provider-network" && o.State == status.Withheld {
				return nil
			}
		}
		return fmt.Errorf("problems %+v", s.Problems)
	})
	w.nb("b", "set", "Logical_Switch_Port", lsp, "external_ids:sluice-expose=true")
	w.announced("b1", vniRed, routes...)
	w.nb("b", "lsp-del", port, "--", "remove", "Logical_Switch_Port", lsp, "external_ids", "sluice-expose")
	w.announced("b1", vniRed, routes...)
	w.connected()
	w.clean()
}
