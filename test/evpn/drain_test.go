package evpn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
)

const anycast4, anycast6 = "10.60.0.11", "fd00:60::11"

// threeClouds are the two of the scenario, each with an anycast network of red, and
// a third with one chassis and one VM of red, which has two ways to that network:
// the gateways of the other two.
func threeClouds() lab.Scenario {
	s := lab.EVPN(lab.EVPNParams{})
	for i := range s.Clouds {
		c := &s.Clouds[i]
		c.Tenants[0].Networks = append(c.Tenants[0].Networks, lab.Network{Name: "any",
			Subnet4: netip.MustParsePrefix("10.60.0.0/24"), Subnet6: netip.MustParsePrefix("fd00:60::/64")})
		c.VMs = append(c.VMs, lab.VM{Name: c.Name + "-any1", Chassis: c.Chassis[len(c.Chassis)-1].Name, Tenant: "red", Network: "any",
			Addr4: netip.MustParseAddr(anycast4), Addr6: netip.MustParseAddr(anycast6)})
	}
	s.Clouds = append(s.Clouds, lab.Cloud{
		Name: "c", Chassis: []lab.Chassis{{Name: "c1", Gateway: true, Priority: 20}},
		Providers: []lab.Provider{{Name: "public", Physnet: "physnet1", Bridge: "br-ex",
			Subnet4: netip.MustParsePrefix("172.26.0.0/16"), Subnet6: netip.MustParsePrefix("2001:db8:26::/64")}},
		Tenants: []lab.Tenant{{Name: "red", VNI: vniRed, AS: lab.FabricAS, Provider: "public", Networks: []lab.Network{{Name: "net",
			Subnet4: netip.MustParsePrefix("10.40.0.0/24"), Subnet6: netip.MustParsePrefix("fd00:40::/64")}}}},
		VMs: []lab.VM{{Name: "c-red1", Chassis: "c1", Tenant: "red", Network: "net",
			Addr4: netip.MustParseAddr("10.40.0.11"), Addr6: netip.MustParseAddr("fd00:40::11")}},
	})
	return s
}

