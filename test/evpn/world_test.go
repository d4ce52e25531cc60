package evpn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// The VMs' addresses in clouds A and B are the same for both tenants.
const (
	addrA4, addrA6 = "10.10.0.11", "fd00:10::11"
	addrB4, addrB6 = "10.20.0.11", "fd00:20::11"
	vniRed         = 1001
	vniBlue        = 2001
)

// vms have the same addresses as their neighbours of the other tenant.
var vms = []string{"a-red1", "a-blue1", "b-red1", "b-blue1"}

// underlayMTU is smaller than the VMs' MTU plus VXLAN, so that their larger
// packets do not fit. pathMTU is what fits.
const (
	underlayMTU = 1350
	pathMTU     = underlayMTU - 50
)

// world is a lab whose chassis run sluiced.
type world struct {
	*testing.T
	*lab.Lab
	// counted is the tally when streams began.
	counted tally
}

// shared is the plain lab, with both tenants connected. A test that broke it
// fails the ones after it here.
func shared(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Lab: plain.Lab(t)}
	plainOnce.Do(func() {
		for _, n := range w.chassis() {
			w.exec(n, "ip", "link", "set", lab.UnderlayLink, "mtu", fmt.Sprint(underlayMTU))
		}
		w.start("")
		plainReady = true
	})
	if !plainReady {
		t.Fatal("the shared lab did not come up")
	}
	w.reportFailure()
	w.connected()
	return w
}

func (w *world) reportFailure() {
	w.Cleanup(func() {
		if w.Failed() {
			w.report()
			if w.counted != nil {
				w.Logf("counted since the streams began:\n%s", w.tally().since(w.counted))
			}
		}
	})
}

// report shows what the nodes say when something did not work.
func (w *world) report() {
	labtest.Report(w.T, w.Lab)
	for _, n := range w.chassis() {
		for _, argv := range [][]string{
			{sluicectl(), "status"}, {sluicectl(), "drops"}, {sluicectl(), "vrf", "list"}, {"ovs-ofctl", "--names", "dump-flows", "br-ex"},
			{"ovs-appctl", "dpctl/dump-flows", "--names"}, {"ovs-appctl", "upcall/show"},
			// Where the lab's switch itself loses packets: d is a socket's count.
			{"ss", "-0mn"}, {"sh", "-c", "ovs-appctl coverage/show | grep -E 'drop|miss|long_poll|revalidate'"},
		} {
			out, err := w.Exec(background, n, argv...)
			w.Logf("%s: %s: %v\n%s", n, strings.Join(argv[1:], " "), err, tail(out, 3000))
		}
	}
}

// own is a lab for one test, with sluiced running.
func own(t *testing.T, s lab.Scenario, config string) *world {
	t.Helper()
	w := &world{T: t, Lab: labtest.Up(t, s)}
	w.reportFailure()
	w.start(config)
	return w
}

// start runs sluiced on every chassis, with more configuration.
func (w *world) start(config string) {
	w.Helper()
	for _, n := range w.chassis() {
		w.startOn(n, config)
	}
}

func (w *world) startOn(node, config string) {
	w.Helper()
	w.startWith(node, w.node("rr").VTEP4, config)
}

