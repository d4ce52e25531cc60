package bpf_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	kernel "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// overlay_in leaves what may be a backend's answer to overlay_answer. These tests are about the two as
// one: loaded, replaced, found after a crash, and removed together.

// loadAlone loads programs that no other test has open: the kernel empties an array of programs that
// is neither pinned nor open.
func loadAlone(t *testing.T, dir string, n ebpf.Node) *ebpf.Dataplane {
	t.Helper()
	d := opened(t, ebpf.Config{Dir: dir, Node: n})
	if err := d.Replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// otherNode writes other MAC addresses in overlay_answer, and asks for another one in overlay_in.
func otherNode() ebpf.Node {
	n := node()
	n.RouterMAC, n.NextHopMAC = mac("02:00:00:00:00:11"), mac("02:00:00:00:00:12")
	return n
}

// array is the one pin of what overlay_in calls.
func array(t *testing.T, dir string) string {
	t.Helper()
	pins, err := filepath.Glob(filepath.Join(dir, "page_overlay_in_*"))
	if err != nil || len(pins) != 1 {
		t.Fatalf("pins of what overlay_in calls: %v, %v; want one", pins, err)
	}
	return pins[0]
}

// dialogue is a connection of a client to a VIP.
type dialogue struct{ client, vip, backend netip.AddrPort }

// dialogues are one of each family, and each has an answer.
func dialogues(t *testing.T, dir string) (list []dialogue) {
	t.Helper()
	tr := tracer(t, dir)
	for _, c := range kindsOfFlows[:2] {
		e := dialogue{client: netip.AddrPortFrom(c.client, clientPort), vip: c.vip}
		_, e.backend = send(t, tr, asked(c.protocol, e.client, e.vip, "S"))
		list = append(list, e)
	}
	return list
}

func (e dialogue) answer(n ebpf.Node) ebpf.TraceRequest {
	return fromOVN(flowPacket(intent.TCP, e.backend, e.client, "A", ether(gwMAC, n.NextHopMAC, 0)))
}

// answeredBy wants the answers of connections to come from their VIPs, by the programs of a node.
func answeredBy(t *testing.T, when string, tr *ebpf.Tracer, n ebpf.Node, list []dialogue) {
	t.Helper()
	for _, e := range list {
		res, err := tr.Trace(t.Context(), e.answer(n))
		if err != nil {
			t.Fatal(err)
		}
		if !res.Redirected {
			t.Errorf("%s: an answer to %s is not sent:\n%s", when, e.client, res)
			continue
		}
		out := decode(res.Frame)
		if from, to := ends(t, out); from != e.vip || to != e.client {
			t.Errorf("%s: an answer is from %s to %s, want from %s to %s", when, from, to, e.vip, e.client)
		}
		if is := intent.MAC(out.LinkLayer().LinkFlow().Src().Raw()); is != n.RouterMAC {
			t.Errorf("%s: an answer is from %s, want from %s", when, is, n.RouterMAC)
		}
	}
}

// withoutCalled waits until overlay_in has nothing to call: answers are dropped, and not sent as they are.
func withoutCalled(t *testing.T, tr *ebpf.Tracer, n ebpf.Node, list []dialogue) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // the kernel empties the array some time later
		var res ebpf.TraceResult
		for _, e := range list {
			var err error
			if res, err = tr.Trace(t.Context(), e.answer(n)); err != nil {
				t.Fatal(err)
			}
			if from, _ := ends(t, decode(res.Frame)); res.Redirected && from != e.vip {
				t.Fatalf("an answer is from %s:\n%s", from, res)
			}
		}
		if res.Dropped() == drop.NAT {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("what is to be dropped for %s:\n%s", drop.NAT, res)
		}
	}
}

