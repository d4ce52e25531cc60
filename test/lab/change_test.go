package lab_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

func TestVMComesMovesAndGoes(t *testing.T) {
	l := evpn.Lab(t)
	vm := lab.VM{
		Name: "a-red-with-a-long-name", Chassis: "a1", Tenant: "red", Network: "net",
		Addr4: netip.MustParseAddr("10.10.0.77"), Addr6: netip.MustParseAddr("fd00:10::77"),
	}
	if err := l.AddVM(t.Context(), "a", vm); err != nil {
		t.Fatal(err)
	}
	reachable := func() {
		t.Helper()
		labtest.Ping(t, l, "a-red1", "10.10.0.77")
		labtest.Ping(t, l, "a-red1", "fd00:10::77")
	}
	reachable()
	if err := l.MoveVM(t.Context(), vm.Name, "a2"); err != nil {
		t.Fatal(err)
	}
	reachable()
	if err := l.DelVM(t.Context(), vm.Name); err != nil {
		t.Fatal(err)
	}
	if out := mustNB(t, l, "a", "lsp-list", lab.SwitchName("red", "net")); strings.Contains(out, vm.Name) {
		t.Errorf("the port is still there: %s", out)
	}
	if links := labtest.Exec(t, l, "a2", "ip", "-br", "link"); strings.Contains(links, lab.TapName(vm.Name)) {
		t.Errorf("the tap is still there: %s", links)
	}
	if _, err := l.Node(vm.Name); err == nil {
		t.Error("the node is still listed")
	}
}

// Every process can be killed and started again, after which all works again.
func TestProcessesRestart(t *testing.T) {
	l := evpn.Lab(t)
	for _, c := range []struct{ node, process string }{
		{"a-central", "nb"}, {"a-central", "sb"}, {"a-central", "northd"},
		{"a2", "ovsdb"}, {"a2", "vswitchd"}, {"a2", "controller"}, {"rr", "bgpd"},
	} {
		t.Run(c.node+" "+c.process, func(t *testing.T) {
			p, err := l.Process(c.node, c.process)
			if err != nil {
				t.Fatal(err)
			}
			before := p.Pid()
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if p.Running() || p.Pid() != 0 {
				t.Fatal("it runs after Kill")
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if p.Pid() == 0 || p.Pid() == before {
				t.Fatalf("process id %d, %d before", p.Pid(), before)
			}
			labtest.Ping(t, l, "a-red1", "10.10.0.12")
			labtest.Ping(t, l, "a-red1", "fd00:10::12")
		})
	}
	// The cloud still takes changes.
	mustNB(t, l, "a", "--wait=hv", "--timeout=60", "sync")
}

// A signal goes to the recorded process only: a record whose process id now is
// another process is left alone.
func TestReusedProcessIDIsLeftAlone(t *testing.T) {
	l := evpn.Lab(t)
	p, err := l.Process("rr", "zebra")
	if err != nil {
		t.Fatal(err)
	}
	stale := *p
	stale.StartTime++
	if err := stale.Kill(); err != nil {
		t.Fatal(err)
	}
	if !p.Running() {
		t.Error("a process with another start time was killed")
	}
}
