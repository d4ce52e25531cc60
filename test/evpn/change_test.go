package evpn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
)

// unharmed lets a tenant talk in both directions while fn runs, and demands that
// it loses nothing.
func (w *world) unharmed(tenant string, fn func()) {
	w.Helper()
	var streams []*stream
	for _, cloud := range []string{"a", "b"} {
		vm := cloud + "-" + tenant + "1"
		for _, addr := range far(vm) {
			streams = append(streams, w.stream(vm, addr))
		}
	}
	fn()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
}

func TestVMComesMovesAndGoes(t *testing.T) {
	w := shared(t)
	const name = "a-red7"
	vm := lab.VM{
		Name: name, Chassis: "a2", Tenant: "red", Network: "net",
		Addr4: netip.MustParseAddr("10.10.0.77"), Addr6: netip.MustParseAddr("fd00:10::77"),
	}
	routes := []string{"10.10.0.77/32", "fd00:10::77/128"}
	// Blue is not watched meanwhile: a port that comes or goes makes the
	// userspace datapath drop a packet now and then.
	if err := w.AddVM(t.Context(), "a", vm); err != nil {
		t.Fatal(err)
	}
	w.announced("a1", vniRed, routes...)
	w.withdrawn("a1", vniBlue, routes...)
	w.reach("b-red1", "10.10.0.77", "fd00:10::77")
	w.reach(name, addrB4, addrB6)
	w.unreachable("b-blue1", "10.10.0.77", "fd00:10::77")
	if err := w.MoveVM(t.Context(), name, "a1"); err != nil {
		t.Fatal(err)
	}
	w.reach("b-red1", "10.10.0.77", "fd00:10::77")
	w.announced("a1", vniRed, routes...)
	if err := w.DelVM(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	w.withdrawn("a1", vniRed, routes...)
	w.unreachable("b-red1", "10.10.0.77", "fd00:10::77")
	w.connected()
	w.clean()
}

// set writes a word of the annotation on a switch port, and removes it when the
// value is empty.
func (w *world) set(cloud, port, word, value string) {
	w.Helper()
	w.nb(cloud, setting(port, word, value)...)
}

func setting(port, word, value string) []string {
	key := `neutron_bgpvpn\:` + word
	if value == "" {
		return []string{"remove", "Logical_Switch_Port", port, "external_ids", key}
	}
	return []string{"set", "Logical_Switch_Port", port, "external_ids:" + key + "=" + value}
}

// setVNI writes the VNI of a tenant's router, gateway and interface at once.
func (w *world) setVNI(cloud, tenant, vni string) {
	w.Helper()
	args := setting(lab.GatewaySwitchPort(tenant), "vni", vni)
	args = append(args, "--")
	w.nb(cloud, append(args, setting(lab.InterfaceSwitchPort(tenant, "net"), "vni", vni)...)...)
}

// clean waits until no node wants anything else than it has, and has no problem.
func (w *world) clean() {
	w.Helper()
	for _, n := range w.chassis() {
		w.eventually("all is done on "+n, func() error { return w.settled(n) })
	}
}

// settled tells whether a node wants nothing else than it has, and has no problem.
func (w *world) settled(node string) error {
	s, err := w.status(node)
	if err != nil {
		return err
	}
	for _, t := range s.Tables {
		if t.Wanted == nil || t.Failed == nil {
			return fmt.Errorf("table %s: it is not known what is wanted", t.Name)
		}
		if *t.Wanted != t.Actual || *t.Failed != 0 {
			return fmt.Errorf("table %s: %d wanted, %d there, %d failed; %s", t.Name, *t.Wanted, t.Actual, *t.Failed, t.Held)
		}
	}
	for _, o := range s.Problems {
		if o.State == status.Error || o.State == status.Pending {
			return fmt.Errorf("problem %+v", o)
		}
	}
	return nil
}

// redRoutes are what cloud B announces for red.
var redRoutes = []string{"10.20.0.0/24", "10.20.0.11/32", "fd00:20::/64", "fd00:20::11/128", "172.25.0.11/32", "2001:db8:25::b/128"}

func TestVNIChange(t *testing.T) {
	w := shared(t)
	t.Cleanup(func() { w.restore("red", "1001") })
	w.unharmed("blue", func() {
		w.setVNI("b", "red", "1002")
		w.announced("b1", 1002, redRoutes...)
		w.withdrawn("b1", vniRed, redRoutes...)
		w.unreachable("a-red1", addrB4, addrB6)
		w.setVNI("a", "red", "1002")
		w.reach("a-red1", addrB4, addrB6)
		w.reach("b-red1", addrA4, addrA6)
		for _, cloud := range []string{"a", "b"} {
			w.setVNI(cloud, "red", "1001")
		}
		w.reach("a-red1", addrB4, addrB6)
		w.announced("b1", vniRed, redRoutes...)
		w.withdrawn("b1", 1002, redRoutes...)
	})
	w.clean()
}

// restore puts the VNI back after a test that failed half-way; the context of
// the test is over.
func (w *world) restore(tenant, vni string) {
	if !w.Failed() {
		return
	}
	for _, cloud := range []string{"a", "b"} {
		for _, port := range []string{lab.GatewaySwitchPort(tenant), lab.InterfaceSwitchPort(tenant, "net")} {
			if _, err := w.NB(background, cloud, setting(port, "vni", vni)...); err != nil {
				w.Log(err)
			}
		}
	}
}

func TestAnnotationRemoved(t *testing.T) {
	w := shared(t)
	t.Cleanup(func() { w.restore("red", "1001") })
	w.unharmed("blue", func() {
		w.explained("b1", true)
		// One subnet first: the router's gateway stays.
		w.set("b", lab.InterfaceSwitchPort("red", "net"), "vni", "")
		w.withdrawn("b1", vniRed, redRoutes[:4]...)
		w.announced("b1", vniRed, redRoutes[4:]...)
		w.cutOff("a-red1", addrB4, addrB6)
		w.explained("b1", false)
		w.set("b", lab.InterfaceSwitchPort("red", "net"), "vni", "1001")
		w.announced("b1", vniRed, redRoutes...)
		w.reach("a-red1", addrB4, addrB6)

		w.set("b", lab.GatewaySwitchPort("red"), "vni", "")
		w.withdrawn("b1", vniRed, redRoutes...)
		w.cutOff("a-red1", addrB4, addrB6)
		w.explained("b1", false)
		w.set("b", lab.GatewaySwitchPort("red"), "vni", "1001")
		w.announced("b1", vniRed, redRoutes...)
		w.reach("a-red1", addrB4, addrB6)
		w.explained("b1", true)
	})
	w.clean()
}

// cutOff waits until an address does not answer any more, and asserts that this
// lasts: a node uses a withdrawn route until the withdrawal has settled.
func (w *world) cutOff(vm string, addrs ...string) {
	w.Helper()
	for _, a := range addrs {
		w.eventually(vm+" does not reach "+a, func() error {
			if _, err := w.Exec(w.Context(), vm, "ping", "-n", "-c1", "-W0.3", a); err == nil {
				return errors.New("it answers")
			}
			return nil
		})
	}
	w.unreachable(vm, addrs...)
}

// explained asks for the way from red's VM in B to the one in A; a way that does
// not work names what is missing.
func (w *world) explained(node string, works bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("explain on %s says works=%v", node, works), func() error {
		// The exit code says the same as the answer.
		out, _ := w.Exec(w.Context(), node, sluicectl(), "explain", "-o", "json", "--vrf", "1001", addrB4, addrA4)
		var e status.Explanation
		if err := json.Unmarshal([]byte(out), &e); err != nil {
			return fmt.Errorf("%w: %q", err, out)
		}
		if e.Works != works {
			return fmt.Errorf("it says %s", out)
		}
		for _, s := range e.Steps {
			if !s.Found && !works {
				w.Logf("missing on %s: %s %s: %s", node, s.Layer, s.Object, s.Detail)
				return nil
			}
		}
		if !works {
			return errors.New("no step is missing: " + out)
		}
		return nil
	})
}

