package evpn_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reason"
)

// Southbound has no row of a node's name, in either table or in both: the component says which
// name is missing where, and the rows are written again when ovn-controller has registered the
// node. Chassis_Private forwards nothing, so nothing is lost without it.
func TestChassisRowsAreMissing(t *testing.T) {
	w := shared(t)
	const node = "a2"
	controller := w.process(node, "controller")
	w.Cleanup(func() { _ = controller.Signal(syscall.SIGCONT) })
	w.condition(node, "chassis-private", true, "")
	// ovn-controller adds missing rows at once, so it stands still meanwhile.
	without := func(tables string, args ...string) {
		w.Helper()
		if err := controller.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		w.sb("a", args...)
		w.unregistered(node, node, tables)
		if err := controller.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		w.registered(node, node)
	}
	streams := w.streams()
	without("Chassis_Private", "destroy", "Chassis_Private", node)
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	without("Chassis", "destroy", "Chassis", node)
	without("Chassis and Chassis_Private", "chassis-del", node)
	w.connected()
	w.clean()
}

// A node gets another system-id while Southbound has the chassis of the earlier one, whose Encap
// row has the node's address: ovn-controller cannot register the node. The components say what they
// wait for, and deleting the chassis of the earlier name is what mends it.
func TestChassisIsRenamed(t *testing.T) {
	w := shared(t)
	const node, other = "b1", "b1new"
	rename := func(to string) []string {
		return []string{"ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:system-id=" + to}
	}
	w.Cleanup(func() {
		_, _ = w.Exec(background, node, rename(node)...)
		_, _ = w.SB(background, "b", "--if-exists", "chassis-del", other)
	})
	told := w.process(node, "sluiced").Log
	before := len(stopped(t, told))
	w.exec(node, rename(other)...)
	w.unregistered(node, other, "Chassis and Chassis_Private")
	w.condition(node, "bgp", true, "")
	reasons := stopped(t, told)[before:]
	if !strings.Contains(strings.Join(reasons, ""), "component=bgp ") {
		t.Errorf("the log does not say that BGP stopped: %s", reasons)
	}
	for _, line := range reasons {
		if !strings.Contains(line, other) || !strings.Contains(line, "router MAC") {
			t.Errorf("a component does not say what it waits for: %s", line)
		}
	}
	w.sb("b", "chassis-del", node)
	w.registered(node, other)
	w.exec(node, rename(node)...)
	w.unregistered(node, node, "Chassis and Chassis_Private")
	w.sb("b", "chassis-del", other)
	w.registered(node, node)
	w.announced(node, vniRed, redRoutes...)
	w.connected()
	w.clean()
}

// unregistered waits until a node says in which tables of Southbound a name is missing.
func (w *world) unregistered(node, name, tables string) {
	w.Helper()
	w.condition(node, "chassis-private", false, fmt.Sprintf("OVN_Southbound has no row named %q in %s: ", name, tables))
	w.eventually(node+" is in the list of problems", func() error {
		out, err := w.Exec(w.Context(), node, "sh", "-c", sluicectl()+" status || test $? = 3")
		if want := "chassis-private  " + reason.NotRegistered; err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("no %q in:\n%s", want, out)
		}
		return err
	})
}

// registered waits until a node's rows are there again, with what the other nodes read of it.
func (w *world) registered(node, name string) {
	w.Helper()
	w.condition(node, "chassis-private", true, "")
	w.eventually("the keys of "+name+" are in Southbound", func() error {
		keys, err := w.SB(w.Context(), w.node(node).Cloud, "get", "Chassis_Private", name, "external_ids")
		for _, key := range []string{"sluice-version", "sluice-vtep", "sluice-router-mac"} {
			if err == nil && !strings.Contains(keys, key+"=") {
				err = fmt.Errorf("no %s in %s", key, keys)
			}
		}
		return err
	})
}

var stoppedLine = regexp.MustCompile(`(?m)^.*msg="component changed".* reason=` + reason.Stopped + ` .*$`)

// stopped are the lines of a log that say that a component stopped.
func stopped(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return stoppedLine.FindAllString(string(text), -1)
}
