package ebpf

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TraceRequest is a packet for one of the live programs.
type TraceRequest struct {
	Program Program
	// Frame is an Ethernet frame: for FabricIn the inner one.
	Frame []byte
	// VTEP and VNI are the tunnel key that the frame came with, for FabricIn.
	VTEP netip.Addr
	VNI  intent.VNI
	// IfIndex and VLAN are where the frame came in, for OverlayIn; IfIndex for
	// UnderlayIn too, whose frames have the device's own MAC address, and both for a
	// VM's tap.
	IfIndex uint32
	VLAN    uint16
	// GSOSize is the segment size of a frame that stands for many, else 0.
	GSOSize uint32
}

// Step is one decision of a program.
type Step struct {
	What  StepKind
	Value uint32
	Addr  netip.Addr
}

// StepKind says what a step's value and address mean; see enum trace_what.
type StepKind uint32

// The kinds of step.
const (
	StepVTEP     = StepKind(bpfTraceWhatSTEP_VTEP)
	StepVRF      = StepKind(bpfTraceWhatSTEP_VRF)
	StepGateway  = StepKind(bpfTraceWhatSTEP_GATEWAY)
	StepSource   = StepKind(bpfTraceWhatSTEP_SOURCE)
	StepHost     = StepKind(bpfTraceWhatSTEP_HOST)
	StepPrefix   = StepKind(bpfTraceWhatSTEP_PREFIX)
	StepEntry    = StepKind(bpfTraceWhatSTEP_ENTRY)
	StepSlot     = StepKind(bpfTraceWhatSTEP_SLOT)
	StepNextHop  = StepKind(bpfTraceWhatSTEP_NEXTHOP)
	StepARP      = StepKind(bpfTraceWhatSTEP_ARP)
	StepND       = StepKind(bpfTraceWhatSTEP_ND)
	StepICMP     = StepKind(bpfTraceWhatSTEP_ICMP)
	StepNoICMP   = StepKind(bpfTraceWhatSTEP_NO_ICMP)
	StepFragment = StepKind(bpfTraceWhatSTEP_FRAGMENT)
	StepRedirect = StepKind(bpfTraceWhatSTEP_REDIRECT)
	StepDrop     = StepKind(bpfTraceWhatSTEP_DROP)
	StepKernel   = StepKind(bpfTraceWhatSTEP_KERNEL)
	StepPass     = StepKind(bpfTraceWhatSTEP_PASS)
	StepFIB      = StepKind(bpfTraceWhatSTEP_FIB)
	StepVIP      = StepKind(bpfTraceWhatSTEP_VIP)
	StepMaglev   = StepKind(bpfTraceWhatSTEP_MEMBER)
	StepSession  = StepKind(bpfTraceWhatSTEP_FLOW)
	StepBackend  = StepKind(bpfTraceWhatSTEP_BACKEND)
	StepAnswer   = StepKind(bpfTraceWhatSTEP_ANSWER)
	StepEcho     = StepKind(bpfTraceWhatSTEP_ECHO)
	StepQuoted   = StepKind(bpfTraceWhatSTEP_QUOTED)
	StepKept     = StepKind(bpfTraceWhatSTEP_KEPT)
	StepLeft     = StepKind(bpfTraceWhatSTEP_LEFT)
)

var stepNames = map[StepKind]string{
	StepVTEP: "vtep", StepVRF: "vrf", StepGateway: "gateway", StepSource: "source", StepHost: "host", StepPrefix: "prefix",
	StepEntry: "entry", StepSlot: "slot", StepNextHop: "next-hop", StepARP: "arp", StepND: "nd", StepICMP: "icmp",
	StepNoICMP: "no-icmp", StepFragment: "fragment", StepRedirect: "redirect", StepDrop: "drop", StepKernel: "kernel",
	StepPass: "pass", StepFIB: "host-route", StepVIP: "vip", StepMaglev: "maglev-slot", StepSession: "session", StepBackend: "backend", StepAnswer: "answer",
	StepEcho: "echo", StepQuoted: "quoted", StepKept: "kept", StepLeft: "left",
}

