package metadata_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/ovn-sluice/sluice/test/lab"
)

// The tap's program answers ARP and neighbour solicitations for the metadata addresses
// with the MAC address of the metadata port, and echo requests are answered.
func TestAnswersToNeighbours(t *testing.T) {
	w := shared(t)
	for _, vm := range steered {
		w.answersItself(vm)
	}
}

func (w *world) answersItself(vm string) {
	w.Helper()
	_, mac := w.network(w.vm(vm).Tenant).MetadataPort()
	// As a guest that takes 169.254.0.0/16 for its own link.
	w.sh(vm, "ip route replace 169.254.169.254 dev eth0; ip neigh flush dev eth0")
	for _, addr := range []string{at4.String(), at6.String()} {
		// In a loop of its own: a neighbour is asked for a few times only.
		w.eventually(vm+" is answered for "+addr, func() error {
			_, err := w.Exec(w.Context(), vm, "ping", "-n", "-c3", "-i0.2", "-W2", "-I", "eth0", addr)
			return err
		})
		if got := w.exec(vm, "ip", "neigh", "show", addr, "dev", "eth0"); !strings.Contains(got, mac) {
			w.Errorf("%s: the neighbour %s is %q, want %s", vm, addr, got, mac)
		}
	}
	w.ownData(vm)
	w.sh(vm, "ip route replace 169.254.169.254 via "+w.network(w.vm(vm).Tenant).MetadataAddrs()[0].Addr().String())
	w.ownData(vm)
}

// Programs of others on the tap, before Sluice's and behind it, go on seeing what they
// saw, but what is steered does not come to those behind.
func TestOthersOnTheTap(t *testing.T) {
	w := shared(t)
	tap := lab.TapName("m-red1")
	before, behind := counter(t), counter(t)
	for c, anchor := range map[*counting]link.Anchor{before: link.Head(), behind: link.Tail()} {
		in(t, w.Lab, "m1", func() error {
			l, err := net.InterfaceByName(tap)
			if err != nil {
				return err
			}
			attached, err := link.AttachTCX(link.TCXOptions{Interface: l.Index, Program: c.program, Attach: ebpf.AttachTCXIngress, Anchor: anchor})
			if err == nil {
				t.Cleanup(func() { attached.Close() })
			}
			return err
		})
	}
	if got := w.programs("m1", tap); len(got) != 3 || !slices.Contains(got, "tap_in") {
		t.Errorf("programs on %s: %q", tap, got)
	}
	w.ownData("m-red1")
	seen, passed := before.count(t), behind.count(t)
	if seen == 0 || passed >= seen {
		t.Errorf("the program before has seen %d frames, the one behind %d", seen, passed)
	}
	w.exec("m-red1", "ping", "-n", "-c5", "-i0.1", "-W5", "10.30.0.1")
	if got := behind.count(t); got < passed+5 {
		t.Errorf("the program behind has seen %d frames after five pings, %d before", got, passed)
	}
	// They stay where they are when sluiced comes again.
	restart("m1", "sluiced")(w)
	w.ownData("m-red1")
	if got := w.programs("m1", tap); len(got) != 3 {
		t.Errorf("programs on %s: %q", tap, got)
	}
}

// counting is a program that counts frames and lets others have them.
type counting struct {
	program *ebpf.Program
	counts  *ebpf.Map
}

func counter(t *testing.T) *counting {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	const next = -1 // TCX_NEXT
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Name: "counter", License: "MIT", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "end"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, next).WithSymbol("end"),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return &counting{p, m}
}

func (c *counting) count(t *testing.T) uint64 {
	t.Helper()
	var n uint64
	if err := c.counts.Lookup(uint32(0), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// programs are the names of the tcx programs on the way in of a device, in order.
func (w *world) programs(node, device string) []string {
	w.Helper()
	var out []string
	in(w.T, w.Lab, node, func() error {
		l, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		attached, err := link.QueryPrograms(link.QueryOptions{Target: l.Index, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return fmt.Errorf("programs on %s: %w", device, err)
		}
		for _, one := range attached.Programs {
			name, err := programName(one.ID)
			if err != nil {
				return err
			}
			out = append(out, name)
		}
		return nil
	})
	return out
}

func programName(id ebpf.ProgramID) (string, error) {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return "", err
	}
	info, err := p.Info()
	if err := errors.Join(err, p.Close()); err != nil {
		return "", err
	}
	return info.Name, nil
}
