package metadata_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
	"github.com/ovn-sluice/sluice/test/nova"
)

// The VMs of the plain lab, and those of them whose taps are steered.
var (
	steered = []string{"m-red1", "m-blue1"}
	vms     = []string{"m-red1", "m-blue1", "m-red2", "m-blue2"}
)

// background outlives a test: clean-up uses it.
var background = context.Background()

// world is a lab whose chassis run sluiced and the proxy.
type world struct {
	*testing.T
	*lab.Lab
	nova *nova.Nova
}

// The plain lab's Nova, and whether its chassis have been started.
var (
	plainNova  *nova.Nova
	plainOnce  sync.Once
	plainReady bool
)

// shared is the plain lab, with everybody answered. A test that broke it fails the ones
// after it here.
func shared(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Lab: plain.Lab(t)}
	plainOnce.Do(func() {
		plainNova = serveNova(t, w.Lab, func(func()) {})
		w.nova = plainNova
		w.start()
		plainReady = true
	})
	if !plainReady {
		t.Fatal("the shared lab did not come up")
	}
	w.nova = plainNova
	w.reportFailure()
	w.ownData(vms...)
	return w
}

// own is a lab for one test.
func own(t *testing.T, s lab.Scenario) *world {
	t.Helper()
	w := &world{T: t, Lab: labtest.Up(t, s)}
	w.nova = serveNova(t, w.Lab, t.Cleanup)
	w.reportFailure()
	w.start()
	return w
}

// serveNova runs the stand-in in this process, in the namespace of the databases.
func serveNova(t *testing.T, l *lab.Lab, cleanup func(func())) *nova.Nova {
	t.Helper()
	n := nova.New(nova.Config{Secret: lab.NovaSecret})
	for _, i := range l.Scenario().Clouds[0].NovaInstances() {
		i.UserData = userData(i.Name)
		n.Put(i)
	}
	address, err := l.NovaAddress("m")
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	in(t, l, "m-central", func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	ctx, cancel := context.WithCancel(background)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = n.Serve(ctx, listener)
	}()
	cleanup(func() { cancel(); <-done })
	return n
}

// in runs fn in a node's network namespace.
func in(t testing.TB, l *lab.Lab, node string, fn func() error) {
	t.Helper()
	n, err := l.Node(node)
	if err == nil {
		err = netns.Named(n.Netns).Do(fn)
	}
	if err != nil {
		t.Fatalf("on %s: %v", node, err)
	}
}

// settings are lines of the section metadata, by chassis.
var settings = map[string][]string{"m2": {"path: namespace"}}

// start runs sluiced and the proxy on every chassis.
func (w *world) start() {
	w.Helper()
	for _, ch := range w.Scenario().Clouds[0].Chassis {
		w.startOn(ch.Name, settings[ch.Name]...)
	}
}

// startOn runs both on a chassis, with lines of the section metadata. What runs is left
// alone.
func (w *world) startOn(node string, lines ...string) {
	w.Helper()
	s := w.program(node, lines...)
	_, err := w.StartSluiced(w.Context(), node, s)
	_, proxyErr := w.StartMetadata(w.Context(), node, s)
	if err := errors.Join(err, proxyErr); err != nil {
		w.Fatal(err)
	}
}

func (w *world) program(_ string, lines ...string) lab.Sluiced {
	w.Helper()
	rr, err := w.Node("rr")
	section, configErr := w.MetadataConfig("m", lines...)
	if err := errors.Join(err, configErr); err != nil {
		w.Fatal(err)
	}
	return lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: fmt.Sprintf(lab.Config, rr.VTEP4) + section}
}

// restartWith starts sluiced and the proxy of a chassis again with other lines.
func (w *world) restartWith(node string, lines ...string) {
	w.Helper()
	for _, name := range []string{"sluiced", "metadata"} {
		if err := w.process(node, name).Stop(); err != nil {
			w.Fatal(err)
		}
	}
	w.startOn(node, lines...)
}

// reportFailure shows what the nodes say when something did not work.
func (w *world) reportFailure() {
	w.Cleanup(func() {
		if !w.Failed() {
			return
		}
		for _, ch := range w.Scenario().Clouds[0].Chassis {
			for _, name := range []string{"sluiced", "metadata"} {
				if p, err := w.Process(ch.Name, name); err == nil {
					w.Logf("%s: %s (running: %v), its log ends:\n%s", ch.Name, name, p.Running(), p.LogTail(25))
				}
			}
			for _, argv := range [][]string{
				{sluicectl(), "status"}, {"ip", "netns"}, {"ip", "-br", "link"}, {"ovs-vsctl", "show"},
				{"sh", "-c", "ip netns exec sluice-metadata ss -Htan; ip netns exec sluice-metadata ip addr"},
			} {
				out, err := w.Exec(background, ch.Name, argv...)
				w.Logf("%s: %s: %v\n%s", ch.Name, strings.Join(argv, " "), err, out[max(0, len(out)-3000):])
			}
		}
	})
}

func sluicectl() string { return filepath.Join(bin, "sluicectl") }

// exec runs a command, at the end of a test too.
func (w *world) exec(node string, argv ...string) string {
	w.Helper()
	out, err := w.Exec(background, node, argv...)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// sh runs a script that stops at an error.
func (w *world) sh(node, script string) string {
	w.Helper()
	return w.exec(node, "sh", "-euc", script)
}

func (w *world) nb(args ...string) string {
	w.Helper()
	out, err := w.NB(background, "m", args...)
	if err != nil {
		w.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func (w *world) process(node, name string) *lab.Process {
	w.Helper()
	p, err := w.Process(node, name)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// eventually waits for a state and prints how long it took.
func (w *world) eventually(what string, cond func() error) {
	w.Helper()
	start := time.Now()
	labtest.Eventually(w.T, w.Lab, what, cond)
	w.Logf("%s: after %d ms", what, time.Since(start).Milliseconds())
}

// network is a tenant's.
func (w *world) network(tenant string) lab.Network {
	w.Helper()
	for _, t := range w.Scenario().Clouds[0].Tenants {
		if t.Name == tenant {
			return t.Networks[0]
		}
	}
	w.Fatalf("there is no tenant %s", tenant)
	return lab.Network{}
}

// vm is one of the scenario's VMs now.
func (w *world) vm(name string) lab.VM {
	w.Helper()
	for _, vm := range w.Scenario().Clouds[0].VMs {
		if vm.Name == name {
			return vm
		}
	}
	w.Fatalf("there is no VM %s", name)
	return lab.VM{}
}

// add adds a VM for a test, and makes its instance known to Nova.
func (w *world) add(vm lab.VM) {
	w.Helper()
	if err := w.AddVM(w.Context(), "m", vm); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if _, err := w.Node(vm.Name); err != nil {
			return // the test has deleted it
		}
		if err := w.DelVM(background, vm.Name); err != nil {
			w.Error(err)
		}
	})
	if vm.Instance != "" {
		w.putInstance(vm)
	}
}

// putInstance makes a VM known to Nova.
func (w *world) putInstance(vm lab.VM) {
	w.nova.Put(nova.Instance{
		ID: vm.Instance, Project: vm.Project, Name: vm.Name, MAC: vm.MAC, MTU: lab.VMMTU, Address: vm.Addr4, UserData: userData(vm.Name),
		VendorData: json.RawMessage(`{"cloud-init":"#cloud-config\nfinal_message: vendor"}`),
	})
}
