package bpf_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	kernel "github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// asker sends a packet at a time through the attached program and waits for the
// ICMP error about it: one that is lost is an error.
type asker struct {
	fd      int
	answers atomic.Int64
	err     atomic.Pointer[error]
	stop    chan struct{}
	stopped chan struct{}
}

func newAsker(t *testing.T, device string) *asker {
	t.Helper()
	peer, err := running(t, device)
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{stop: make(chan struct{}), stopped: make(chan struct{})}
	if a.fd, err = rawSocket(peer.Index); err != nil {
		t.Fatal(err)
	}
	go a.run()
	t.Cleanup(a.end)
	return a
}

func (a *asker) run() {
	defer close(a.stopped)
	frames := [][]byte{ttl(out4("10.10.0.5", "10.20.0.9"), 1), ttl(out6("fd00:10::5", "fd00:20::9"), 1)}
	for i := 0; ; i++ {
		select {
		case <-a.stop:
			return
		default:
		}
		if err := a.ask(frames[i%len(frames)]); err != nil {
			a.err.Store(&err)
			return
		}
		a.answers.Add(1)
	}
}

func (a *asker) ask(b []byte) error {
	if _, err := unix.Write(a.fd, append(make([]byte, virtioHeader), b...)); err != nil {
		return err
	}
	for {
		in := make([]byte, 4096)
		n, err := unix.Read(a.fd, in)
		if err != nil {
			return fmt.Errorf("packet %d has no answer: %w", a.answers.Load(), err)
		}
		if p := decode(in[virtioHeader:n]); p.Layer(layers.LayerTypeICMPv4) != nil || p.Layer(layers.LayerTypeICMPv6) != nil {
			return nil
		}
	}
}

func (a *asker) end() {
	select {
	case <-a.stop:
	default:
		close(a.stop)
		<-a.stopped
		unix.Close(a.fd)
	}
}

// more waits for further answers.
func (a *asker) more(t *testing.T) {
	t.Helper()
	for want := a.answers.Load() + 100; a.answers.Load() < want; {
		if err := a.err.Load(); err != nil {
			t.Fatal(*err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended")
		case <-time.After(time.Millisecond):
		}
	}
}

// age gives maps that are pinned an older layout's name: this build cannot use
// their rows, and the programs that run go on with them.
func age(t *testing.T, dir string) (older []string) {
	t.Helper()
	for _, base := range []string{"hosts", "entries"} {
		path := filepath.Join(dir, base+"_v0")
		if err := os.Rename(filepath.Join(dir, base+"_v1"), path); err != nil {
			t.Fatal(err)
		}
		older = append(older, path)
	}
	return older
}

// The step to another layout loses no packet: what runs goes on until the new maps
// are filled, and a process that ends before has changed nothing.
func TestStepToAnotherLayout(t *testing.T) {
	for _, hook := range []ebpf.Hook{ebpf.HookTCX, ebpf.HookClsact} {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			dir := bpffs(t)
			if err := ns.Do(func() error { return stepToAnotherLayout(t, hook, dir, index) }); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Connections to VIPs that the maps of the older layout know go on by the tables, in both
// directions, though the new maps do not know them.
func TestStepKeepsConnections(t *testing.T) {
	dir := bpffs(t)
	flows := []struct {
		client, vip, backend netip.AddrPort
	}{{client: netip.AddrPortFrom(client4, clientPort), vip: netip.AddrPortFrom(vip4, 80)}, {client: netip.AddrPortFrom(client6, clientPort), vip: netip.AddrPortFrom(vip6, 80)}}
	d := balanced(t, dir)
	tr := tracer(t, dir)
	for i, f := range flows {
		_, flows[i].backend = send(t, tr, asked(intent.TCP, f.client, f.vip, "S"))
	}
	tr.Close()
	d.Close()
	age(t, dir)
	d = world(t, dir, node())
	if !d.Staged() {
		t.Fatal("maps of an older layout are taken for this build's")
	}
	time.Sleep(1100 * time.Millisecond) // with many rows, VIPs come long after their VRF
	apply(t, d.VIPs(), worldVIPs())
	apply(t, d.Routes(), balancedRoutes())
	if err := d.Promote(); err != nil {
		t.Fatal(err)
	}
	tr = tracer(t, dir)
	for _, f := range flows {
		if from, _ := send(t, tr, replied(intent.TCP, f.backend, f.client, "A")); from != f.vip {
			t.Errorf("what %s answers comes from %s, not from %s", f.backend, from, f.vip)
		}
		if _, to := send(t, tr, asked(intent.TCP, f.client, f.vip, "A")); to != f.backend {
			t.Errorf("what was balanced to %s goes to %s", f.backend, to)
		}
	}
}

func fillStep(t *testing.T, d *ebpf.Dataplane) {
	t.Helper()
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw]})
	apply(t, d.VTEPs(), map[netip.Addr]intent.VTEP{peer4: {Addr: peer4}})
	apply(t, d.Routes(), stepRoutes())
}

