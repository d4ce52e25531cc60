package lab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// The command, as a user runs it: each call is a process of its own.
func TestCommand(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "sluice-lab")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../../cmd/sluice-lab").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	opt := lab.Options{Name: fmt.Sprintf("c%d", os.Getpid()), Dir: shortDir(t)}
	call := func(args ...string) (string, string, error) {
		// Not the test's context: the clean-up comes after its end.
		cmd := exec.Command(bin, append([]string{"--name", opt.Name, "--dir", opt.Dir}, args...)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		return out.String(), errs.String(), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, errs, err := call(args...)
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, errs)
		}
		return out
	}
	if _, errs, err := call("list"); err == nil || !strings.Contains(errs, "there is no lab") {
		t.Errorf("list without a lab: %v, %s", err, errs)
	}
	t.Cleanup(func() {
		if _, errs, err := call("down"); err != nil {
			t.Error(err, errs)
		}
	})
	must("up", "evpn")
	checkTools(t, must)
	checkList(t, must("list", "-o", "json"))
	_, _, err := call("exec", "a1", "--", "sh", "-c", "exit 7")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit code: %v, want 7", err)
	}
	must("down")
	must("down")
	if left := traces(t, opt); len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

// checkTools runs the ordinary tools without arguments that say where.
func checkTools(t *testing.T, must func(...string) string) {
	t.Helper()
	for _, c := range []struct {
		want string
		argv []string
	}{
		{"red-router", []string{"a1", "--", "ovn-nbctl", "lr-list"}},
		{"b1", []string{"b1", "--", "ovn-sbctl", "--bare", "--columns=name", "list", "Chassis"}},
		{"a2", []string{"a2", "--", "ovs-vsctl", "get", "Open_vSwitch", ".", "external_ids:system-id"}},
		{"Open vSwitch", []string{"a2", "--", "ovs-appctl", "version"}},
		{"NORMAL", []string{"a2", "--", "ovs-ofctl", "dump-flows", "br-ex"}},
		{"connected", []string{"a1", "--", "ovn-appctl", "-t", "ovn-controller", "connection-status"}},
		{"64512", []string{"rr", "--", "vtysh", "-c", "show bgp l2vpn evpn summary"}},
		{"1 received", []string{"a-red1", "--", "ping", "-n", "-c1", "-W5", "fd00:10::12"}},
		{"/a1/sluiced.sock", []string{"a1", "printenv", "SLUICE_SOCKET"}},
		{"bpf_fs", []string{"a1", "--", "sh", "-c", `stat -f -c %T "$SLUICE_BPFFS"`}},
	} {
		if out := must(append([]string{"exec"}, c.argv...)...); !strings.Contains(out, c.want) {
			t.Errorf("%v: %q is not in %q", c.argv, c.want, out)
		}
	}
}

func checkList(t *testing.T, out string) {
	t.Helper()
	var list struct {
		Scenario string
		Nodes    []struct {
			Name, Kind string
			Processes  []struct {
				Name string
				PID  int
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, n := range list.Nodes {
		kinds[n.Name] = n.Kind
		for _, p := range n.Processes {
			if p.PID == 0 {
				t.Errorf("%s on %s has no pid", p.Name, n.Name)
			}
		}
		if n.Name == "a1" && len(n.Processes) != 3 {
			t.Errorf("processes of a1: %v", n.Processes)
		}
	}
	for name, kind := range map[string]string{
		"a1": "chassis", "a2": "chassis", "b1": "chassis", "rr": "reflector",
		"a-red1": "vm", "a-blue1": "vm", "b-red1": "vm", "b-blue1": "vm",
	} {
		if kinds[name] != kind {
			t.Errorf("node %s is %q, want %q", name, kinds[name], kind)
		}
	}
}
