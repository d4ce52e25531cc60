package loadbalancer_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// router is that of the backends, where load balancers hang.
const router = "red-router"

// world is a lab whose chassis run sluiced, with the backends' servers.
type world struct {
	*testing.T
	*lab.Lab
}

var (
	once  sync.Once
	ready bool
)

func shared(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Lab: plain.Lab(t)}
	once.Do(func() {
		for _, n := range []string{"a1", "a2", "a3", "b1"} {
			w.sluiced(n, w.configuration())
		}
		for i := 1; i <= lab.Backends; i++ {
			w.serve(fmt.Sprintf("be%d", i))
		}
		ready = true
	})
	if !ready {
		t.Fatal("the shared lab did not come up")
	}
	// An ovs-vswitchd 3.1 with the userspace datapath may end by what its conntrack has of
	// connections that OVN balanced and that are over: see docs/load-balancing.md. The
	// kernel's has no such fault, nor can it be flushed without another module.
	if !plainParams.KernelDatapath {
		for _, n := range []string{"a1", "a2", "a3", "b1"} {
			if _, err := w.Exec(w.Context(), n, "ovs-appctl", "dpctl/flush-conntrack"); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			w.report()
		}
	})
	return w
}

func (w *world) report() {
	labtest.Report(w.T, w.Lab)
	for _, n := range []string{"a1", "a2", "a3", "b1"} {
		for _, words := range []string{"status", "drops", "route list", "lb list"} {
			out, err := w.Exec(context.Background(), n, append([]string{w.sluicectl()}, strings.Fields(words)...)...)
			w.Logf("%s: %s: %v\n%s", n, words, err, out)
		}
	}
}

func (w *world) node(name string) lab.Node {
	w.Helper()
	n, err := w.Node(name)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) nb(args ...string) string {
	w.Helper()
	out, err := w.NB(w.Context(), "a", args...)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// add makes load balancers of the router, each of one VIP, and takes them away in the end.
func (w *world) add(protocol string, vips map[string][]string) {
	w.Helper()
	for vip, backends := range vips {
		name := "lb " + protocol + " " + vip
		w.nb("lb-add", name, vip, strings.Join(backends, ","), protocol)
		w.nb("lr-lb-add", router, name)
		w.forget(name)
	}
}

// forget takes a load balancer away in the end.
func (w *world) forget(name string) {
	w.Cleanup(func() {
		if _, err := w.NB(context.Background(), "a", "--if-exists", "lb-del", name); err != nil {
			w.Error(err)
		}
	})
}

// eventually waits for a state and prints how long it took.
func (w *world) eventually(what string, cond func() error) {
	w.Helper()
	start := time.Now()
	labtest.Eventually(w.T, w.Lab, what, cond)
	w.Logf("%s: after %d ms", what, time.Since(start).Milliseconds())
}

// vips are what a node says of its VIPs.
func (w *world) vips(node string) ([]status.VIP, error) {
	out, err := w.Exec(w.Context(), node, w.sluicectl(), "lb", "list", "-o", "json")
	var list []status.VIP
	return list, errors.Join(err, json.Unmarshal([]byte(out), &list))
}

// known counts the flows to a VIP that a node's programs know: OVN balances, too, and what
// it did says nothing of Sluice.
func (w *world) known(node string, vip netip.Addr) int {
	w.Helper()
	return w.knownIn(w.node(node).BPFFS, vip)
}

func (w *world) knownIn(pins string, vip netip.Addr) (n int) {
	w.Helper()
	// Where rows have the VIP: struct session; struct flow_key, whose second address is the destination.
	for name, in := range map[string]func(key, value []byte) []byte{
		"sessions_v1": func(_, value []byte) []byte { return value[8:24] }, "flows_v4": func(key, _ []byte) []byte { return key[16:32] },
	} {
		m, err := ebpf.LoadPinnedMap(filepath.Join(pins, name), &ebpf.LoadPinOptions{ReadOnly: true})
		if errors.Is(err, fs.ErrNotExist) {
			return 0 // sluiced has just started
		}
		if err != nil {
			w.Fatal(err)
		}
		defer m.Close()
		want, key, value := vip.As16(), []byte(nil), []byte(nil)
		it := m.Iterate()
		for it.Next(&key, &value) {
			if bytes.Equal(in(key, value), want[:]) {
				n++
			}
		}
		if err := it.Err(); err != nil {
			w.Fatal(err)
		}
	}
	return n
}

func (w *world) sluicectl() string { return filepath.Join(bin, "sluicectl") }

// serve starts a backend's server.
func (w *world) serve(vm string) {
	w.Helper()
	if _, err := w.StartBackend(w.Context(), vm, filepath.Join(bin, "sluice-lab")); err != nil {
		w.Fatal(err)
	}
}

// stop kills a backend's server.
func (w *world) stop(vm string) {
	w.Helper()
	p, err := w.Process(vm, "backend")
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		w.Fatal(err)
	}
}

