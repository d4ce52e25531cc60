package evpn_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest/pki"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// TestSecuredClouds: every database is reached over ssl, and the Southbound one
// knows the nodes by their certificates. In cloud A it is a RAFT cluster of three;
// in B it has the schema of OVN 25.03 and is reached through a relay.
func TestSecuredClouds(t *testing.T) {
	l := labtest.Up(t, lab.EVPN(lab.EVPNParams{
		CentralA: lab.Central{TLS: true, RBAC: true, Members: 3},
		CentralB: lab.Central{TLS: true, RBAC: true, Relay: true, Schemas: "../../pkg/ovsdb/schema"},
	}))
	w := &world{T: t, Lab: l}
	for _, n := range w.chassis() {
		w.startSecured(n, nil)
	}
	w.connected()
	for _, c := range []struct {
		name string
		run  func(*world)
	}{
		{"all works", (*world).securedWorks},
		{"a write is refused", (*world).writeRefused},
		{"members of the cluster die", (*world).membersDie},
		{"the relay dies", (*world).relayDies},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.run(&world{T: t, Lab: l}) }) {
			return // the lab may be broken
		}
	}
}

// startSecured runs sluiced with the Northbound database over ssl, and with
// another certificate than the switch's if one is given.
func (w *world) startSecured(node string, files *pki.Files) {
	w.Helper()
	nb, err := w.Endpoints(w.node(node).Cloud, "nb")
	if err != nil {
		w.Fatal(err)
	}
	if files != nil {
		nb += fmt.Sprintf("\n  tls: {privateKey: %s, certificate: %s, caCert: %s}", files.Key, files.Cert, files.CA)
	}
	text := strings.Replace(fmt.Sprintf(lab.Config, w.node("rr").VTEP4), "${OVN_NB_DB}", nb, 1)
	if _, err := w.StartSluiced(w.Context(), node, lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}); err != nil {
		w.Fatal(err)
	}
}

// redStreams leave tenant blue for changes.
func (w *world) redStreams() []*stream {
	w.Helper()
	var out []*stream
	for _, vm := range []string{"a-red1", "b-red1"} {
		for _, addr := range far(vm) {
			out = append(out, w.stream(vm, addr))
		}
	}
	return out
}

// condition waits until a component of sluiced is, or is not, ready with a word
// in its detail, in status and metric.
func (w *world) condition(node, name string, ready bool, word string) {
	w.Helper()
	metric := fmt.Sprintf("sluice_component_ready{component=%q} %d\n", name, map[bool]int{true: 1}[ready])
	w.eventually(fmt.Sprintf("%s of %s is ready: %v %s", name, node, ready, word), func() error {
		s, err := w.status(node)
		if err != nil {
			return err
		}
		if !hasCondition(s.Conditions, name, ready, word) {
			return fmt.Errorf("conditions: %+v", s.Conditions)
		}
		out, err := w.Exec(w.Context(), node, "curl", "-s", "-S", "http://127.0.0.1:9476/metrics")
		if err == nil && !strings.Contains(out, metric) {
			err = fmt.Errorf("no metric %s", metric)
		}
		return err
	})
}

func hasCondition(all []status.Condition, name string, ready bool, word string) bool {
	for _, c := range all {
		if c.Name == name {
			return c.Ready == ready && strings.Contains(c.Detail, word)
		}
	}
	return false
}

func (w *world) securedWorks() {
	for _, n := range w.chassis() {
		w.condition(n, "sb", true, "ssl:")
		w.condition(n, "nb", true, "ssl:")
		// What a node's certificate allows it to write.
		w.condition(n, "chassis-private", true, "")
		if version := w.published(n); version == "" {
			w.Errorf("nothing is published by %s", n)
		}
	}
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.announced("b1", vniRed, redRoutes...)
	for cloud, want := range map[string]string{"a": "20.27.0", "b": "20.41.0"} {
		out := w.exec(cloud+"-central", "sh", "-c", "ovsdb-client get-schema-version unix:$OVN_RUNDIR/sb.sock OVN_Southbound")
		if got := strings.TrimSpace(out); got != want {
			w.Logf("cloud %s serves schema %s; this test was written with %s", cloud, got, want)
		}
	}
	w.changes()
	w.clean()
}