func (k StepKind) String() string {
	if n, ok := stepNames[k]; ok {
		return n
	}
	return fmt.Sprintf("step(%d)", uint32(k))
}

// MarshalText writes the kind's name.
func (k StepKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

var kindNames = map[bpfRouteKind]string{
	bpfRouteKindROUTE_LOCAL: "local", bpfRouteKindROUTE_REMOTE: "remote",
	bpfRouteKindROUTE_GROUP: "remote, several next hops", bpfRouteKindROUTE_BLOCK: "block",
	bpfRouteKindROUTE_VIP: "local, with VIPs",
}

var refusalNames = map[bpfIcmpRefusal]string{
	bpfIcmpRefusalREFUSED_IS_ERROR:     "the packet is an ICMP error itself",
	bpfIcmpRefusalREFUSED_FRAGMENT:     "the packet is a later fragment",
	bpfIcmpRefusalREFUSED_NO_SOURCE:    "there is no address to send it from",
	bpfIcmpRefusalREFUSED_BOGUS_SOURCE: "the packet's source is not reached through the fabric",
	bpfIcmpRefusalREFUSED_RATE:         "the rate limit is reached",
	bpfIcmpRefusalREFUSED_KERNEL:       "the kernel refused to change the packet",
}

// String is the step in words.
func (s Step) String() string {
	switch s.What {
	case StepVTEP:
		return fmt.Sprintf("outer source %s is a known VTEP", s.Addr)
	case StepVRF:
		return "VRF " + intent.VNI(s.Value).String()
	case StepGateway:
		return fmt.Sprintf("from gateway entry %d", s.Value)
	case StepSource:
		return fmt.Sprintf("source %s is exposed through it", s.Addr)
	case StepHost:
		return fmt.Sprintf("host route for %s: %s", s.Addr, kindNames[bpfRouteKind(s.Value)])
	case StepPrefix:
		return fmt.Sprintf("longest prefix for %s: %s", s.Addr, kindNames[bpfRouteKind(s.Value)])
	case StepEntry:
		return fmt.Sprintf("into gateway entry %d", s.Value)
	case StepSlot:
		return fmt.Sprintf("slot %d of the next-hop group", s.Value)
	case StepNextHop:
		return fmt.Sprintf("to VTEP %s with VNI %d", s.Addr, s.Value)
	case StepARP:
		return fmt.Sprintf("ARP answered for %s", s.Addr)
	case StepND:
		return fmt.Sprintf("neighbour solicitation answered for %s", s.Addr)
	case StepICMP:
		return fmt.Sprintf("ICMP error type %d code %d to %s", s.Value>>8, s.Value&0xff, s.Addr)
	case StepNoICMP:
		return "no ICMP error: " + refusalNames[bpfIcmpRefusal(s.Value)]
	case StepFragment:
		return fmt.Sprintf("%d bytes do not fit and may be fragmented: outer DF is cleared", s.Value)
	case StepRedirect:
		return fmt.Sprintf("out of device %d", s.Value)
	case StepDrop:
		return fmt.Sprintf("dropped: %s", drop.Reason(s.Value))
	case StepKernel:
		return fmt.Sprintf("the VRF is on the kernel path: handed to device %d", s.Value)
	case StepPass:
		return "not for an exposed address: on to the host, unchanged"
	case StepVIP:
		return fmt.Sprintf("%s is a VIP, Maglev table %d", s.Addr, s.Value)
	case StepMaglev:
		return fmt.Sprintf("slot %d of the Maglev table", s.Value)
	case StepSession:
		return map[bool]string{true: "of a direct connection with a backend", false: "of a session"}[s.Value == uint32(bpfFlowKindFLOW_DIRECT)] + ": conntrack hit"
	case StepBackend:
		return "to backend " + intent.FormatEndpoint(s.Addr, uint16(s.Value))
	case StepAnswer:
		return "a backend's answer, from VIP " + intent.FormatEndpoint(s.Addr, uint16(s.Value))
	case StepEcho:
		return fmt.Sprintf("an echo request to VIP %s, which is answered", s.Addr)
	case StepQuoted:
		return fmt.Sprintf("an ICMP error about a session; the packet that it quotes is now one of %s", intent.FormatEndpoint(s.Addr, uint16(s.Value)))
	case StepKept:
		return "the client keeps its backend (affinity)"
	case StepLeft:
		return "OVN balances the session"
	case StepFIB:
		return fmt.Sprintf("by the host's routes to neighbour %s on device %d", s.Addr, s.Value)
	}
	return fmt.Sprintf("%s %d %s", s.What, s.Value, s.Addr)
}

// TraceResult is what the program did.
type TraceResult struct {
	// Redirected tells that a packet went out: the packet itself, or the answer to it.
	Redirected bool
	// Passed tells that the packet goes on: to the host, to Open vSwitch or to the VM.
	Passed bool
	Steps  []Step
	// Frame is the packet after the program, without VLAN tag and tunnel header.
	Frame []byte
}

// Dropped is the drop reason, 0 if the packet was not dropped.
func (r TraceResult) Dropped() drop.Reason {
	for _, s := range r.Steps {
		if s.What == StepDrop {
			return drop.Reason(s.Value)
		}
	}
	return 0
}

func (r TraceResult) String() string {
	var b strings.Builder
	for _, s := range r.Steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// Tracer runs the live programs on packets of its own making. In trace mode they
// write nothing but the scratch map.
type Tracer struct {
	dir     string
	wrapper *ebpf.Program
	slots   *ebpf.Map
	scratch *ebpf.Map
	live    map[Program]*ebpf.Program
}

// OpenTracer opens the pinned programs of a plane's directory. The daemon need not run.
func OpenTracer(dir string, plane Plane) (*Tracer, error) {
	t := &Tracer{dir: dir}
	if err := t.open(plane.traced()); err != nil {
		t.Close()
		return nil, fmt.Errorf("open the programs in %s: %w", dir, err)
	}
	return t, nil
}

func (t *Tracer) open(programs []Program) (err error) {
	t.scratch, err = ebpf.LoadPinnedMap(filepath.Join(t.dir, bpfMapTraceV1), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotLoaded
	}
	if err != nil {
		return fmt.Errorf("scratch map: %w", err)
	}
	spec, err := loadWrapper()
	if err != nil {
		return err
	}
	for name := range spec.Maps {
		if _, _, versioned := pinned.SplitVersion(name); versioned && name != bpfMapTraceV1 {
			delete(spec.Maps, name)
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{bpfMapTraceV1: t.scratch}})
	if err != nil {
		return fmt.Errorf("load the wrapper: %w", err)
	}
	defer c.Close()
	t.wrapper, t.slots = c.DetachProgram(wrapperProgTrace), c.DetachMap(wrapperMapLive)
	t.live = map[Program]*ebpf.Program{}
	for _, p := range programs {
		live, err := ebpf.LoadPinnedProgram(filepath.Join(t.dir, "prog_"+p.String()), nil)
		if err != nil {
			return fmt.Errorf("program %s: %w", p, err)
		}
		t.live[p] = live
		if err := t.slots.Put(uint32(p), live); err != nil {
			return fmt.Errorf("program %s: %w", p, err)
		}
	}
	return nil
}

// Close lets go of the programs.
func (t *Tracer) Close() error {
	for _, p := range t.live {
		p.Close()
	}
	if t.wrapper != nil {
		t.wrapper.Close()
	}
	for _, m := range []*ebpf.Map{t.slots, t.scratch} {
		if m != nil {
			m.Close()
		}
	}
	return nil
}

// Trace runs a packet through its program in trace mode.
func (t *Tracer) Trace(ctx context.Context, req TraceRequest) (res TraceResult, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	var nonce [8]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return res, fmt.Errorf("nonce: %w", err)
	}
	setup := req.setup()
	setup.Nonce = binary.NativeEndian.Uint64(nonce[:]) | 1
	if err := t.scratch.Put(uint32(0), setup); err != nil {
		return res, fmt.Errorf("scratch map: %w", err)
	}
	verdict, frame, _, err := t.test(t.wrapper, req, 1)
	var done bpfTrace
	err = errors.Join(err, t.scratch.Lookup(uint32(0), &done), t.scratch.Put(uint32(0), bpfTrace{}))
	if err != nil {
		return res, fmt.Errorf("trace %s: %w", req.Program, err)
	}
	if done.Nonce != setup.Nonce {
		return res, fmt.Errorf("trace %s: another trace ran at the same time", req.Program)
	}
	res = TraceResult{Redirected: verdict == actRedirect, Passed: verdict == actUnspec, Frame: frame}
	for _, s := range done.Steps[:min(int(done.Count), len(done.Steps))] {
		step := Step{What: StepKind(s.What), Value: s.Value}
		if s.Addr != [16]byte{} {
			step.Addr = from16(s.Addr)
		}
		res.Steps = append(res.Steps, step)
	}
	return res, nil
}

// Run runs a packet through its program for real, repeat times: it counts, and
// is remembered. What the program would send out is not sent. Every repetition
// sees the packet as the one before left it. It tells whether the last one was
// redirected, the packet after it, and how long one took on average.
func (t *Tracer) Run(req TraceRequest, repeat uint32) (redirected bool, frame []byte, each time.Duration, err error) {
	if err := t.scratch.Put(uint32(0), req.setup()); err != nil {
		return false, nil, 0, fmt.Errorf("scratch map: %w", err)
	}
	verdict, frame, each, err := t.test(t.wrapper, req, repeat)
	err = errors.Join(err, t.scratch.Put(uint32(0), bpfTrace{}))
	return verdict == actRedirect, frame, each, err
}

// RunResult is what became of a packet.
type RunResult struct {
	Redirected bool
	Frame      []byte
}

// RunAtOnce sends packets at the same time, each on a processor of its own: there have to be
// as many. They may differ in their frames alone. By a random part of a microsecond or two the
// one comes before the other.
func (t *Tracer) RunAtOnce(requests ...TraceRequest) ([]RunResult, error) {
	if err := t.scratch.Put(uint32(0), requests[0].setup()); err != nil {
		return nil, fmt.Errorf("scratch map: %w", err)
	}
	var group errgroup.Group
	var ready atomic.Int32
	out := make([]RunResult, len(requests))
	for i, req := range requests {
		group.Go(func() error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			later := mathrand.IntN(800)
			for ready.Add(1); int(ready.Load()) < len(requests); {
			}
			for range later {
				ready.Load()
			}
			verdict, frame, _, err := t.test(t.wrapper, req, 1)
			out[i] = RunResult{verdict == actRedirect, frame}
			return err
		})
	}
	return out, errors.Join(group.Wait(), t.scratch.Put(uint32(0), bpfTrace{}))
}