func TestRouterDetached(t *testing.T) {
	w := shared(t)
	const lrp = "lrp-red-net"
	mac := strings.Trim(w.nb("b", "--bare", "--columns=mac", "list", "Logical_Router_Port", lrp), "\n\"")
	w.unharmed("blue", func() {
		w.nb("b", "lrp-del", lrp)
		w.withdrawn("b1", vniRed, redRoutes[:4]...)
		w.unreachable("a-red1", addrB4, addrB6)
		w.nb("b", "lrp-add", lab.RouterName("red"), lrp, mac, "10.20.0.1/24", "fd00:20::1/64")
		w.announced("b1", vniRed, redRoutes...)
		mended := masked{}
		w.reachRenewed(mended, "b1", "b-red1", "10.20.0.1", "fd00:20::1")
		w.reachRenewed(mended, "b1", "a-red1", addrB4, addrB6)
		w.Logf("%v", mended)
	})
	w.clean()
}

// Garbage on one port is that object's error, in status, metric and one line of
// the log. The other tenant does not notice.
func TestBadAnnotation(t *testing.T) {
	w := shared(t)
	t.Cleanup(func() { w.restore("blue", "2001") })
	port := lab.GatewaySwitchPort("blue")
	p, err := w.Process("b1", "sluiced")
	if err != nil {
		t.Fatal(err)
	}
	w.unharmed("red", func() {
		for _, c := range []struct{ word, value, good, reason string }{
			{"vni", "abc", "2001", "bad-vni"}, {"vni", "0", "2001", "bad-vni"}, {"vni", "16777216", "2001", "bad-vni"},
			{"as", "-1", fmt.Sprint(lab.FabricAS), "bad-as"},
		} {
			before := len(logLines(t, p.Log, c.reason))
			w.set("b", port, c.word, c.value)
			w.problem("b1", c.reason, "blue")
			w.metric("b1", c.reason, true)
			w.set("b", port, c.word, c.good)
			w.announced("b1", vniBlue, "10.20.0.11/32", "fd00:20::11/128")
			w.metric("b1", c.reason, false)
			if got := logLines(t, p.Log, c.reason)[before:]; len(got) != 1 {
				t.Errorf("%s=%s: %d lines in the log:\n%s", c.word, c.value, len(got), strings.Join(got, "\n"))
			}
			w.reach("a-blue1", addrB4, addrB6)
		}
	})
	w.clean()
}