// published is what a node says of itself in the Southbound database.
func (w *world) published(node string) string {
	w.Helper()
	out, err := w.SB(w.Context(), w.node(node).Cloud, "--if-exists", "get", "Chassis_Private", node, "external_ids:sluice-version")
	if err != nil {
		w.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// sluiced comes with a certificate of its own name, not the chassis': OVN's RBAC
// refuses what it writes, which is told, and all else works as before.
func (w *world) writeRefused() {
	files, err := w.Issue("sluiced-of-a1")
	if err != nil {
		w.Fatal(err)
	}
	streams := w.redStreams()
	w.kill("a1", "sluiced")
	if _, err := w.SB(w.Context(), "a", "remove", "Chassis_Private", "a1", "external_ids", "sluice-version"); err != nil {
		w.Fatal(err)
	}
	w.startSecured("a1", &files)
	w.ready("a1")
	w.condition("a1", "chassis-private", false, "RBAC refuses this node's certificate")
	told := w.process("a1", "sluiced").Log
	w.eventually("the log names the refusal", func() error {
		if refusals(w.T, told) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	w.changes()
	w.clean()
	if got := refusals(w.T, told); got != 1 {
		w.Errorf("the log names the refusal %d times", got)
	}
	w.condition("a1", "chassis-private", false, "Chassis_Private")
	if version := w.published("a1"); version != "" {
		w.Errorf("a write came through: %s", version)
	}
	w.kill("a1", "sluiced")
	w.startSecured("a1", nil)
	w.ready("a1")
	w.condition("a1", "chassis-private", true, "")
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
}

// refusals counts the warnings that name the refusal.
func refusals(t *testing.T, file string) (n int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "RBAC refuses") && strings.Contains(line, "level=WARN") {
			n++
		}
	}
	return n
}

// membersDie kills each member of the Southbound cluster once, the leader first,
// and two at once for a while: then nobody serves.
func (w *world) membersDie() {
	streams := w.redStreams()
	first := w.killLeader()
	w.northdWorks()
	w.changes()
	second := w.killLeader()
	// Without a quorum what is programmed stays.
	for _, n := range []string{"a1", "a2"} {
		w.condition(n, "sb", false, "forwarding is unchanged")
	}
	w.connected()
	for _, m := range []string{first, second} {
		w.startAgain(m, "sb")
	}
	w.rejoined(first, second)
	w.northdWorks()
	w.changes()
	for _, m := range []string{"a-central", "a-central2", "a-central3"} {
		if m != first && m != second {
			w.kill(m, "sb")
			w.northdWorks()
			w.changes()
			w.startAgain(m, "sb")
			w.rejoined(m)
		}
	}
	for _, n := range []string{"a1", "a2"} {
		w.ready(n)
	}
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
}

// northdWorks waits until OVN itself is over the loss of a member. An ovn-northd
// that starts when there is a leader connects at once; one that was there before
// pauses for up to eight seconds.
func (w *world) northdWorks() {
	w.Helper()
	if _, err := w.Leader(w.Context(), "a", "sb"); err != nil {
		w.Fatal(err)
	}
	if err := w.process("a-central", "northd").Restart(); err != nil {
		w.Fatal(err)
	}
	w.eventually("ovn-northd writes to the Southbound cluster", func() error {
		_, err := w.NB(w.Context(), "a", "--timeout=30", "--wait=sb", "sync")
		return err
	})
}

// killLeader returns the node whose server it killed.
func (w *world) killLeader() string {
	w.Helper()
	leader, err := w.Leader(w.Context(), "a", "sb")
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("the leader on %s is killed", leader)
	w.kill(leader, "sb")
	return leader
}

func (w *world) rejoined(members ...string) {
	w.Helper()
	for _, m := range members {
		w.eventually("the member on "+m+" is back", func() error { return w.WaitMember(w.Context(), m, "sb") })
	}
}

// relayDies cuts cloud B's node from its database: the change that is made
// meanwhile is applied when the relay is back.
func (w *world) relayDies() {
	streams := w.redStreams()
	w.kill("b-relay", "relay")
	w.condition("b1", "sb", false, "forwarding is unchanged")
	w.set("b", lab.InterfaceSwitchPort("blue", "net"), "vni", "")
	w.connected()
	w.announced("b1", vniBlue, "10.20.0.11/32", "fd00:20::11/128")
	w.startAgain("b-relay", "relay")
	w.withdrawn("b1", vniBlue, "10.20.0.11/32", "fd00:20::11/128")
	w.set("b", lab.InterfaceSwitchPort("blue", "net"), "vni", fmt.Sprint(vniBlue))
	w.announced("b1", vniBlue, "10.20.0.11/32", "fd00:20::11/128")
	w.ready("b1")
	w.connected()
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
}
