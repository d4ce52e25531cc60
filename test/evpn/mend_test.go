package evpn_test

import (
	"fmt"
	"strings"
	"testing"
)

// What others break of Sluice's devices and programs while sluiced runs is made
// again, without a restart.
func TestDevicesAreMended(t *testing.T) {
	const pins = `find "$SLUICE_BPFFS" -type f -name 'link_%s_*'`
	for _, damage := range []string{
		"ip link set sluice-vxlan down",
		"ip link del sluice-vxlan",
		"ip link set sluice0 down",
		"ip link del sluice0",
		fmt.Sprintf(pins, "fabric_in") + " -delete",
		fmt.Sprintf(pins, "overlay_in") + " -delete",
		"for pin in $(" + fmt.Sprintf(pins, "fabric_in") + "); do bpftool link detach pinned $pin; done",
		"for pin in $(" + fmt.Sprintf(pins, "overlay_in") + "); do bpftool link detach pinned $pin; done",
	} {
		t.Run(damage, func(t *testing.T) {
			w := shared(t)
			w.exec("b1", "sh", "-ec", damage)
			// Of the others nothing gets through until it is made again.
			if find, ok := strings.CutSuffix(damage, " -delete"); ok {
				w.eventually("the link is pinned again", func() error {
					_, err := w.Exec(w.Context(), "b1", "sh", "-c", find+" | grep -q .")
					return err
				})
			}
			w.condition("b1", "fabric", true, "")
			w.connected()
			w.clean()
		})
	}
	t.Run("sysctls", func(t *testing.T) {
		w := shared(t)
		for _, device := range []string{"sluice-vxlan", "sluice0"} {
			knob := "/proc/sys/net/ipv6/conf/" + device + "/disable_ipv6"
			w.exec("b1", "sh", "-ec", "echo 0 > "+knob)
			w.eventually("IPv6 is off again on "+device, func() error {
				if got := strings.TrimSpace(w.exec("b1", "cat", knob)); got != "1" {
					return fmt.Errorf("disable_ipv6 is %s", got)
				}
				return nil
			})
		}
		w.connected()
	})
}

// A foreign device takes the place of sluice-vxlan: it stays, it is named, and
// nothing is announced until it has gone.
func TestNothingIsAnnouncedWithoutTheFabricDevice(t *testing.T) {
	w := shared(t)
	t.Cleanup(func() {
		_, _ = w.Exec(background, "b1", "sh", "-c", "ip -o link show type bridge | grep -q sluice-vxlan && ip link del sluice-vxlan")
	})
	w.eventually("a foreign device has the name", func() error {
		_, err := w.Exec(w.Context(), "b1", "sh", "-c",
			`printf 'link del sluice-vxlan\nlink add sluice-vxlan type bridge\n' | ip -batch -`)
		return err // sluiced may have been faster
	})
	w.condition("b1", "fabric", false, "not Sluice's")
	w.withdrawn("b1", vniRed, redRoutes...)
	w.exec("b1", "ip", "-d", "link", "show", "type", "bridge", "dev", "sluice-vxlan")
	w.exec("b1", "ip", "link", "del", "sluice-vxlan")
	w.condition("b1", "fabric", true, "")
	w.announced("b1", vniRed, redRoutes...)
	w.connected()
	w.clean()
}