// Verdicts of <linux/pkt_cls.h>.
const (
	actShot     = 2
	actRedirect = 7
	actUnspec   = 1<<32 - 1
)

func (req TraceRequest) setup() bpfTrace {
	s := bpfTrace{Program: uint32(req.Program), Vni: uint32(req.VNI), Vlan: req.VLAN}
	switch {
	case req.VTEP.Is4():
		a := req.VTEP.As4()
		s.Family = 4
		copy(s.Remote[:], a[:])
	case req.VTEP.IsValid():
		s.Family, s.Remote = 6, req.VTEP.As16()
	}
	return s
}

func (t *Tracer) test(prog *ebpf.Program, req TraceRequest, repeat uint32) (verdict uint32, frame []byte, each time.Duration, err error) {
	context := skbContext{IfIndex: req.IfIndex, GSOSize: req.GSOSize}
	if req.GSOSize > 0 {
		context.GSOSegs = uint32(len(req.Frame))/req.GSOSize + 1
	}
	opts := &ebpf.RunOptions{Data: req.Frame, DataOut: make([]byte, len(req.Frame)+256), Context: context, Repeat: repeat}
	if repeat > 1 {
		verdict, each, err = prog.Benchmark(req.Frame, int(repeat), nil)
		return verdict, nil, each, err
	}
	verdict, err = prog.Run(opts)
	return verdict, opts.DataOut, 0, err
}
