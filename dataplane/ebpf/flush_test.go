package ebpf

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A flow is of the VIP that it began with, whatever VIPs its address has now: of one of its
// port, or of one of all ports.
func TestEndsOfFlow(t *testing.T) {
	for _, a := range [][3]string{{"10.0.0.1", "10.99.0.1", "10.10.0.1"}, {"fd00::1", "fd00:99::1", "fd00:10::1"}} {
		client, vip, backend := netip.MustParseAddr(a[0]), netip.MustParseAddr(a[1]), netip.MustParseAddr(a[2])
		k := kernelFlowKey(FlowKey{VNI: 1001, Protocol: intent.TCP, Src: netip.AddrPortFrom(client, 4000), Dst: netip.AddrPortFrom(vip, 80)})
		for port, want := range map[uint16]string{8080: "80, 8080", 80: "80, 80", 0: "0, 0"} {
			f := flowOf(k, bpfFlow{Kind: uint8(bpfFlowKindFLOW_TO_BACKEND), Addr: backend.As16(), Port: bePort(port)}, 0)
			v, b := f.ends()
			if got := fmt.Sprintf("%d, %d", v.Port, b.port); got != want || v.Addr != vip || b.addr != backend {
				t.Errorf("%s to port %d: %+v to %+v, want ports %s", vip, port, v, b, want)
			}
		}
	}
}
