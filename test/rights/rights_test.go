package rights_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
	"github.com/ovn-sluice/sluice/test/programs"
)

const (
	unit = "../../deploy/systemd/sluiced.service"
	node = "a1"
)

// breaks is what a node without a capability says, of a component or, where that is "", in its log.
var breaks = map[string]struct {
	// includes is taken away, too: a capability that includes this one.
	includes string
	// neighbor is one more, in the configuration.
	neighbor string
	// cold: no programs are pinned.
	cold            bool
	component, says string
	// warns is in the warning of the status that names the capability, where there is one.
	warns string
}{
	"CAP_BPF":       {includes: "CAP_SYS_ADMIN", component: "dataplane", says: "sluiced has no cap_bpf;"},
	"CAP_PERFMON":   {includes: "CAP_SYS_ADMIN", cold: true, component: "dataplane", says: "sluiced has no cap_perfmon;"},
	"CAP_NET_ADMIN": {component: "dataplane", says: "sluiced has no cap_net_admin;"},
	"CAP_NET_RAW": {neighbor: "    - {interface: " + lab.UnderlayLink + ", external: true}\n", says: "router discovery on " + lab.UnderlayLink,
		warns: "no neighbour of bgp.neighbors[].interface is found"},
	"CAP_NET_BIND_SERVICE": {component: "bgp", says: "permission denied"},
	"CAP_DAC_OVERRIDE":     {component: "vswitchd", says: "permission denied"},
	"CAP_SYS_ADMIN":        {component: "metadata", says: "sluiced has no cap_sys_admin;"},
}

// bin holds the programs under test.
var bin string

func TestMain(m *testing.M) {
	os.Exit(labtest.RunPrograms(m, &bin, func(dir string) error { return programs.LinkInto(dir, "sluiced", "sluicectl", "sluice-lab") }))
}

// world is the lab.
type world struct {
	*testing.T
	*lab.Lab
	bgp, rest string // of the configuration
}

// TestEachCapability starts sluiced with the rights of the unit, again over pins with a VIP, and
// with each of the rights taken away.
func TestEachCapability(t *testing.T) {
	rights := rightsOf(t)
	for _, name := range rights {
		if _, known := breaks[name]; !known {
			t.Errorf("%s of the unit: what breaks without it is not tested", name)
		}
	}
	w := up(t)
	w.start(rights)
	w.ready("with the rights of the unit")
	w.vip()
	w.stop()
	w.start(rights)
	w.ready("again, over pins with a VIP")
	w.vip()
	w.stop()
	for _, taken := range rights {
		left := slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == taken || r == breaks[taken].includes })
		if breaks[taken].cold {
			w.unpinPrograms()
		}
		w.start(left, breaks[taken].neighbor)
		w.fails(taken)
		w.stop()
	}
	w.start(rights)
	w.ready("with all of them, after that")
	w.vip()
}

// rightsOf are the capabilities that the unit leaves.
func rightsOf(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if names, ok := strings.CutPrefix(strings.TrimSpace(line), "CapabilityBoundingSet="); ok {
			return strings.Fields(names)
		}
	}
	t.Fatal("the unit has no CapabilityBoundingSet")
	return nil
}