// drain runs sluicectl drain or undrain on a node.
func (w *world) drain(node string, args ...string) status.Drain {
	w.Helper()
	var s status.Drain
	out := w.exec(node, append([]string{sluicectl(), "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	return s
}

// fromFabric is the number of packets that a node took from the fabric for red.
func (w *world) fromFabric(node string) uint64 {
	w.Helper()
	var v status.VRF
	out := w.exec(node, sluicectl(), "vrf", "show", fmt.Sprint(vniRed), "-o", "json")
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	return v.FromFabric.Packets
}

// A node that is drained loses no packet of what has another way, stays drained over
// a restart, and is put back without loss.
func TestDrain(t *testing.T) {
	w := own(t, threeClouds(), "")
	for node, prefixes := range map[string][]string{
		"a1": {"10.60.0.11/32", "fd00:60::11/128", "10.10.0.11/32"}, "b1": {"10.60.0.11/32", "fd00:60::11/128", "10.20.0.11/32"},
	} {
		w.announced(node, vniRed, prefixes...)
	}
	// In both clouds, and both families, OVN finds its next hop by this: packets that
	// wait for that may be lost.
	w.reach("c-red1", anycast4, anycast6, addrA4, addrA6, addrB4, addrB6)
	streams := []*stream{w.stream("c-red1", anycast4), w.stream("c-red1", anycast6)}
	w.lateDrains("a1")
	node, only, before := "a1", addrA4, w.fromFabric("a1")
	w.eventually("the streams run", func() error { return moved(w.fromFabric("a1")+w.fromFabric("b1") > before+40) })
	if w.fromFabric("a1") == before { // both go to the other one
		node, only = "b1", addrB4
	}
	if s := w.drain(node, "drain", "--withdraw-after", "1h"); s.Stage != "graceful-shutdown" || s.Announced == nil || *s.Announced == 0 {
		t.Errorf("drain: %+v", s)
	}
	w.stands(node)
	w.reach("c-red1", only)
	if out := w.exec("rr", "vtysh", "-c", "show bgp l2vpn evpn route detail type prefix"); !strings.Contains(out, "graceful-shutdown") {
		t.Errorf("the reflector shows no community: %s", tail(out, 2000))
	}
	if s := w.drain(node, "drain", "--withdraw-after", "0", "--wait", "30s"); s.Stage != "drained" || s.Announced == nil || *s.Announced != 0 {
		t.Errorf("drain: %+v", s)
	}
	if out := w.exec(node, sluicectl(), "status"); !strings.Contains(strings.SplitN(out, "\n", 2)[0], "ready, drained since") {
		t.Errorf("the head of the status does not say that the node is drained: %s", out)
	}
	w.drainIsNamed(node, only)
	w.withdrawn(node, vniRed, "10.60.0.11/32", "fd00:60::11/128", only+"/32")
	w.unreachable("c-red1", only)
	w.kill(node, "sluiced")
	w.startAgain(node, "sluiced")
	w.eventually("it announces nothing after a restart, either", func() error {
		s, err := w.status(node)
		reasons := map[string]string{}
		for _, c := range s.Conditions {
			reasons[c.Name] = c.Reason
		}
		if err == nil && reasons["bgp"] == "in-sync" && (reasons["drain"] == "withdrawn" || reasons["drain"] == "drained") {
			return nil
		}
		return fmt.Errorf("%v, conditions %v", err, reasons)
	})
	w.withdrawn(node, vniRed, only+"/32")
	if s := w.drain(node, "undrain"); s.Stage != "serving" {
		t.Errorf("undrain: %+v", s)
	}
	w.announced(node, vniRed, "10.60.0.11/32", "fd00:60::11/128", only+"/32")
	w.reach("c-red1", only)
	for _, s := range streams {
		s.noLoss(s.stop())
	}
}

// drainIsNamed looks for the drain where somebody looks who does not know of it: why an address of
// the node is not reached, its lists, and its log.
func (w *world) drainIsNamed(node string, hosts ...string) {
	w.Helper()
	const text = "the node is drained; 'sluicectl undrain' puts it back"
	for _, host := range append(hosts, anycast4, anycast6) {
		other := "10.40.0.11"
		if strings.Contains(host, ":") {
			other = "fd00:40::11"
		}
		w.withheld(node, host, other, text, "drained")
	}
	p, err := w.Process(node, "sluiced")
	if err != nil {
		w.Fatal(err)
	}
	w.eventually("the log tells of the drain", func() error {
		log := p.LogTail(200)
		if strings.Contains(log, "the drain begins") && strings.Contains(log, `msg="the node is drained"`) {
			return nil
		}
		return errors.New(tail(log, 2000))
	})
}

// withheld looks whether explain and the lists name what keeps a node's routes back.
func (w *world) withheld(node, src, dst, text, why string) {
	w.Helper()
	// Exit code 3: there is no path.
	out := w.exec(node, "sh", "-c", fmt.Sprintf("%s explain --vrf %d %s %s; test $? = 3", sluicectl(), vniRed, src, dst))
	if !strings.Contains(out, " is not announced: "+text) {
		w.Errorf("explain %s %s: %s", src, dst, out)
	}
	if out := w.exec(node, sluicectl(), "route", "list", "--vrf", fmt.Sprint(vniRed)); !strings.Contains(out, why+": ") {
		w.Errorf("route list: %s", out)
	}
	if out := w.exec(node, sluicectl(), "vrf", "list"); !strings.Contains(out, "("+why+")") {
		w.Errorf("vrf list: %s", out)
	}
}

// lateDrains asks a sluiced that is stopped for changes. It does none of them when it goes on.
func (w *world) lateDrains(node string) {
	w.Helper()
	p, err := w.Process(node, "sluiced")
	if err == nil {
		err = p.Signal(syscall.SIGSTOP)
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = p.Signal(syscall.SIGCONT) })
	w.eventually("sluiced is stopped", func() error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid()))
		for _, path := range threads {
			text, readErr := os.ReadFile(path)
			if err = errors.Join(err, readErr); readErr == nil && !strings.Contains(string(text), ") T ") {
				err = errors.Join(err, errors.New(string(text)))
			}
		}
		return err
	})
	for _, words := range []string{"drain --withdraw-after 0", "undrain", "lb drain web 10.10.0.11:80", "lb undrain web 10.10.0.11:80"} {
		// Exit code 4: not done.
		out := w.exec(node, "sh", "-c", sluicectl()+" --timeout 300ms "+words+" 2>&1; test $? = 4")
		if !strings.Contains(out, "nothing was changed, and the request is dropped: sluiced does not answer") {
			w.Errorf("%s: %s", words, out)
		}
	}
	out := w.exec(node, "sh", "-c", sluicectl()+" --timeout 300ms vrf list 2>&1")
	if strings.Count(out, "reading the pinned maps in") != 1 || !strings.Contains(out, fmt.Sprint(vniRed)) {
		w.Errorf("vrf list: %s", out)
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		w.Fatal(err)
	}
	if out := w.exec(node, sluicectl(), "status"); strings.Contains(out, "drain") {
		w.Errorf("a drain that was called failed was begun: %s", out)
	}
}

// stands waits until a node takes nothing more from the fabric.
func (w *world) stands(node string) {
	w.Helper()
	w.eventually("no traffic through "+node, func() error {
		before := w.fromFabric(node)
		time.Sleep(200 * time.Millisecond)
		return moved(w.fromFabric(node) == before)
	})
}

func moved(ok bool) error {
	if ok {
		return nil
	}
	return fmt.Errorf("not yet")
}