// A packet that has begun in overlay_in of one load ends in overlay_answer of the same load, also when both
// have been replaced meanwhile.
func TestCalledProgramIsOfTheSameLoad(t *testing.T) {
	dir := bpffs(t)
	d := loadAlone(t, dir, node())
	fillWorld(t, d)
	fillBalanced(t, d)
	list, before, was := dialogues(t, dir), tracer(t, dir), array(t, dir)
	answeredBy(t, "loaded", before, node(), list)
	run, err := kernel.LoadPinnedMap(was, nil) // as the kernel keeps it for runs that have begun
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := d.SetNode(otherNode()); err != nil {
		t.Fatal(err)
	}
	answeredBy(t, "a run that began before", before, node(), list)
	answeredBy(t, "replaced", tracer(t, dir), otherNode(), list)
	if array(t, dir) == was {
		t.Errorf("%s is that of the programs before", was)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	withoutCalled(t, before, node(), list)
	answeredBy(t, "later", tracer(t, dir), otherNode(), list)
}

// Answers go on without a process. Where a pin of overlay_answer was removed meanwhile they are dropped, and
// a start loads both programs anew; a process that runs pins it again.
func TestCalledProgramOutlivesTheProcess(t *testing.T) {
	dir := bpffs(t)
	d := loadAlone(t, dir, node())
	fillWorld(t, d)
	fillBalanced(t, d)
	list := dialogues(t, dir)
	for _, pin := range []string{array(t, dir), filepath.Join(dir, "prog_overlay_in_called")} {
		if err := errors.Join(os.Remove(pin), d.KeepPins()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(pin); err != nil {
			t.Errorf("a process that runs: %v", err)
		}
	}
	d.Close()
	answeredBy(t, "without a process", tracer(t, dir), node(), list)
	if got := summary(t, inspect(t, ebpf.Config{Dir: dir, Node: node()})); got != "" {
		t.Errorf("a start would %s", got)
	}
	for _, pin := range []string{array(t, dir), filepath.Join(dir, "prog_overlay_in_called")} {
		if err := os.Remove(pin); err != nil {
			t.Fatal(err)
		}
		if pin == filepath.Join(dir, "prog_overlay_in_called") {
			answeredBy(t, "without the pin that starts compare", tracer(t, dir), node(), list)
		} else {
			withoutCalled(t, tracer(t, dir), node(), list)
		}
		if got := summary(t, inspect(t, ebpf.Config{Dir: dir, Node: node()})); got != "change program overlay_in" {
			t.Errorf("without %s a start would %q", filepath.Base(pin), got)
		}
		loadAlone(t, dir, node()).Close()
		answeredBy(t, "started again", tracer(t, dir), node(), list)
		array(t, dir)
	}
	if err := ebpf.Remove(dir, ebpf.Fabric); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a cleanup: %v", err)
	}
}

// A process that is killed while it replaces the programs leaves pins of both loads. The next start, of
// either load, ends with one, and nothing of the other is left.
func TestCalledProgramAfterACrash(t *testing.T) {
	dir := bpffs(t)
	d := loadAlone(t, dir, node())
	fillWorld(t, d)
	fillBalanced(t, d)
	list := dialogues(t, dir)
	d.Close()
	for _, c := range []struct {
		name string
		old  []string // pins of the load before, besides that of its array
		next ebpf.Node
	}{
		{"devices have the new programs, the build before starts", []string{"prog_overlay_in", "prog_overlay_in_called", "const_overlay_in"}, node()},
		{"devices have the new programs", []string{"prog_overlay_in", "prog_overlay_in_called", "const_overlay_in"}, otherNode()},
		{"all is pinned but the caller", []string{"prog_overlay_in"}, otherNode()},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := loadAlone(t, dir, node())
			pin := array(t, dir)
			old := map[string]pinnable{pin: raw(t, dir, filepath.Base(pin))}
			for _, name := range c.old {
				old[filepath.Join(dir, name)] = openPin(t, filepath.Join(dir, name))
			}
			if err := d.SetNode(otherNode()); err != nil {
				t.Fatal(err)
			}
			d.Close()
			for path, object := range old {
				if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				if err := object.Pin(path); err != nil {
					t.Fatal(err)
				}
			}
			loadAlone(t, dir, c.next)
			answeredBy(t, "after a crash", tracer(t, dir), c.next, list)
			array(t, dir)
			if got := summary(t, inspect(t, ebpf.Config{Dir: dir, Node: c.next})); got != "" {
				t.Errorf("another start would %s", got)
			}
		})
	}
}

type pinnable interface{ Pin(string) error }

// openPin opens a program or its constants, as a descriptor that has no path yet.
func openPin(t *testing.T, path string) pinnable {
	t.Helper()
	if isConstants(filepath.Base(path)) {
		m, err := kernel.LoadPinnedMap(path, &kernel.LoadPinOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	p, err := kernel.LoadPinnedProgram(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Answers go on while programs are replaced: each one comes from its VIP, and none is lost.
func TestAnswersWhileProgramsAreReplaced(t *testing.T) {
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			m := newMachine(t, hook)
			m.start(1500)
			fillBalanced(t, m.d)
			list := []dialogue{}
			for _, c := range kindsOfFlows[:4] {
				e := dialogue{client: netip.AddrPortFrom(c.client, clientPort), vip: c.vip}
				m.send(peer4, local4, flowPacket(c.protocol, e.client, e.vip, "S", ether(peerMAC, routerMAC, 0)))
				_, e.backend = ends(t, decode(m.atOVS()))
				list = append(list, e)
			}
			done := make(chan error, 1)
			go func() {
				done <- m.node.Do(func() error {
					for _, mtu := range []uint16{1490, 1500} {
						n := m.d.Node()
						n.UnderlayMTU = mtu
						if err := m.d.SetNode(n); err != nil {
							return err
						}
					}
					return nil
				})
			}()
			for sent := 0; ; sent += len(list) {
				for i, e := range list {
					m.ovsFrame(flowPacket(kindsOfFlows[i].protocol, e.backend, e.client, "A", ether(gwMAC, nextHopMAC, 0)))
					if from, to := ends(t, decode(m.inTunnel(peer4, 5001))); from != e.vip || to != e.client {
						t.Fatalf("an answer is from %s to %s, want from %s to %s", from, to, e.vip, e.client)
					}
				}
				select {
				case err := <-done:
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("%d answers", sent)
					return
				default:
				}
			}
		})
	}
}
