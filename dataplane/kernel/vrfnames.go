package kernel

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// The kinds of a VRF's devices, by the third byte of the address that a device is
// made with.
const (
	kindVRF       = 0x76
	kindBridge    = 0x77
	kindInner     = 0x78 // vx-<vni>, in the bridge
	kindOuter     = 0x79 // its other end
	kindVXLAN     = 0x7a
	kindDummy     = 0x7b
	kindVRFEnd    = 0x7c
	kindBridgeEnd = 0x7d
)

// named is a device of a VRF: what it is called and how it is known as ours.
type named struct {
	name, kind string
	mark       string
	mac        intent.MAC
}

func vrfDevice(vni intent.VNI, kind byte, prefix, suffix, mark, typ string) named {
	return named{
		name: prefix + vni.String() + suffix, kind: typ, mark: "sluice:" + mark + ":" + vni.String(),
		mac: intent.MAC{0xfe, 0x73, kind, byte(vni >> 16), byte(vni >> 8), byte(vni)},
	}
}

func vrfOf(vni intent.VNI) named { return vrfDevice(vni, kindVRF, "vrf-", "", "vrf", "vrf") }
func bridgeOf(vni intent.VNI) named {
	return vrfDevice(vni, kindBridge, "br-", "", "vrf-bridge", "bridge")
}
func innerOf(vni intent.VNI) named { return vrfDevice(vni, kindInner, "vx-", "", "vrf-inner", "veth") }
func outerOf(vni intent.VNI) named {
	return vrfDevice(vni, kindOuter, "vx-", "-in", "vrf-outer", "veth")
}
func vxlanOf(vni intent.VNI) named {
	return vrfDevice(vni, kindVXLAN, "vxlan-", "", "vrf-vxlan", "vxlan")
}
func dummyOf(vni intent.VNI) named {
	return vrfDevice(vni, kindDummy, "lo-", "", "vrf-dummy", "dummy")
}

const markIndex = "sluice:vrf-index:"

func indexMark(vni intent.VNI, index uint16) string {
	return fmt.Sprintf("%s%d:%d", markIndex, vni, index)
}

// The two ends of a VRF's pair to a provider bridge. A VRF has few of them: a
// number follows the VNI.
const (
	markVRFEnd    = "sluice:vrf-port:"
	markBridgeEnd = "sluice:vrf-port-ovs:"
)

func endName(vni intent.VNI, n int) string       { return fmt.Sprintf("sv%d-%d", vni, n) }
func bridgeEndName(vni intent.VNI, n int) string { return fmt.Sprintf("so%d-%d", vni, n) }

// maxEnds keeps the names of the largest VNI within 15 characters.
const maxEnds = 1000

func endsOf(k intent.VRFPortKey, n int) (vrf, bridge named) {
	mark := fmt.Sprintf("%d:%d:%s", k.VNI, k.VLAN, k.Bridge)
	vrf, bridge = vrfDevice(k.VNI, kindVRFEnd, "", "", "", "veth"), vrfDevice(k.VNI, kindBridgeEnd, "", "", "", "veth")
	vrf.name, vrf.mark = endName(k.VNI, n), markVRFEnd+mark
	bridge.name, bridge.mark = bridgeEndName(k.VNI, n), markBridgeEnd+mark
	return vrf, bridge
}

// portOfMark reads the key out of the mark of an end.
func portOfMark(name, prefix string) (k intent.VRFPortKey, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	words := strings.SplitN(rest, ":", 3)
	if !ok || len(words) != 3 {
		return k, false
	}
	vni, err := strconv.ParseUint(words[0], 10, 24)
	if err != nil {
		return k, false
	}
	vlan, err := strconv.ParseUint(words[1], 10, 12)
	return intent.VRFPortKey{Bridge: intent.BridgeKey(words[2]), VLAN: uint16(vlan), VNI: intent.VNI(vni)}, err == nil
}

func vniOf(word string) (intent.VNI, bool) {
	vni, err := strconv.ParseUint(word, 10, 24)
	return intent.VNI(vni), err == nil && vni != 0
}

// The marks of a gateway port are on the VRF's end of its pair, and hold all of
// its row, so that everything else can be compared with them. The device's name
// makes them unique: one MAC may be on several bridges.
const (
	markGateway = "sluice:gateway:"
	markAddress = "sluice:gateway-address:"
)

func gatewayMarks(device string, g intent.KernelGateway) []string {
	text := func(a netip.Addr) string {
		if !a.IsValid() {
			return ""
		}
		return a.String()
	}
	return []string{
		fmt.Sprintf("%s%s,%s,%d,%s,%s", markGateway, device, g.Key.MAC, g.MTU, text(g.ICMPSource4), text(g.ICMPSource6)),
		fmt.Sprintf("%s%s,%s,%s,%s", markAddress, device, g.Key.MAC, text(g.Addr4), text(g.Addr6)),
	}
}

// readGatewayMark reads one of the two marks into g, and says whose it is.
func readGatewayMark(name string, g *intent.KernelGateway) (mac intent.MAC, ok bool) {
	rest, first := strings.CutPrefix(name, markGateway)
	if !first {
		if rest, ok = strings.CutPrefix(name, markAddress); !ok {
			return mac, false
		}
	}
	words := strings.Split(rest, ",")
	if len(words) < 4 {
		return mac, false
	}
	mac, err := intent.ParseMAC(words[1])
	if err != nil {
		return mac, false
	}
	words, into := words[2:], []*netip.Addr{&g.Addr4, &g.Addr6}
	if first {
		mtu, err := strconv.ParseUint(words[0], 10, 16)
		if err != nil {
			return mac, false
		}
		g.MTU = uint16(mtu)
		words, into = words[1:], []*netip.Addr{&g.ICMPSource4, &g.ICMPSource6}
	}
	if len(words) != len(into) {
		return mac, false
	}
	for i, word := range words {
		if word == "" {
			continue
		}
		if *into[i], err = netip.ParseAddr(word); err != nil {
			return mac, false
		}
	}
	return mac, true
}

// tableBase is where the routing tables begin of VRFs whose VNI is taken as the
// number of a table: no VNI is as large.
const tableBase = uint32(intent.MaxVNI) + 1

// tables are the numbers of a VRF's routing table in order of preference: the VNI,
// but for the tables of the kernel (253 to 255), then one of its index.
func tables(v intent.KernelVRF) []uint32 {
	var out []uint32
	if v.VNI < 253 || v.VNI > 255 {
		out = append(out, uint32(v.VNI))
	}
	return append(out, tableBase+uint32(v.Index))
}