func (w *world) startWith(node string, neighbor netip.Addr, config string) {
	w.Helper()
	text := fmt.Sprintf(lab.Config, neighbor) + config
	if _, err := w.StartSluiced(w.Context(), node, lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) chassis() []string {
	var out []string
	for _, n := range w.Nodes() {
		if n.Kind == lab.KindChassis {
			out = append(out, n.Name)
		}
	}
	return out
}

func (w *world) node(name string) lab.Node {
	w.Helper()
	n, err := w.Node(name)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) exec(node string, argv ...string) string {
	w.Helper()
	return labtest.Exec(w.T, w.Lab, node, argv...)
}

func (w *world) nb(cloud string, args ...string) string {
	w.Helper()
	out, err := w.NB(w.Context(), cloud, args...)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// eventually waits for a state and prints how long it took.
func (w *world) eventually(what string, cond func() error) {
	w.Helper()
	start := time.Now()
	var last error
	labtest.Eventually(w.T, w.Lab, what, func() error {
		err := cond()
		if err != nil {
			last = err
		}
		return err
	})
	w.Logf("%s: after %d ms", what, time.Since(start).Milliseconds())
	if took := time.Since(start); took > noteworthy {
		w.Logf("until then: %.1000v", last)
	}
}

// noteworthy is a time after which it is said what a test waited for.
const noteworthy = 15 * time.Second

// reach waits until an address answers from a VM.
func (w *world) reach(vm string, addrs ...string) {
	w.Helper()
	for _, a := range addrs {
		w.eventually(vm+" reaches "+a, func() error {
			_, err := w.Exec(w.Context(), vm, "ping", "-n", "-c1", "-W1", a)
			return err
		})
	}
}

// connected waits until both tenants reach each other over both families.
func (w *world) connected() {
	w.Helper()
	for _, vm := range []string{"a-red1", "a-blue1"} {
		for _, a := range []string{addrB4, addrB6} {
			labtest.Ping(w.T, w.Lab, vm, a)
		}
	}
}

// unreachable asserts that an address does not answer.
func (w *world) unreachable(vm string, addrs ...string) {
	w.Helper()
	for _, a := range addrs {
		if out, err := w.Exec(w.Context(), vm, "ping", "-n", "-c3", "-i0.05", "-W0.3", a); err == nil {
			w.Errorf("%s reaches %s:\n%s", vm, a, out)
		}
	}
}

// rrRoute is a Type-5 route as the reflector shows it.
type rrRoute struct {
	VNI    int
	Prefix string
	VTEP   string
}

// rrRoutes are the routes of a VNI that the reflector has.
func (w *world) rrRoutes(vni int) (map[rrRoute]bool, error) {
	out, err := w.Exec(w.Context(), "rr", "vtysh", "-c", "show bgp l2vpn evpn route type prefix json")
	if err != nil {
		return nil, err
	}
	return parseRR(out, vni)
}

func parseRR(text string, vni int) (map[rrRoute]bool, error) {
	var byRD map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &byRD); err != nil {
		return nil, fmt.Errorf("routes at the reflector: %w", err)
	}
	routes := map[rrRoute]bool{}
	for rd, raw := range byRD {
		if !strings.Contains(rd, ":") {
			continue // numPrefix, numPaths
		}
		var rows map[string]json.RawMessage
		if err := json.Unmarshal(raw, &rows); err != nil {
			return nil, fmt.Errorf("routes of %s at the reflector: %w", rd, err)
		}
		for key, raw := range rows {
			if !strings.HasPrefix(key, "[5]") {
				continue
			}
			var row struct{ Paths [][]rrPath }
			if err := json.Unmarshal(raw, &row); err != nil {
				return nil, fmt.Errorf("route %s of %s at the reflector: %w", key, rd, err)
			}
			for _, p := range slices.Concat(row.Paths...) {
				p.add(routes, vni)
			}
		}
	}
	return routes, nil
}

type rrPath struct {
	IP                string
	IPLen             int
	ExtendedCommunity struct{ String string }
	Nexthops          []struct{ IP string }
}

func (p rrPath) add(routes map[rrRoute]bool, vni int) {
	if slices.Contains(strings.Fields(p.ExtendedCommunity.String), fmt.Sprintf("RT:%d:%d", lab.FabricAS, vni)) {
		for _, h := range p.Nexthops {
			routes[rrRoute{vni, fmt.Sprintf("%s/%d", p.IP, p.IPLen), h.IP}] = true
		}
	}
}

// announced waits until the reflector has the prefixes in the VNI from the node.
func (w *world) announced(node string, vni int, prefixes ...string) {
	w.Helper()
	w.rr(node, vni, true, prefixes)
}

// withdrawn waits until it has none of them.
func (w *world) withdrawn(node string, vni int, prefixes ...string) {
	w.Helper()
	w.rr(node, vni, false, prefixes)
}

func (w *world) rr(node string, vni int, want bool, prefixes []string) {
	w.Helper()
	n := w.node(node)
	word := map[bool]string{true: "has", false: "lost"}[want]
	w.eventually(fmt.Sprintf("the reflector %s %v of %s, VNI %d", word, prefixes, node, vni), func() error {
		routes, err := w.rrRoutes(vni)
		if err != nil {
			return err
		}
		for _, p := range prefixes {
			has := routes[rrRoute{vni, p, n.VTEP4.String()}] || routes[rrRoute{vni, p, n.VTEP6.String()}]
			if has != want {
				return fmt.Errorf("%s there: %v; all: %v", p, has, slices.Collect(maps.Keys(routes)))
			}
		}
		return nil
	})
}

// background outlives a test: clean-up uses it.
var background = context.Background()

func sluicectl() string { return filepath.Join(bin, "sluicectl") }

// status asks sluiced of a node.
func (w *world) status(node string) (status.Status, error) {
	out, err := w.Exec(w.Context(), node, "sh", "-c", sluicectl()+" status -o json || test $? = 3") // 3: not ready
	var s status.Status
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	return s, err
}