func stepRoutes() map[intent.RouteKey]intent.Route {
	return routes(local(red, "10.10.0.0/24", gw), local(red, "10.10.0.5/32", gw), local(red, "fd00:10::/64", gw), local(red, "fd00:10::5/128", gw),
		remote(red, "10.20.0.0/24", hop(peer4, 5001)), remote(red, "fd00:20::/64", hop(peer4, 5001)))
}

func stepToAnotherLayout(t *testing.T, hook ebpf.Hook, dir string, index int) error {
	cfg := ebpf.Config{Dir: dir, Node: node(), Hook: hook, Bridges: oneBridge(index),
		Limits: ebpf.Limits{VRFs: 16, Gateways: 16, VTEPs: 16, Served: 16, Hosts: 256, Prefixes: 64, NextHops: 64, Groups: 16}}
	d := load(t, cfg)
	fillStep(t, d)
	if err := d.Attach(ebpf.OverlayIn, index); err != nil {
		return err
	}
	for _, name := range []string{"sluice0", "sluice0-ovs"} {
		if out, err := exec.Command("ip", "link", "set", name, "up").CombinedOutput(); err != nil {
			t.Fatalf("set %s up: %v: %s", name, err, out)
		}
	}
	a := newAsker(t, "sluice0-ovs")
	a.more(t)
	if d.Staged() {
		t.Error("a plain start is staged")
	}
	d.Close()
	older, first := age(t, dir), programOf(t, dir)
	// Twice: the first process ends before its maps are filled.
	for range 2 {
		d.Close()
		d = load(t, cfg)
		if !d.Staged() {
			t.Fatal("maps of an older layout are taken for this build's")
		}
		wantList(t, d.Routes(), nil)
		if err := d.Attach(ebpf.OverlayIn, index); err != nil {
			return err
		}
		if ok, err := d.Attached(ebpf.OverlayIn, index); !ok || err != nil {
			t.Errorf("attached: %t, %v", ok, err)
		}
		a.more(t)
		fillStep(t, d)
		if now := programOf(t, dir); now != first {
			t.Errorf("program %d was replaced by %d before the maps were filled", first, now)
		}
	}
	a.more(t)
	if err := errors.Join(d.Promote(), d.Promote()); err != nil {
		return err
	}
	a.more(t)
	wantStepped(t, d, cfg, older, first, index)
	// What forwards now are the new maps: without its route the source is not accepted.
	a.end()
	d.Close()
	d = load(t, cfg)
	wantList(t, d.Routes(), stepRoutes())
	var keys []intent.RouteKey
	for k := range stepRoutes() {
		keys = append(keys, k)
	}
	if errs := d.Routes().Delete(context.Background(), keys); errs != nil {
		t.Fatal(errs)
	}
	redirected, _, _, err := tracer(t, dir).Run(ebpf.TraceRequest{Program: ebpf.OverlayIn, Frame: out4("10.10.0.5", "10.20.0.9"), IfIndex: uint32(lo)}, 1)
	if err != nil || redirected {
		t.Errorf("without routes: redirected %t, %v", redirected, err)
	}
	return nil
}

// wantStepped looks at what the step left.
func wantStepped(t *testing.T, d *ebpf.Dataplane, cfg ebpf.Config, older []string, first kernel.ProgramID, index int) {
	t.Helper()
	if d.Staged() {
		t.Error("still staged")
	}
	for _, path := range older {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if now := programOf(t, cfg.Dir); now == first {
		t.Errorf("program %d still runs", now)
	}
	if ok, err := d.Attached(ebpf.OverlayIn, index); !ok || err != nil {
		t.Errorf("attached: %t, %v", ok, err)
	}
	changes, err := inspect(t, cfg).Changes()
	if err != nil || len(changes) > 0 {
		t.Errorf("the next start would change %+v, %v", changes, err)
	}
}
