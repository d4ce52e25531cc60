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
func TestProviderBridgeIsMissing(t *testing.T) {
	const patch = "patch-provnet-public-to-br-int"
	for _, c := range []struct {
		name, gone, back, names string
	}{
		{"bridge", "ovs-vsctl del-br br-ex", "ovs-vsctl --may-exist add-br br-ex -- set Bridge br-ex datapath_type=%s", "br-ex"},
		{"patch port", "", "", patch},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := shared(t)
			routes := []string{"10.20.0.11/32", "fd00:20::11/128"}
			w.announced("b1", vniRed, routes...)
			datapath := strings.TrimSpace(w.exec("b1", "ovs-vsctl", "get", "Bridge", "br-ex", "datapath_type"))
			back := func() error {
				if c.back == "" {
					if p := w.process("b1", "controller"); !p.Running() {
						return p.Start()
					}
					return nil
				}
				_, err := w.Exec(background, "b1", "sh", "-ec", fmt.Sprintf(c.back, datapath))
				return err
			}
			t.Cleanup(func() { _ = back() })
			if c.gone == "" {
				w.kill("b1", "controller")
				w.exec("b1", "sh", "-ec", "for p in $(ovs-vsctl list-ports br-ex | grep ^patch-); do ovs-vsctl del-port $p; done")
			} else {
				w.exec("b1", "sh", "-ec", c.gone)
			}
			w.withdrawn("b1", vniRed, routes...)
			w.cutBy("b1", c.names, "1001", "2001")
			if c.gone != "" { // of the other case the node says the same, 4 s later
				w.silent("b1")
			}
			if out := w.exec("b1", sluicectl(), "vrf", "list"); !strings.Contains(out, reason.Missing) {
				t.Errorf("vrf list does not say what is missing:\n%s", out)
			}
			if err := back(); err != nil {
				t.Fatal(err)
			}
			w.announced("b1", vniRed, routes...)
			w.condition("b1", "announcements", true, "")
			w.probe("b1", "200")
			w.connected()
			w.clean()
		})
	}
}

// silent waits until a node is not ready since it announces nothing, for whoever may ask.
func (w *world) silent(node string) {
	w.Helper()
	w.condition(node, "announcements", false, "and none is")
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