// configuration is that of a node's sluiced, with more.
func (w *world) configuration(more ...string) string {
	w.Helper()
	return fmt.Sprintf(lab.Config, w.node("rr").VTEP4) + lab.BalancingConfig + strings.Join(more, "")
}

// sluiced starts sluiced on a node, in a cleanup, too.
func (w *world) sluiced(node, text string) {
	w.Helper()
	if _, err := w.StartSluiced(context.WithoutCancel(w.Context()), node, lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}); err != nil {
		w.Fatal(err)
	}
}

// streams are connections over which a backend sends its name again and again.
type streams struct {
	w     *world
	files []*stream
	// what they are, for messages.
	what string
}

type stream struct {
	port  uint16 // of the client, 0 if that was not chosen
	mu    sync.Mutex
	lines []string
	err   error
}

func (s *stream) read() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines, s.err
}

// lineEvery is how often: on a machine that is slower than others 200 such connections would
// take what OVN needs to say in time that a gateway or a backend is alive.
func lineEvery() time.Duration { return lab.Patience() / 600 }

// atOnce is how many connections begin at a time: Open vSwitch of an emulated machine takes
// seconds to set up the flows of more.
const atOnce = 10

// streams opens connections, and waits for the first line of each.
func (w *world) streams(client string, to netip.Addr, n int, curl ...string) *streams {
	w.Helper()
	out := &streams{w: w, what: fmt.Sprintf("%s to %s", client, to)}
	for i := range n {
		if i > 0 && i%atOnce == 0 {
			out.begun(i - atOnce)
		}
		s := &stream{}
		argv := append([]string{"curl", "-gsSN"}, curl...)
		port := "any"
		if len(curl) == 0 { // else it may try again, which takes another port each time
			s.port = uint16(lab.NewPorts(1))
			port = strconv.Itoa(int(s.port))
			argv = append(argv, "--local-port", port)
		}
		cmd, err := w.Command(w.Context(), client, append(argv, "http://"+intent.FormatEndpoint(to, vipHTTP)+"/stream?every="+lineEvery().String())...)
		if err != nil {
			w.Fatal(err)
		}
		var said bytes.Buffer
		cmd.Stderr = &said
		pipe, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = cmd.Process.Kill() })
		go func() {
			for scan := bufio.NewScanner(pipe); scan.Scan(); {
				s.mu.Lock()
				s.lines = append(s.lines, scan.Text())
				s.mu.Unlock()
			}
			err := cmd.Wait()
			s.mu.Lock()
			s.err = fmt.Errorf("the connection from port %s has ended at %s, after %d lines: %v: %s", port, time.Now().Format(time.TimeOnly), len(s.lines), err, bytes.TrimSpace(said.Bytes()))
			s.mu.Unlock()
		}()
		out.files = append(out.files, s)
	}
	out.check()
	return out
}

// begun waits for the first line of the connections from one on.
func (s *streams) begun(from int) {
	s.w.Helper()
	for i, one := range s.files[from:] {
		labtest.Eventually(s.w.T, s.w.Lab, fmt.Sprintf("a line on connection %d of %s", from+i, s.what), func() error {
			if lines, err := one.read(); len(lines) == 0 && err == nil {
				return errors.New("none")
			}
			return nil
		})
	}
}

// check demands that each connection gets another line, of the same backend as ever; those
// to the backends of dead may have ended.
func (s *streams) check(dead ...string) {
	s.w.Helper()
	type state struct {
		lines []string
		err   error
	}
	before := make([]state, len(s.files))
	for i, one := range s.files {
		before[i].lines, before[i].err = one.read()
	}
	for i, one := range s.files {
		was, first := before[i], before[i].lines[:min(1, len(before[i].lines))]
		if len(first) > 0 && slices.Contains(dead, first[0]) {
			continue
		}
		if was.err != nil {
			s.w.Errorf("connection %d of %s, with %v: %v", i, s.what, first, was.err)
			continue
		}
		labtest.Eventually(s.w.T, s.w.Lab, fmt.Sprintf("a line on connection %d of %s, after %d of %v", i, s.what, len(was.lines), first), func() error {
			lines, err := one.read()
			if len(lines) <= len(was.lines)+1 && err == nil {
				return errors.New("none")
			}
			return nil
		})
		lines, err := one.read()
		if err != nil || len(slices.Compact(slices.Clone(lines))) != 1 {
			s.w.Errorf("connection %d of %s had answers of %v (%v)", i, s.what, slices.Compact(slices.Clone(lines)), err)
		}
	}
}
