package lab_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/programs"
)

// cli is the command, as a user runs it: each call is a process of its own.
type cli struct {
	t   *testing.T
	bin string
	lab.Options
}

// newCLI builds the command for a lab that is taken down after the test.
func newCLI(t *testing.T, prefix string) cli {
	t.Helper()
	dir := t.TempDir()
	if err := programs.LinkInto(dir, "sluice-lab"); err != nil {
		t.Fatal(err)
	}
	c := cli{t, filepath.Join(dir, "sluice-lab"), lab.Options{Name: fmt.Sprintf("%s%d", prefix, os.Getpid()), Dir: shortDir(t)}}
	t.Cleanup(func() { c.must("down") })
	return c
}

// command is not bound to the test's context: the clean-up comes after its end.
func (c cli) command(args ...string) *exec.Cmd {
	return exec.Command(c.bin, append([]string{"--name", c.Name, "--dir", c.Dir}, args...)...)
}

func (c cli) call(args ...string) (string, string, error) {
	cmd := c.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return out.String(), errs.String(), err
}

func (c cli) must(args ...string) string {
	c.t.Helper()
	out, errs, err := c.call(args...)
	if err != nil {
		c.t.Fatalf("%v: %v: %s", args, err, errs)
	}
	return out
}

// refused calls what has to fail with words that tell why.
func (c cli) refused(words string, args ...string) {
	c.t.Helper()
	_, errs, err := c.call(args...)
	if err == nil || !strings.Contains(errs, words) {
		c.t.Errorf("%v: %v, %q; want an error with %q", args, err, errs, words)
	}
}

func (c cli) nothingLeft() {
	c.t.Helper()
	if left := traces(c.t, c.Options); len(left) > 0 {
		c.t.Fatalf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

func TestCommand(t *testing.T) {
	c := newCLI(t, "c")
	c.refused("there is no lab", "list")
	c.must("up", "evpn")
	checkTools(t, c.must)
	checkList(t, c.must("list", "-o", "json"))
	c.refused("take it down first: sluice-lab down --name "+c.Name, "up", "evpn")
	c.refused(`no node "a9"; there are: fabric, a-central, a1,`, "exec", "a9", "--", "true")
	c.refused("exec NODE -- COMMAND", "exec", "a1")
	c.refused("exec NODE -- COMMAND", "exec", "a1", "--")
	c.refused("nosuchprogram", "exec", "a1", "--", "nosuchprogram")
	c.refused("want table or json", "list", "-o", "xml")
	_, _, err := c.call("exec", "a1", "--", "sh", "-c", "exit 7")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit code: %v, want 7", err)
	}
	// What a user left running goes too; the shell that takes the lab down stays.
	c.must("exec", "a-red1", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 &")
	out := c.must("exec", "a1", "--", "sh", "-c", c.command("down").String()+" && echo the shell goes on")
	if !strings.Contains(out, "the shell goes on") {
		t.Errorf("the shell inside said %q", out)
	}
	c.must("down")
	c.nothingLeft()
}

// A mistake is told in words, and nothing is left behind.
func TestCommandMistakes(t *testing.T) {
	c := newCLI(t, "m")
	c.refused("want one scenario: evpn", "up", "evpnn")
	c.refused("want one scenario: evpn", "up")
	c.refused("want port, gateway or nothing", "up", "evpn", "--uplink", "x")
	c.refused("RBAC needs TLS", "up", "evpn", "--rbac")
	c.refused("/nonexistent/ovn-", "up", "evpn", "--schemas", "/nonexistent")
	c.refused("there is no lab", "exec", "a1", "--", "true")
	c.must("down")
	c.nothingLeft()
}

func TestCommandWithoutRoot(t *testing.T) {
	c := newCLI(t, "r")
	c.must("up", "evpn")
	// The test's own directory is closed to others.
	open := filepath.Join(c.Dir, "sluice-lab")
	if out, err := exec.Command("install", "-m", "755", c.bin, open).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"up", "evpn"}, {"exec", "a1", "--", "true"}, {"down"}} {
		cmd := exec.Command(open, append([]string{"--name", c.Name, "--dir", c.Dir}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "needs root") {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
	c.must("exec", "a-red1", "--", "ping", "-n", "-c1", "-W5", "10.10.0.1")
}

// Ctrl-C while it is built removes everything; after a SIGKILL down does.
func TestCommandEndedHalfWay(t *testing.T) {
	c := newCLI(t, "h")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		for _, after := range []string{"underlay is up", "cloud is up"} {
			said := c.endAfter(sig, after)
			switch {
			case sig == syscall.SIGKILL:
				c.refused("take it down first", "up", "evpn")
				c.must("down")
			case !strings.Contains(said, "interrupted before it was up"):
				t.Errorf("%v after %q: it said %s", sig, after, said)
			}
			c.nothingLeft()
		}
	}
	c.must("up", "evpn")
}

// endAfter signals "up" when it has said a word, and returns all that it says.
func (c cli) endAfter(sig syscall.Signal, word string) string {
	c.t.Helper()
	cmd := c.command("up", "evpn")
	says, err := cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	var all strings.Builder
	signalled := false
	for lines := bufio.NewScanner(says); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if !signalled && strings.Contains(lines.Text(), word) {
			signalled = true
			if err := cmd.Process.Signal(sig); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		c.t.Fatalf("it ended well after %v:\n%s", sig, all.String())
	}
	return all.String()
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