// problem waits until the status of a node shows an error of an object.
func (w *world) problem(node, reason, key string) {
	w.Helper()
	w.eventually(node+" shows "+reason, func() error {
		s, err := w.status(node)
		if err != nil {
			return err
		}
		for _, o := range s.Problems {
			if o.State == status.Error && o.Reason == reason && strings.Contains(o.Key, key) && o.Error != "" {
				return nil
			}
		}
		return fmt.Errorf("problems: %+v", s.Problems)
	})
}

// metric waits until the objects with an error of a reason are counted, or none is.
func (w *world) metric(node, reason string, want bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("the metric of %s on %s: %v", reason, node, want), func() error {
		out, err := w.Exec(w.Context(), node, "curl", "-s", "-S", "http://127.0.0.1:9476/metrics")
		if err != nil {
			return err
		}
		got := false
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "sluice_objects{") && strings.Contains(line, `reason="`+reason+`"`) && strings.Contains(line, `state="error"`) {
				got = got || !strings.HasSuffix(line, " 0\n")
			}
		}
		if got != want {
			return fmt.Errorf("it is there: %v", got)
		}
		return nil
	})
}

// logLines are the lines of a log that name an error of a reason.
func logLines(t *testing.T, file, reason string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, "reason="+reason) {
			out = append(out, line)
		}
	}
	return out
}
