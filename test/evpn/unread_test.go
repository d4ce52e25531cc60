package evpn_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/test/lab"
)

// ovs-vswitchd of a gateway chassis has ended when the gateway port of a tenant goes to another provider
// bridge, and is started afterwards. While the flows cannot be read, the programs go on to know the port on
// the bridge that it leaves: what a flow brings from there is the tenant's. Imported routes take
// effect meanwhile. In the end the tenant works, and no frame of a tenant was at the physical port of the bridge
// that the port left; nor was one at the other bridge's, but for the moment of any start of ovs-vswitchd in which OVN has
// its flows already, and Sluice has not.
func TestGatewayChangesBridgeWithoutASwitch(t *testing.T) {
	w := own(t, lab.EVPN(lab.EVPNParams{TwoBridges: true}), "")
	w.connected()
	w.clean()
	const node = "b1"
	old, fresh := w.bridgeLink(node, "br-ex"), w.bridgeLink(node, "br-ex2")
	mac, err := net.ParseMAC(strings.Trim(strings.TrimSpace(w.nb("b", "get", "Logical_Router_Port", lab.GatewayPort("red"), "mac")), `"`))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.serves(node, old, mac, true), w.serves(node, fresh, mac, false)); err != nil {
		t.Fatal(err)
	}
	left, other := w.physicalPort(node, "br-ex"), w.physicalPort(node, "br-ex2")
	seen := w.seenOutside(node, left, other)
	var streams []*stream
	for _, vm := range []string{"b-red1", "b-blue1"} {
		streams = append(streams, w.stream(vm, addrA4), w.stream(vm, addrA6))
	}

	w.kill(node, "vswitchd")
	w.says(node, []string{"it cannot be read back"}, "status")
	lsp := lab.GatewaySwitchPort("red")
	w.nb("b", "lsp-del", lsp, "--", "lsp-add", "public2", lsp, "--", "lsp-set-type", lsp, "router", "--", "lsp-set-addresses", lsp, "router",
		"--", "lsp-set-options", lsp, "router-port="+lab.GatewayPort("red"),
		"--", "set", "Logical_Switch_Port", lsp, `external_ids:neutron_bgpvpn\:vni=1001`, fmt.Sprintf(`external_ids:neutron_bgpvpn\:as=%d`, lab.FabricAS))
	w.eventually("the programs know the gateway port on br-ex2", func() error { return w.serves(node, fresh, mac, true) })
	// A VM of the other cloud is reached from here on: passes go on, and nothing else waits.
	vm := lab.VM{Name: "a-red7", Chassis: "a2", Tenant: "red", Network: "net", Addr4: netip.MustParseAddr("10.10.0.17"), Addr6: netip.MustParseAddr("fd00:10::17")}
	if err := w.AddVM(w.Context(), "a", vm); err != nil {
		t.Fatal(err)
	}
	w.says(node, []string{vm.Addr4.String() + "/32", vm.Addr6.String() + "/128"}, "route", "list", "--vrf", strconv.Itoa(vniRed))
	if err := w.serves(node, old, mac, true); err != nil {
		t.Errorf("before the flows of the gateway port are known: %v", err)
	}
	// ovn-controller 23.03 at times goes on sending the router's packets to the localnet port of the
	// network before; computed anew its flows do not.
	w.exec(node, "sh", "-c", recomputeCommand)
	w.startAgain(node, "vswitchd")

	w.eventually("the gateway port is gone from br-ex", func() error { return w.serves(node, old, mac, false) })
	w.announced(node, vniRed, "10.20.0.11/32", "fd00:20::11/128")
	w.connected()
	frames := seen()
	if n := frames[left]; n > 0 {
		t.Errorf("%d frames of tenants at the physical port of br-ex", n)
	}
	t.Logf("%d frames of tenants at the physical port of br-ex2 before Sluice's flows were back", frames[other])
	seen = w.seenOutside(node, left, other)
	w.reach("b-red1", vm.Addr4.String(), vm.Addr6.String())
	w.reach("b-blue1", addrA4, addrA6)
	w.clean()
	for port, n := range seen() {
		if n > 0 {
			t.Errorf("%d frames of tenants at physical port %s after the flows were back", n, port)
		}
	}
	for _, s := range streams {
		sent, lost := s.stop()
		t.Logf("%s: %d of %d lost", s.name, lost, sent)
	}
}

// bridgeLink is the index of the device by which packets of a provider bridge reach the programs.
func (w *world) bridgeLink(node, bridge string) int {
	w.Helper()
	index, err := strconv.Atoi(strings.TrimSpace(w.exec(node, "sh", "-c", "ip -o link show dev sluice:bridge:"+bridge+" | cut -d: -f1")))
	if err != nil {
		w.Fatal(err)
	}
	return index
}

// serves tells whether the programs of a node know, or do not know, a gateway port behind a device.
func (w *world) serves(node string, device int, mac net.HardwareAddr, want bool) error {
	m, err := ebpf.LoadPinnedMap(filepath.Join(w.node(node).BPFFS, "gateways_v1"), &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer m.Close()
	there := false
	var key, value []byte
	rows := m.Iterate()
	for rows.Next(&key, &value) {
		there = there || int(binary.NativeEndian.Uint32(key)) == device && string(key[4:10]) == string(mac)
	}
	if there != want {
		return fmt.Errorf("gateway port %s behind device %d: %t, want %t", mac, device, there, want)
	}
	return rows.Err()
}

// controlType is a frame's of the test alone (IEEE 802: local experimental).
const controlType = 0x88b5

// physicalPort gives a bridge of a node a physical port.
func (w *world) physicalPort(node, bridge string) string {
	w.Helper()
	port := "phys-" + bridge
	w.exec(node, "sh", "-ec", fmt.Sprintf("ip link add %[1]s type veth peer name %[1]sw; ip link set %[1]s up; ip link set %[1]sw up; ovs-vsctl add-port %[2]s %[1]s", port, bridge))
	return port
}

// seenOutside captures at physical ports of a node; the result ends that, and counts the frames of tenants. A frame of
// the test's own has to be seen, too.
func (w *world) seenOutside(node string, ports ...string) (end func() map[string]int) {
	w.Helper()
	captures := map[string]*lab.Capture{}
	nets := "net 10.10.0.0/24 or net 10.20.0.0/24 or net fd00:10::/64 or net fd00:20::/64"
	for _, port := range ports {
		captures[port] = w.capture(node, port, fmt.Sprintf("ether proto %#x or %s or (vlan and (%s))", controlType, nets, nets))
	}
	return func() map[string]int {
		w.Helper()
		frames := map[string]int{}
		for port, c := range captures {
			w.exec(node, "python3", "-c", fmt.Sprintf(sayOutside, port, controlType))
			packets := w.stop(c)
			control := func(p lab.Packet) bool { return binary.BigEndian.Uint16(p.Data[12:]) == controlType }
			if !slices.ContainsFunc(packets, control) {
				w.Errorf("the capture at physical port %s of %s does not see the test's own frame", port, node)
			}
			frames[port] = len(slices.DeleteFunc(packets, control))
		}
		return frames
	}
}

// sayOutside sends a frame to all from the other end of a physical port.
const sayOutside = `import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("%sw", 0))
s.send(bytes.fromhex("ffffffffffff020000000077%04x") + bytes(50))`