func up(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{Metadata: true, Balancing: true}))}
	rr, err := w.Node("rr")
	if err != nil {
		t.Fatal(err)
	}
	section, err := w.MetadataConfig("a")
	if err != nil {
		t.Fatal(err)
	}
	w.bgp = "bgp:\n" + lab.Times + fmt.Sprintf("  asn: %d\n  listen: :179\n  neighbors:\n    - address: %s\n", lab.FabricAS, rr.VTEP4)
	w.rest = lab.NodeConfig + lab.BalancingConfig + section
	for _, args := range [][]string{
		{"lb-add", "web", "10.99.0.1:80", "10.10.0.21:8080,10.10.0.22:8080", "tcp"},
		{"lb-add", "web", "[fd00:99::1]:80", "[fd00:10::21]:8080,[fd00:10::22]:8080", "tcp"}, {"lr-lb-add", "red-router", "web"},
	} {
		if _, err := w.NB(t.Context(), "a", args...); err != nil {
			t.Fatal(err)
		}
	}
	// Open vSwitch's socket is another user's, as where it runs as one of its own.
	n, err := w.Node(node)
	if err == nil {
		err = os.Chown(filepath.Join(n.Dir, "db.sock"), 12345, 12345)
	}
	if err == nil {
		err = os.Chmod(filepath.Join(n.Dir, "db.sock"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// start runs sluiced with capabilities alone, and more neighbours.
func (w *world) start(rights []string, neighbors ...string) {
	w.Helper()
	set := "-all"
	for _, r := range rights {
		set += ",+" + strings.ToLower(strings.TrimPrefix(r, "CAP_"))
	}
	script := filepath.Join(w.TempDir(), "sluiced")
	text := fmt.Sprintf("#!/bin/sh\nexec setpriv --bounding-set %s --inh-caps %s --no-new-privs %s \"$@\"\n", set, set, filepath.Join(bin, "sluiced"))
	err := os.WriteFile(script, []byte(text), 0o755)
	if err == nil {
		_, err = w.StartSluiced(w.Context(), node, lab.Sluiced{Binary: script, Config: w.bgp + strings.Join(neighbors, "") + w.rest})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// unpinPrograms has the next start load them.
func (w *world) unpinPrograms() {
	w.Helper()
	n, err := w.Node(node)
	if err != nil {
		w.Fatal(err)
	}
	pins, err := filepath.Glob(filepath.Join(n.BPFFS, "prog_*"))
	if err != nil || len(pins) == 0 {
		w.Fatalf("%d programs are pinned, %v", len(pins), err)
	}
	for _, pin := range pins {
		if err := os.Remove(pin); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) stop() {
	w.Helper()
	p, err := w.Process(node, "sluiced")
	if err == nil {
		err = p.Stop()
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) status() (s status.Status, err error) {
	out, err := w.Exec(w.Context(), node, "sh", "-c", filepath.Join(bin, "sluicectl")+" -o json status || test $? = 3")
	return s, errors.Join(err, json.Unmarshal([]byte(out), &s))
}

// ready waits until each component is ready but for what needs the metadata proxy, and nothing is an error.
func (w *world) ready(when string) {
	w.Helper()
	labtest.Eventually(w.T, w.Lab, "ready "+when, func() error {
		s, err := w.status()
		if err != nil {
			return err
		}
		if len(s.Conditions) < 8 {
			return fmt.Errorf("%d components", len(s.Conditions))
		}
		for _, c := range s.Conditions {
			if !c.Ready && c.Reason != "no-proxy" {
				err = errors.Join(err, fmt.Errorf("%s: %s %s", c.Name, c.Reason, c.Detail))
			}
		}
		for _, p := range s.Problems {
			if p.State == status.Error {
				err = errors.Join(err, fmt.Errorf("%s %s: %s", p.Kind, p.Key, p.Error))
			}
		}
		return err
	})
}

// vip waits until the VIPs are there.
func (w *world) vip() {
	w.Helper()
	labtest.Eventually(w.T, w.Lab, "two VIPs", func() error {
		out, err := w.Exec(w.Context(), node, filepath.Join(bin, "sluicectl"), "lb", "list")
		if err == nil && strings.Count(out, "ok") < 2 {
			err = errors.New(out)
		}
		return err
	})
}

// fails waits until the node says what a capability is missing for.
func (w *world) fails(taken string) {
	w.Helper()
	want := breaks[taken]
	labtest.Eventually(w.T, w.Lab, "what breaks without "+taken, func() error {
		s, err := w.status()
		if err != nil {
			return err
		}
		all := ""
		if i := slices.IndexFunc(s.Problems, func(o status.Object) bool { return o.Kind == "capability" && o.Key == taken }); (i >= 0) != (want.warns != "") ||
			i >= 0 && !strings.Contains(s.Problems[i].Error, want.warns) {
			return fmt.Errorf("warnings: %+v", s.Problems)
		}
		for _, c := range s.Conditions {
			if c.Name == want.component && !c.Ready && strings.Contains(strings.ToLower(c.Detail), want.says) {
				w.Logf("without %s: %s %s: %s", taken, c.Name, c.Reason, c.Detail)
				return nil
			}
			if !c.Ready {
				all += fmt.Sprintf("%s: %s %s\n", c.Name, c.Reason, c.Detail)
			}
		}
		p, err := w.Process(node, "sluiced")
		if err != nil {
			return err
		}
		for _, line := range strings.Split(p.LogTail(60), "\n") {
			if want.component == "" && strings.Contains(line, want.says) && strings.Contains(line, "not permitted") {
				w.Logf("without %s: %s", taken, line)
				return nil
			}
		}
		for _, p := range s.Problems {
			all += fmt.Sprintf("%s %s: %s\n", p.Kind, p.Key, p.Error)
		}
		return errors.New(all)
	})
}
