package evpn_test

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// What a node's tenants stand on goes, and nobody says so but Sluice: the problem names it
// and the tenants, the node is not ready, and all is well when it is back.
// On b1 it is the bridge, on a1 OVN's patch port, at a time: both are told of after a while.
func TestProviderBridgeIsMissing(t *testing.T) {
	w := shared(t)
	routes := map[string][]string{"a1": {"10.10.0.11/32", "fd00:10::11/128"}, "b1": {"10.20.0.11/32", "fd00:20::11/128"}}
	names := map[string]string{"a1": "patch-provnet-public-to-br-int", "b1": "br-ex"}
	addBridge := "ovs-vsctl --may-exist add-br br-ex -- set Bridge br-ex datapath_type=" + strings.TrimSpace(w.exec("b1", "ovs-vsctl", "get", "Bridge", "br-ex", "datapath_type"))
	back := func() error {
		_, err := w.Exec(background, "b1", "sh", "-ec", addBridge)
		if p := w.process("a1", "controller"); !p.Running() {
			err = errors.Join(err, p.Start())
		}
		return err
	}
	t.Cleanup(func() { _ = back() })
	for n := range routes {
		w.announced(n, vniRed, routes[n]...)
	}
	w.kill("a1", "controller")
	w.exec("a1", "sh", "-ec", "for p in $(ovs-vsctl list-ports br-ex | grep ^patch-); do ovs-vsctl del-port $p; done")
	w.exec("b1", "ovs-vsctl", "del-br", "br-ex")
	for n := range routes {
		w.withdrawn(n, vniRed, routes[n]...)
	}
	for n := range routes {
		w.cutBy(n, names[n], "1001", "2001")
		w.silent(n)
		if out := w.exec(n, sluicectl(), "vrf", "list"); !strings.Contains(out, reason.Missing) {
			t.Errorf("vrf list of %s does not say what is missing:\n%s", n, out)
		}
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	for n := range routes {
		w.announced(n, vniRed, routes[n]...)
		w.condition(n, "announcements", true, "")
		w.probe(n, "200")
	}
	w.connected()
	w.clean()
}

// silent waits until a node is not ready since it announces nothing, for whoever may ask.
func (w *world) silent(node string) {
	w.Helper()
	w.condition(node, "announcements", false, "none of ")
	w.probe(node, "503")
	var exit *exec.ExitError
	if out, err := w.Exec(w.Context(), node, sluicectl(), "status"); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		w.Errorf("sluicectl status: %v\n%s", err, out)
	}
}

// cutBy waits until a node's problems name what is missing, with each VNI that is cut.
func (w *world) cutBy(node, missing string, vnis ...string) {
	w.Helper()
	w.eventually(node+" says that "+missing+" is missing", func() error {
		s, err := w.status(node)
		if err != nil {
			return err
		}
		for _, vni := range vnis {
			if !slices.ContainsFunc(s.Problems, func(o status.Object) bool {
				return o.Reason == reason.Missing && o.State == status.Error && strings.Contains(o.Error, missing) && strings.Contains(o.Error, "VRF "+vni)
			}) {
				return fmt.Errorf("problems: %+v", s.Problems)
			}
		}
		return nil
	})
}

// probe waits until /readyz of a node answers with a status.
func (w *world) probe(node, code string) {
	w.Helper()
	w.eventually("/readyz of "+node+" says "+code, func() error {
		out, err := w.Exec(w.Context(), node, "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:9476/readyz")
		if err == nil && strings.TrimSpace(out) != code {
			err = errors.New("it says " + out)
		}
		return err
	})
}
