package bpf_test

import (
	"encoding/binary"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	kernel "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// resizing is a data plane whose maps of flows get another size.
type resizing struct {
	t     *testing.T
	dir   string
	tr    *ebpf.Tracer
	flows []begunFlow
}

type begunFlow struct{ client, vip, backend netip.AddrPort }

// newResizing has 100 flows, of both families by turns.
func newResizing(t *testing.T) (*resizing, *ebpf.Dataplane) {
	r := &resizing{t: t, dir: bpffs(t)}
	d := balanced(t, r.dir)
	allKnown(t, r.dir)
	r.tr = tracer(t, r.dir)
	for range 100 {
		r.begin()
	}
	return r, d
}

func (r *resizing) begin() {
	f := begunFlow{client: netip.AddrPortFrom(client4, uint16(10000+len(r.flows))), vip: netip.AddrPortFrom(vip4, 80)}
	if len(r.flows)%2 != 0 {
		f.client, f.vip = netip.AddrPortFrom(client6, f.client.Port()), netip.AddrPortFrom(vip6, 80)
	}
	_, f.backend = send(r.t, r.tr, asked(intent.TCP, f.client, f.vip, "S"))
	send(r.t, r.tr, asked(intent.TCP, f.client, f.vip, "A"))
	r.flows = append(r.flows, f)
}

func (r *resizing) answered(f begunFlow) bool {
	from, _ := send(r.t, r.tr, replied(intent.TCP, f.backend, f.client, "A"))
	return from == f.vip
}

// goOn wants all flows at their backends, where the tables alone would lead elsewhere.
func (r *resizing) goOn(d *ebpf.Dataplane) {
	r.t.Helper()
	r.tr = tracer(r.t, r.dir)
	elsewhere(r.t, d)
	for i, f := range r.flows {
		if !r.answered(f) {
			r.t.Errorf("flow %d of %d is not answered from its VIP", i, len(r.flows))
		}
		if _, to := send(r.t, r.tr, asked(intent.TCP, f.client, f.vip, "A")); to != f.backend {
			r.t.Errorf("flow %d of %d goes to %s and went to %s", i, len(r.flows), to, f.backend)
		}
	}
}

// fill adds many rows of other clients, so that it takes time to copy them.
func (r *resizing) fill() {
	r.t.Helper()
	m := raw(r.t, r.dir, "sessions_v1")
	for key, row := range rowsOf(r.t, m) {
		for i := range uint32(50000) {
			other := []byte(key)
			binary.BigEndian.PutUint32(other[12:], 0x0b000000+i) // the end of the client's address
			if err := m.Put(other, row); err != nil {
				r.t.Fatal(err)
			}
		}
		return
	}
}

// resizedLimits differ from the default ones: a Load that changes no map has nothing to verify.
var resizedLimits = ebpf.Limits{Flows: 1 << 18}

// isResized fails unless the maps of flows have the size of resizedLimits.
func isResized(t *testing.T, dir string) {
	t.Helper()
	if size := raw(t, dir, "sessions_v1").MaxEntries(); size != resizedLimits.Flows/2 {
		t.Fatalf("sessions_v1 has %d rows, want %d", size, resizedLimits.Flows/2)
	}
}

// Flows go on when their map gets another size, also those that begin while that goes on:
// programs for it take seconds to load. All that are answered meanwhile are answered by
// their VIP, but for those that begin in the moment in which programs are replaced.
func TestResizeKeepsFlows(t *testing.T) {
	r, d := newResizing(t)
	r.fill()
	d.Close()
	done := make(chan *ebpf.Dataplane)
	go func() {
		d, err := ebpf.Load(ebpf.Config{Dir: r.dir, Node: node(), Limits: resizedLimits, Bridges: bridges{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
		}
		done <- d
	}()
	runs := pinnedPrograms(t, r.dir)
	lost := map[int]bool{}
	for loading := true; loading; {
		select {
		case d = <-done:
			loading = false
			continue
		case <-time.After(5 * time.Millisecond):
		}
		// What is attached is what is pinned, as far as packets of a test go.
		if is := pinnedPrograms(t, r.dir); !slices.Equal(is, runs) {
			runs = is
			r.tr = tracer(t, r.dir)
		}
		r.begin()
		for i := max(0, len(r.flows)-200); i < len(r.flows); i += 9 {
			if !r.answered(r.flows[i]) {
				lost[i] = true
			}
		}
	}
	if d == nil {
		return
	}
	t.Cleanup(func() { d.Close() })
	isResized(t, r.dir)
	r.goOn(d)
	during := len(r.flows) - 100
	t.Logf("%d flows began meanwhile, %d were answered by their backends themselves", during, len(lost))
	if during == 0 {
		t.Error("no flow began meanwhile")
	}
	if len(lost) > during/10 {
		t.Errorf("%d of %d flows were answered by their backends themselves", len(lost), during)
	}
}

// pinnedPrograms are the kernel's numbers of the programs.
func pinnedPrograms(t *testing.T, dir string) []kernel.ProgramID {
	t.Helper()
	var ids []kernel.ProgramID
	for _, p := range ebpf.Programs() {
		prog, err := pinned.Open(dir, p.String())
		if err != nil {
			t.Fatal(err)
		}
		info, err := prog.Info()
		prog.Close()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := info.ID()
		ids = append(ids, id)
	}
	return ids
}

// A process that is killed while it changes the size of maps leaves programs by the old ones,
// or by both. Flows that begin then are known to the next one.
func TestResizeKilled(t *testing.T) {
	for _, c := range []struct {
		what string
		old  []ebpf.Program // those that had not been replaced
		next ebpf.Limits
	}{
		{"before programs were replaced", ebpf.Programs(), resizedLimits},
		{"after one was replaced", []ebpf.Program{ebpf.FabricIn}, resizedLimits},
		{"and the size is changed back", []ebpf.Program{ebpf.FabricIn}, ebpf.Limits{}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, d := newResizing(t)
			var old []*pinned.Program
			for _, p := range c.old {
				prog, err := pinned.Open(r.dir, p.String())
				if err != nil {
					t.Fatal(err)
				}
				defer prog.Close()
				old = append(old, prog)
			}
			d.Close()
			d = load(t, ebpf.Config{Dir: r.dir, Node: node(), Limits: resizedLimits})
			isResized(t, r.dir)
			d.Close()
			for i, p := range c.old {
				if err := old[i].PinAs(r.dir, p.String()); err != nil {
					t.Fatal(err)
				}
			}
			r.tr = tracer(t, r.dir)
			for range 50 {
				r.begin()
			}
			r.goOn(load(t, ebpf.Config{Dir: r.dir, Node: node(), Limits: c.next}))
		})
	}
}
