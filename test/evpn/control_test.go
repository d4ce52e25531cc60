//go:build !guest

package evpn_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// These tests assert loss and end state of what the part "control" of the benchmarks times. Its
// doc.go lists the test of each row.

// idleTime is how long nothing is asked of the nodes.
const idleTime = 5 * time.Second

// While nothing changes nothing is written: no row of a table, no flow, no UPDATE and no
// transaction of a database. Packets go on, and are all that is counted.
func TestIdle(t *testing.T) {
	w := shared(t)
	w.clean()
	last := w.written()
	w.eventually("what was asked for before is over", func() error {
		was := last
		time.Sleep(time.Second / 2)
		last = w.written()
		if d := compare(was, last); d != "" {
			return fmt.Errorf("written:%s", d)
		}
		return nil
	})
	streams := w.oneWay()
	before := w.written()
	time.Sleep(idleTime)
	if d := compare(before, w.written()); d != "" {
		t.Errorf("written within %s of nothing:%s", idleTime, d)
	}
	for _, s := range streams {
		s.noLoss(s.stop())
	}
}

// oneWay are pings of one VM of each tenant: from cloud A of one, from B of the other.
func (w *world) oneWay() (out []*stream) {
	w.Helper()
	for _, vm := range []string{"a-red1", "b-blue1"} {
		for _, addr := range far(vm) {
			out = append(out, w.stream(vm, addr))
		}
	}
	return out
}

// notWritten are metrics of packets, and of looks at what is there.
var notWritten = regexp.MustCompile(`^sluice_(\w+_(packets|bytes)_total|reconcile_pass_seconds_\w+)\b`)

// written is what counts or shows writes of all nodes: the metrics of Sluice but for notWritten,
// the steering flows, the UPDATEs at the reflector, and the sizes of the databases'
// files, which each transaction makes longer.
func (w *world) written() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, n := range w.chassis() {
		var metrics []string
		for line := range strings.Lines(w.exec(n, "curl", "-sS", "http://127.0.0.1:9476/metrics")) {
			if strings.HasPrefix(line, "sluice_") && !notWritten.MatchString(line) {
				metrics = append(metrics, strings.TrimSpace(line))
			}
		}
		out["metrics of "+n], out["flows of "+n] = strings.Join(metrics, "\n"), w.flows(n)
	}
	var neighbors map[string]struct{ MessageStats struct{ UpdatesRecv int } }
	if err := json.Unmarshal([]byte(w.exec("rr", "vtysh", "-c", "show bgp neighbors json")), &neighbors); err != nil {
		w.Fatal(err)
	}
	for address, n := range neighbors {
		out["UPDATEs of "+address] = fmt.Sprint(n.MessageStats.UpdatesRecv)
	}
	for _, n := range w.Nodes() {
		files, err := filepath.Glob(filepath.Join(n.Dir, "*.db"))
		if err != nil {
			w.Fatal(err)
		}
		for _, f := range files {
			i, err := os.Stat(f)
			if err != nil {
				w.Fatal(err)
			}
			out["bytes of "+f] = fmt.Sprint(i.Size())
		}
	}
	return out
}

// A port that is released and bound in Southbound is withdrawn and announced; its VM answers,
// and the others lose nothing meanwhile.
func TestPortIsBound(t *testing.T) {
	w := shared(t)
	routes := []string{"10.10.0.12/32", "fd00:10::12/128"}
	tap := strings.TrimSpace(w.exec("a1", "ovs-vsctl", "--bare", "--columns=name", "find", "Interface", "external_ids:iface-id=a-red2"))
	if tap == "" {
		t.Fatal("no interface of a-red2")
	}
	bind := []string{"ovs-vsctl", "set", "Interface", tap, "external_ids:iface-id=a-red2"}
	w.Cleanup(func() { _, _ = w.Exec(background, "a1", bind...) })
	w.announced("a1", vniRed, routes...)
	streams := w.streams()
	w.exec("a1", "ovs-vsctl", "remove", "Interface", tap, "external_ids", "iface-id")
	w.withdrawn("a1", vniRed, routes...)
	w.exec("a1", bind...)
	w.announced("a1", vniRed, routes...)
	w.reach("b-red1", "10.10.0.12", "fd00:10::12")
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	w.clean()
}

// A node starts with nothing of Sluice on it. Packets are lost until it forwards, and none
// after the first that passes; in the end flows and routes are those of before.
func TestColdStart(t *testing.T) {
	w := shared(t)
	w.clean()
	is := func() map[string]string {
		out := map[string]string{"flows": w.flows("b1")}
		for _, vni := range []int{vniRed, vniBlue} {
			all, err := w.rrRoutes(vni)
			if err != nil {
				return map[string]string{"error": err.Error()}
			}
			var routes []string
			for r := range all {
				routes = append(routes, fmt.Sprint(r))
			}
			slices.Sort(routes)
			out[fmt.Sprint("routes of VNI ", vni)] = strings.Join(routes, "\n")
		}
		return out
	}
	before := is()
	streams := w.oneWay()
	if err := w.process("b1", "sluiced").Stop(); err != nil {
		t.Fatal(err)
	}
	w.exec("b1", sluicectl(), "cleanup", "--config", w.node("b1").Dir+"/sluiced.yaml")
	w.withdrawn("b1", vniRed, redRoutes...)
	w.startAgain("b1", "sluiced")
	w.ready("b1")
	w.eventually("all is as before", func() error {
		if d := compare(before, is()); d != "" {
			return fmt.Errorf("differences:%s", d)
		}
		return nil
	})
	w.connected()
	w.clean()
	for _, s := range streams {
		sent, lost := s.stop()
		t.Logf("%s: %d of %d lost, in %d pieces", s.name, lost, sent, s.pieces())
		if lost == 0 || s.pieces() > 1 {
			t.Errorf("%s: %d lost in %d pieces, the first %v", s.name, lost, s.pieces(), s.missing())
		}
	}
}
