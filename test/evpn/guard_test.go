package evpn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// warned waits until a node warns of an object, or does not, in status and in metrics.
func (w *world) warned(node, kind, key, reason string, want bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s warns of %s %s: %v", node, kind, key, want), func() error {
		if err := w.warns(node, kind, key, reason, want); err != nil {
			return err
		}
		out, err := w.Exec(w.Context(), node, "curl", "-sS", "http://127.0.0.1:9476/metrics")
		if err != nil {
			return err
		}
		metric := fmt.Sprintf(`sluice_objects{kind=%q,reason=%q,state="warning"} 1`, kind, reason)
		if strings.Contains(out, metric) != want {
			return fmt.Errorf("the metric %s: %v", metric, !want)
		}
		return nil
	})
}

// warns tells whether a node's status warns of an object as wanted.
func (w *world) warns(node, kind, key, reason string, want bool) error {
	s, err := w.status(node)
	if err != nil {
		return err
	}
	got := slices.ContainsFunc(s.Problems, func(o status.Object) bool {
		return o.Kind == kind && o.Key == key && o.State == status.Warning && o.Reason == reason && o.Error != ""
	})
	if got != want {
		return fmt.Errorf("problems: %+v", s.Problems)
	}
	return nil
}

// A router that is nowhere near, on the same provider network, has the VNI of a
// tenant and other route targets: every node that sees both says so, in the status
// and as a metric, and takes nothing down.
func TestVNIOfTwoTenants(t *testing.T) {
	w := shared(t)
	const port, key = "lsp-other-gw", "1001"
	removed := false
	t.Cleanup(func() {
		if !removed {
			_, _ = w.NB(background, "a", "--if-exists", "lsp-del", port)
		}
	})
	w.unharmed("red", func() {
		w.nb("a", "lsp-add", "public", port, "--", "lsp-set-type", port, "router", "--", "lsp-set-addresses", port, "router", "--",
			"set", "Logical_Switch_Port", port, `external_ids:neutron_bgpvpn\:vni=`+key, `external_ids:neutron_bgpvpn\:rt="64512:7"`)
		for _, n := range []string{"a1", "a2"} {
			w.warned(n, "vni", key, "vni-collision", true)
		}
		w.nb("a", "lsp-del", port)
		removed = true
		for _, n := range []string{"a1", "a2"} {
			w.warned(n, "vni", key, "vni-collision", false)
		}
	})
	w.clean()
}
