package metadata_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Where security groups are to be respected, who may ask is steered, and who may not, or
// of whom that is not known, is left to OVN, whose ACLs hold there. It follows them as
// they change.
func TestRespectedSecurityGroups(t *testing.T) {
	w := shared(t)
	defer w.ownData(vms...)
	w.restartWith("m1", "securityGroups: respect")
	defer w.restartWith("m1", settings["m1"]...)
	const four, six = "ip4 && ip4.dst == 169.254.169.254/32 && tcp && tcp.dst == 80", "ip6 && ip6.dst == fe80::a9fe:a9fe && tcp && tcp.dst == 80"
	// As Neutron has them: all is dropped but what a rule lets pass, and the answers to that.
	w.nb("pg-add", "closed", "m-red1", "--", "pg-add", "open", "m-blue1", "m-red2", "--",
		"acl-add", "open", "from-lport", "1001", "inport == @open && ip", "drop", "--",
		"acl-add", "open", "to-lport", "1001", "outport == @open && ip", "drop", "--",
		"acl-add", "open", "from-lport", "1002", "inport == @open && "+four, "allow-related", "--",
		"acl-add", "open", "from-lport", "1002", "inport == @open && "+six, "allow-related")
	defer w.nb("pg-del", "closed", "--", "pg-del", "open")

	w.closedWith("inport == @closed && " + four)
	w.isServed("m-red1", status.LeftToOVN, reason.ACLDenied)
	w.isServed("m-blue1", status.FromTap, "")
	w.ownData("m-blue1", "m-red2") // m-red2 asks through OVN
	remove := w.operatorNamespace("m1", "red", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte("operator"))
	}))
	w.solicit("m-red1")
	w.isTold(question{vm: "m-red1", family: ipv6}, "operator")
	if r, err := w.ask(t.Context(), question{vm: "m-red1", family: ipv4, patience: unanswered()}); err == nil {
		t.Errorf("what OVN drops is answered: %d %.100s", r.status, r.body)
	}
	remove()

	w.nb("acl-del", "closed")
	w.isServed("m-red1", status.FromTap, "")
	w.ownData("m-red1")

	// What Sluice does not read OVN does.
	w.closedWith("inport == @closed && ip.ttl < 5")
	w.isServed("m-red1", status.FromNamespace, reason.ACLUnknown)
	w.ownData("m-red1")
	if got := w.namespaces("m1"); !slices.Contains(got, w.network("red").Namespace()) {
		t.Errorf("namespaces of m1: %q", got)
	}

	// The set is one that ovn-northd makes.
	w.closedWith("inport == @closed && ip4.dst == $open_ip4")
	w.isServed("m-red1", status.FromTap, "")
	w.ownData("m-red1")
}

// A sluiced that starts while the Northbound database is away does not know who may ask:
// it leaves what was served as it was, says what it waits for, and goes on from there.
func TestStartWithoutACLs(t *testing.T) {
	w := shared(t)
	defer w.ownData(vms...)
	w.restartWith("m1", "securityGroups: respect")
	defer w.restartWith("m1", settings["m1"]...)
	w.isServed("m-red1", status.FromTap, "")
	w.ownData("m-red1", "m-blue1")
	before := w.identities()

	nb, sluiced := w.process("m-central", "nb"), w.process("m1", "sluiced")
	if err := nb.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := sluiced.Restart(); err != nil {
		t.Fatal(err)
	}
	w.component("m1", "metadata", reason.Waiting)
	w.ownData("m-red1", "m-blue1")
	if now := w.identities(); now != before {
		t.Errorf("guests were\n%s\nand are\n%s", before, now)
	}
	if err := nb.Start(); err != nil {
		t.Fatal(err)
	}
	w.component("m1", "metadata", reason.Serving)
	w.isServed("m-red1", status.FromTap, "")
	w.ownData("m-red1", "m-blue1")
	if now := w.identities(); now != before {
		t.Errorf("guests were\n%s\nand are\n%s", before, now)
	}
}

// closedWith gives the port group closed one ACL, and waits until OVN has it everywhere.
func (w *world) closedWith(match string) {
	w.Helper()
	w.nb("--wait=hv", "acl-del", "closed", "--", "acl-add", "closed", "from-lport", "1002", match, "drop")
}

// isServed waits until a VM is served by a path, and for a reason.
func (w *world) isServed(vm string, by status.MetadataPath, why string) {
	w.Helper()
	w.isServedOn(w.vm(vm).Chassis, vm, by, why)
}

// isServedOn is isServed of a port that need not be a VM's of the lab.
func (w *world) isServedOn(chassis, port string, by status.MetadataPath, why string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s is served by %s %s", port, by, why), func() error {
		out, err := w.Exec(w.Context(), chassis, sluicectl(), "metadata", "ports", "--output", "json")
		if err != nil {
			return err
		}
		var m status.Metadata
		if err := json.Unmarshal([]byte(out), &m); err != nil {
			return err
		}
		for _, p := range m.Ports {
			if p.Port == port && p.Served == by && p.Reason == why && (p.Programmed || by == status.LeftToOVN) {
				return nil
			}
		}
		return fmt.Errorf("ports: %s", out)
	})
}

// component waits until sluiced on a node gives a reason for a component.
func (w *world) component(node, name, why string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s is %s", name, why), func() error {
		out, err := w.Exec(w.Context(), node, "sh", "-c", sluicectl()+" status -o json || test $? = 3") // 3: not ready
		if err != nil {
			return err
		}
		var s status.Status
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			return err
		}
		if !slices.ContainsFunc(s.Conditions, func(c status.Condition) bool { return c.Name == name && c.Reason == why }) {
			return fmt.Errorf("components: %+v", s.Conditions)
		}
		return nil
	})
}
