//go:build guest

package evpn_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
)

// A node changes to the kernel path as a whole, and back, by restarts with another
// configuration, and carries both tenants the whole time but for the moment at which
// the UDP port changes hands; its neighbours stay on the eBPF path.
func TestWholeNode(t *testing.T) {
	w := onAnyPath(t)
	w.patient("b1")
	w.clean()
	w.brief("path: kernel\n", "kernel", "configured", "sluice-vxlan")
	w.Run("parity", func(t *testing.T) { (&world{T: t, Lab: w.Lab}).parity(false) })
	out := w.exec("a1", "ip", "-o", "-d", "link", "show", "type", "vxlan")
	for _, want := range []string{"vxlan-1001", "vxlan-2001"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s: %s", want, out)
		}
	}
	w.brief("path: kernel\n", "kernel", "configured", "sluice-vxlan") // a restart alone
	w.brief("", "ebpf", "auto", "vxlan-")
	w.Run("parity again", func(t *testing.T) { (&world{T: t, Lab: w.Lab}).parity(false) })
	w.clean()
}

// patient has a node keep the routes of others for longer than a start takes on an
// emulated processor, half a minute and more: FRR keeps those of EVPN over no restart.
func (w *world) patient(node string) {
	w.Helper()
	rr := w.node("rr").VTEP4
	w.configured(node, fmt.Sprintf("    - address: %s\n  peerLinger: 10m\n", rr))
	w.Cleanup(func() { // by the lab, which outlives the test's context
		p, err := w.Process(node, "sluiced")
		if err == nil {
			err = p.Kill()
		}
		if err == nil {
			_, err = w.StartSluiced(background, node, lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: fmt.Sprintf(lab.Config, rr)})
		}
		if err != nil {
			w.Error(err)
		}
	})
}

// Few packets a second, since an emulated processor that forwards many has little time
// left for a start.
const (
	gapInterval = "0.1"
	// maxGap is how many packets of a ping may be lost by a change of the whole node
	// there.
	maxGap = 30
)

// brief restarts a1 with another configuration, and bounds what that loses.
func (w *world) brief(config, path, why, gone string) {
	w.Helper()
	for name, lost := range w.wholeNode(config, path, why, gone) {
		if lost > maxGap {
			w.Errorf("a1 to %q: %s: %d lost, at most %d may be", config, name, lost, maxGap)
		}
	}
}

// wholeNode restarts a1 with another configuration under traffic, and returns how many
// packets of each stream that cost.
func (w *world) wholeNode(config, path, why, gone string) map[string]int {
	w.Helper()
	names := []string{"red IPv4 out", "red IPv6 in", "blue IPv4 in", "blue IPv6 out"}
	streams := []*stream{
		w.stream("a-red1", addrB4, "-i", gapInterval), w.stream("b-red1", addrA6, "-i", gapInterval),
		w.stream("b-blue1", addrA4, "-i", gapInterval), w.stream("a-blue1", addrB6, "-i", gapInterval),
	}
	w.kill("a1", "sluiced")
	w.startOn("a1", config)
	for _, vni := range []int{vniRed, vniBlue} {
		w.eventually(fmt.Sprintf("a1 has %d on path %s", vni, path), func() error {
			v, err := w.vrf("a1", vni)
			if err == nil && (v.State != status.OK || v.Path != path || v.Reason != why) {
				err = fmt.Errorf("VRF %+v", v)
			}
			return err
		})
	}
	w.eventually("what the other form had is gone", func() error {
		out, err := w.Exec(w.Context(), "a1", "ip", "-o", "link", "show", "type", "vxlan")
		if err == nil && strings.Contains(out, gone) {
			err = fmt.Errorf("links: %s", out)
		}
		return err
	})
	w.ready("a1")
	w.connected()
	losses := map[string]int{}
	for i, s := range streams {
		sent, lost := s.stop()
		w.Logf("a1 to %q: %s: %d of %d lost", config, names[i], lost, sent)
		if sent == 0 {
			w.Errorf("a1 to %q: %s: nothing was sent", config, names[i])
		}
		losses[names[i]] = lost
	}
	return losses
}

// What a node has of the kernel path as a whole goes with cleanup.
func TestWholeNodeCleanup(t *testing.T) {
	w := onAnyPath(t)
	w.patient("b1")
	// The kernel makes the rule of VRFs with the first one, and keeps it.
	before := w.exec("a1", "sh", "-c", "ip -o link | grep -v sluice | cut -d: -f2 | cut -d@ -f1 | sort; (ip rule; ip -6 rule) | grep -v l3mdev-table")
	w.wholeNode("path: kernel\n", "kernel", "configured", "sluice-vxlan")
	w.kill("a1", "sluiced")
	w.connected() // nothing ends with the process
	t.Log(w.exec("a1", sluicectl(), "cleanup", "--config", w.node("a1").Dir+"/sluiced.yaml"))
	after := w.exec("a1", "sh", "-c", "ip -o link | grep -v sluice | cut -d: -f2 | cut -d@ -f1 | sort; (ip rule; ip -6 rule) | grep -v l3mdev-table")
	if after != before {
		t.Errorf("there was\n%s\nand is\n%s", before, after)
	}
	if out := w.exec("a1", "sh", "-c", "ip -o link | grep sluice || true; ls -A $SLUICE_BPFFS 2>/dev/null || true"); strings.TrimSpace(out) != "" {
		t.Errorf("left: %s", out)
	}
	w.startOn("a1", "")
	w.ready("a1")
	w.connected()
	w.clean()
}
