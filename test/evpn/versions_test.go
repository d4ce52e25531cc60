package evpn_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// ovnOf unpacks OVN and Open vSwitch of a Debian release, once.
func ovnOf(t *testing.T, release string) string {
	t.Helper()
	var errs strings.Builder
	cmd := exec.CommandContext(t.Context(), "../../tools/ovn.sh", release)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("OVN of %s: %v: %s", release, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// TestOVN2503: cloud A is OVN 25.03 on Open vSwitch 3.5, behind its access control;
// cloud B is this machine's.
func TestOVN2503(t *testing.T) {
	w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{
		ProgramsA: ovnOf(t, "trixie"), CentralA: lab.Central{TLS: true, RBAC: true},
	}))}
	if out := w.exec("a1", "ovs-appctl", "-t", "ovn-controller", "version"); !strings.Contains(out, "25.03") {
		t.Fatalf("cloud A runs %s", out)
	}
	for _, n := range w.chassis() {
		w.startSecured(n, nil)
	}
	w.connected()
	for _, vm := range vms {
		for _, addr := range far(vm) {
			w.pings(vm, addr, 1280, "-M", "do")
		}
	}
	w.condition("a1", "chassis-private", true, "")
	w.changes()
	w.clean()

	w.moveGateways("a2")
	w.announced("a2", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.withdrawn("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.connected()
	w.moveGateways("a1")
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.connected()

	for _, process := range []string{"vswitchd", "controller", "ovsdb"} {
		w.kill("a1", process)
		w.startAgain("a1", process)
		w.ready("a1")
		w.connected()
	}
	w.changes()
	w.clean()
}
