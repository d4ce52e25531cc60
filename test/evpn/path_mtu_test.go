package evpn_test

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/test/lab"
)

// The path to a VTEP takes less than the underlay's MTU, and then the node's own link does:
// senders are told, in both families, and TCP arrives; status names the VTEP, or the device,
// and the MTU.
func TestPathMTUShrinks(t *testing.T) {
	w := shared(t)
	w.shrinks(1300, 1250, w.node("b1").VTEP4)
	file := make([]byte, 1<<20)
	if _, err := rand.Read(file); err != nil {
		t.Fatal(err)
	}
	w.narrowed("a1", lab.UnderlayLink, 1340, underlayMTU, func() {
		w.eventually("status names the device", func() error { return w.warns("a1", "device", lab.UnderlayLink, reason.PathMTU, true) })
		for _, addr := range []string{addrB4, addrB6} {
			w.toldMTU("a-red1", addr, 1290)
			w.pings("a-red1", addr, 1290, "-M", "do")
		}
		if got, err := w.download("a-red1", "b-red1", addrA4, file); err != nil || got != sha256.Sum256(file) {
			t.Errorf("a file from a-red1: %v", err)
		}
	})
	w.eventually("status is quiet", func() error { return w.warns("a1", "device", lab.UnderlayLink, reason.PathMTU, false) })
	w.tooBig("a-red1", addrB4)
	w.connected()
	w.clean()
}

// narrowed has a link take less while do runs.
func (w *world) narrowed(node, link string, mtu, usual int, do func()) {
	w.Helper()
	set := func(n int) []string { return []string{"ip", "link", "set", link, "mtu", fmt.Sprint(n)} }
	w.Cleanup(func() { _, _ = w.Exec(background, node, set(usual)...) })
	w.exec(node, set(mtu)...)
	do()
	w.exec(node, set(usual)...)
}

// toldMTU waits until a VM is told what fits.
func (w *world) toldMTU(vm, addr string, mtu int) {
	w.Helper()
	told := regexp.MustCompile(fmt.Sprintf(`mtu ?[=:] ?%d\b`, mtu))
	w.eventually(fmt.Sprintf("%s is told MTU %d for %s", vm, mtu, addr), func() error {
		w.forget(vm)
		out, err := w.Exec(w.Context(), vm, "ping", "-n", "-c1", "-W1", "-M", "do", "-s", fmt.Sprint(mtu+20-headers(addr)), addr)
		if !told.MatchString(out) {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// shrinks has the last link to cloud B take less: outer packets of one size, inner ones of
// another. A router on the way is who says so. Of IPv6 up to 1280 bytes pass all the same.
func (w *world) shrinks(outer, inner int, vtep netip.Addr) {
	w.Helper()
	file := make([]byte, 3<<20)
	if _, err := rand.Read(file); err != nil {
		w.Fatal(err)
	}
	w.narrowed("fabric", fmt.Sprintf("u%d", w.node("b1").Index), outer, 1500, func() {
		for _, ends := range [][2]string{{addrA4, addrB4}, {addrA6, addrB6}} {
			if inner >= 1280 || ends[1] == addrB4 { // no sender of IPv6 goes below 1280
				w.toldMTU("a-red1", ends[1], inner)
			}
			w.forget("a-red1")
			if got, err := w.download("a-red1", "b-red1", ends[0], file); err != nil || got != sha256.Sum256(file) {
				w.Errorf("a file from a-red1 %s: %v", ends[0], err)
			}
			w.pings("a-red1", ends[1], inner)
		}
		w.eventually("status names the VTEP", func() error { return w.warns("a1", "vtep", vtep.String(), reason.PathMTU, true) })
		w.eventually("the metric names the VTEP", func() error {
			return w.hasMetric("a1", fmt.Sprintf(`sluice_vtep_path_mtu_bytes{vtep="%s"} %d`, vtep, outer))
		})
	})
	// The kernel knows for ten minutes, unless it is told to forget. A change of any route has
	// it asked.
	w.exec("a1", "ip", "route", "flush", "cache")
	w.exec("a1", "ip", "-6", "route", "flush", "cache")
	w.exec("a1", "ip", "route", "add", "unreachable", "192.0.2.77/32")
	w.exec("a1", "ip", "route", "del", "unreachable", "192.0.2.77/32")
	w.eventually("status is quiet", func() error { return w.warns("a1", "vtep", vtep.String(), reason.PathMTU, false) })
}

// hasMetric looks for a line of a node's metrics.
func (w *world) hasMetric(node, line string) error {
	out, err := w.Exec(w.Context(), node, "curl", "-s", "http://127.0.0.1:9476/metrics")
	if err == nil && !strings.Contains(out, line) {
		err = fmt.Errorf("no %s", line)
	}
	return err
}

// Somebody sends VXLAN with header bits that the kernel does not know: it is a problem of the
// device, and a metric.
func TestVXLANOfAnotherKind(t *testing.T) {
	w := shared(t)
	a1, b1 := w.node("a1"), w.node("b1")
	errors := func() (n int) {
		out := w.exec("a1", "sh", "-c", "ip -s -j link show sluice-vxlan | sed 's/.*\"rx\":{[^}]*\"errors\":\\([0-9]*\\).*/\\1/'")
		if _, err := fmt.Sscan(out, &n); err != nil {
			t.Fatalf("rx errors of sluice-vxlan: %v: %s", err, out)
		}
		return n
	}
	before := errors()
	w.in("b1", func() error {
		c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(b1.VTEP4, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(a1.VTEP4, 4789)))
		if err != nil {
			return err
		}
		defer c.Close()
		frame := w.frame("02:00:00:00:00:01", netip.MustParseAddr(addrA4))
		for _, header := range [][]byte{
			{0x88, 0, 0, 7, 0, vniRed >> 8, vniRed & 0xff, 0}, // the group policy extension
			{0x08, 0, 0, 0, 0, vniRed >> 8, vniRed & 0xff, 1}, // a reserved octet
			{0x0c, 0, 0, 1, 0, vniRed >> 8, vniRed & 0xff, 0}, // the generic protocol extension
		} {
			if _, err := c.Write(append(header, frame...)); err != nil {
				return err
			}
		}
		return nil
	})
	w.eventually("status names the device", func() error { return w.warns("a1", "device", "sluice-vxlan", reason.DeviceDrops, true) })
	if now := errors(); now != before+3 {
		t.Errorf("%d rx errors before, %d after three packets", before, now)
	}
	w.eventually("the metric counts them", func() error {
		return w.hasMetric("a1", fmt.Sprintf(`sluice_device_dropped_packets_total{device="sluice-vxlan",direction="rx",kind="errors"} %d`+"\n", before+3))
	})
	w.clean()
}
