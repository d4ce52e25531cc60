package metadata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// Switched off, nothing of it is left on the node but what is not Sluice's; switched on,
// everybody is answered again.
func TestSwitchedOffAndOn(t *testing.T) {
	w := shared(t)
	for _, node := range []string{"m1", "m2"} {
		w.sh(node, "ip netns add ovnmeta-foreign; ip netns add foreign")
		t.Cleanup(func() { w.sh(node, "ip netns del ovnmeta-foreign; ip netns del foreign") })
	}
	defer w.ownData(vms...)
	for _, node := range []string{"m1", "m2"} {
		defer w.restartWith(node, settings[node]...)
	}
	if got := w.programs("m1", lab.TapName("m-red1")); !slices.Contains(got, "tap_in") {
		t.Errorf("programs on a tap of m1: %q", got)
	}
	for _, node := range []string{"m1", "m2"} {
		w.turnOff(node)
		w.eventually("nothing is left on "+node, func() error { return w.left(node) })
	}
	for _, vm := range vms {
		if r, err := w.ask(t.Context(), question{vm: vm, family: ipv4, patience: time.Second}); err == nil {
			t.Errorf("%s is answered: %d %.100s", vm, r.status, r.body)
		}
	}
}

// turnOff starts sluiced with metadata switched off; the proxy is not of use then.
func (w *world) turnOff(node string) {
	w.Helper()
	for _, name := range []string{"sluiced", "metadata"} {
		if err := w.process(node, name).Stop(); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.StartSluiced(w.Context(), node, w.program(node, "enabled: false")); err != nil {
		w.Fatal(err)
	}
}

// left tells what there is of metadata on a node that is Sluice's, and what of others'
// is missing.
func (w *world) left(node string) error {
	spaces := w.namespaces(node)
	slices.Sort(spaces)
	if want := []string{"foreign", "ovnmeta-foreign"}; !slices.Equal(spaces, want) {
		return fmt.Errorf("namespaces %q, want %q", spaces, want)
	}
	if links := w.exec(node, "ip", "-br", "link"); strings.Contains(links, "sluice-md") {
		return fmt.Errorf("links: %s", links)
	}
	for _, vm := range vms {
		if w.vm(vm).Chassis != node {
			continue
		}
		if got := w.programs(node, lab.TapName(vm)); slices.Contains(got, "tap_in") {
			return fmt.Errorf("programs on the tap of %s: %q", vm, got)
		}
	}
	if ports := w.exec(node, "ovs-vsctl", "list-ports", "br-int"); strings.Contains(ports, w.network("red").ID[:10]) {
		return fmt.Errorf("ports of br-int: %s", ports)
	}
	return nil
}

// Each form makes what it needs and no more: one namespace and one process for all that
// is steered, and a namespace per network otherwise, named as neutron's agent does.
func TestWhatThereIs(t *testing.T) {
	w := shared(t)
	if got := w.namespaces("m1"); !slices.Equal(got, []string{"sluice-metadata"}) {
		t.Errorf("namespaces of m1: %q", got)
	}
	for _, tenant := range []string{"red", "blue"} {
		n := w.network(tenant)
		if got := w.namespaces("m2"); !slices.Contains(got, n.Namespace()) {
			t.Errorf("namespaces of m2: %q, want %s", got, n.Namespace())
		}
		got := w.exec("m2", "ip", "netns", "exec", n.Namespace(), "ip", "-o", "addr")
		for _, want := range []string{"169.254.169.254/32", "fe80::a9fe:a9fe/", n.MetadataAddrs()[0].String()} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s:\n%s", n.Namespace(), want, got)
			}
		}
		_, mac := n.MetadataPort()
		if link := w.exec("m2", "ip", "netns", "exec", n.Namespace(), "ip", "-br", "link"); !strings.Contains(link, mac) {
			t.Errorf("%s lacks %s:\n%s", n.Namespace(), mac, link)
		}
	}
	for _, node := range []string{"m1", "m2"} {
		if got := w.proxies(node); len(got) != 1 {
			t.Errorf("proxies on %s: %v", node, got)
		}
		// The operator's command tells of both, and of each VM.
		w.exec(node, sluicectl(), "metadata", "proxy")
		ports := w.exec(node, sluicectl(), "metadata", "ports")
		for _, vm := range vms {
			if here := w.vm(vm).Chassis == node; strings.Contains(ports, vm) != here {
				t.Errorf("ports of %s, want %s: %v\n%s", node, vm, here, ports)
			}
		}
	}
}
