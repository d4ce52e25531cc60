package evpn_test

import (
	"fmt"
	"strings"
	"testing"
)

// What others break of Sluice's devices and programs while sluiced runs is made
// again, without a restart.
func TestDevicesAreMended(t *testing.T) {
	const pins = `find "$SLUICE_BPFFS" -type f -name 'link_fabric_in_*' -o -type f -name 'link_overlay_in_*'`
	for _, damage := range []string{
		"ip link set sluice-vxlan down",
		"ip link del sluice-vxlan",
		"ip link set sluice0 down",
		"ip link del sluice0",
		"for pin in $(" + pins + "); do bpftool link detach pinned $pin; done",
	} {
		t.Run(damage, func(t *testing.T) {
			w := shared(t)
			w.exec("b1", "sh", "-ec", damage)
			// Nothing gets through until it is made again.
			w.condition("b1", "fabric", true, "")
			w.connected()
			w.clean()
		})
	}
	// Of these packets take no notice.
	t.Run("pins and sysctls", func(t *testing.T) {
		w := shared(t)
		before := w.exec("b1", "sh", "-c", pins)
		knobs := []string{"/proc/sys/net/ipv6/conf/sluice-vxlan/disable_ipv6", "/proc/sys/net/ipv6/conf/sluice0/disable_ipv6"}
		w.exec("b1", "sh", "-ec", "rm $("+pins+"); for knob in "+strings.Join(knobs, " ")+"; do echo 0 > $knob; done")
		w.eventually("the links are pinned again", func() error {
			if now := w.exec("b1", "sh", "-c", pins); len(strings.Fields(now)) != len(strings.Fields(before)) {
				return fmt.Errorf("pins %s, before %s", now, before)
			}
			return nil
		})
		for _, knob := range knobs {
			w.eventually("IPv6 is off again: "+knob, func() error {
				if got := strings.TrimSpace(w.exec("b1", "cat", knob)); got != "1" {
					return fmt.Errorf("disable_ipv6 is %s", got)
				}
				return nil
			})
		}
		w.condition("b1", "fabric", true, "")
		w.connected()
		w.clean()
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
