package ebpf

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// ErrInUse is wrapped when another process has the pin directory open for writing.
var ErrInUse = pinned.ErrInUse

// Program is one of the attached programs.
type Program uint8

// The programs. Their numbers are the directions of the packets that they see.
const (
	FabricIn  = Program(bpfDirectionFROM_FABRIC)
	OverlayIn = Program(bpfDirectionTO_FABRIC)
)

// Programs lists the programs that forward what is the fabric's or OVN's; of a
// device that has one nothing gets to the host.
func Programs() []Program { return []Program{FabricIn, OverlayIn} }

func (p Program) String() string {
	switch p {
	case FabricIn:
		return "fabric_in"
	case OverlayIn:
		return "overlay_in"
	case VRFGuard:
		return "vrf_guard"
	case UnderlayIn:
		return "underlay_in"
	case ClientIn:
		return "client_in"
	case ClientOut:
		return "client_out"
	}
	return fmt.Sprintf("program(%d)", uint8(p))
}

// MarshalText writes the program's name.
func (p Program) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p Program) spec() (*ebpf.CollectionSpec, error) {
	switch p {
	case FabricIn:
		return loadFabricIn()
	case VRFGuard:
		return loadVrfGuard()
	case UnderlayIn:
		return loadUnderlayIn()
	case ClientIn:
		return loadClientIn()
	case ClientOut:
		return loadClientOut()
	}
	return loadOverlayIn()
}

// Dataplane is the loaded programs and maps, and the one writer of both.
type Dataplane struct {
	dir     string
	plane   Plane
	log     *slog.Logger
	hook    Hook
	bridges Bridges
	held    *pinned.Held

	specs  map[string]*ebpf.MapSpec
	tables tables

	mu       sync.Mutex // of what follows
	older    []string   // pinned maps of an older layout; none: nothing is staged
	later    *later     // what Replace is to do; nil: nothing
	node     Node
	programs map[Program]*pinned.Program // those that run where nothing is put off or staged
	// used is closed as Used says.
	used     chan struct{}
	usedOnce sync.Once
	links    linkCount
	// vtepGuard is loaded by GuardVTEPs, with the port that it looks at.
	vtepGuard     *ebpf.Program
	vtepGuardPort uint16

	store *store
}

// Load adopts what is pinned in cfg.Dir or makes it, and loads the programs.
// Programs that run already go on undisturbed, or are replaced in place when
// they differ from this build's or from cfg.Node.
func Load(cfg Config) (*Dataplane, error) {
	d, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	if err := d.Replace(context.Background()); err != nil {
		d.Close()
		return nil, fmt.Errorf("data plane in %s: %w", cfg.Dir, err)
	}
	return d, nil
}

// Open is Load, but for programs that run and differ: they go on until Replace. Programs
// are loaded at once where one does not run, or where the node is another one in the fabric.
func Open(cfg Config) (*Dataplane, error) {
	if err := cfg.Plane.check(cfg.Node); err != nil {
		return nil, fmt.Errorf("constants of the node: %w", err)
	}
	if err := pinned.LiftMemlock(); err != nil {
		return nil, err
	}
	held, err := pinned.Hold(cfg.Dir)
	if err != nil {
		return nil, err
	}
	d := &Dataplane{dir: cfg.Dir, plane: cfg.Plane, log: cfg.Log, hook: cfg.Hook, bridges: cfg.Bridges, held: held, used: make(chan struct{}),
		programs: map[Program]*pinned.Program{}}
	if err := d.open(cfg); err != nil {
		d.Close()
		return nil, fmt.Errorf("data plane in %s: %w", cfg.Dir, err)
	}
	return d, nil
}

func (d *Dataplane) open(cfg Config) (err error) {
	limits := cfg.Limits.withDefaults()
	if d.specs, err = d.plane.mapSpecs(limits); err != nil {
		return err
	}
	if d.older, err = checkLayout(d.dir, d.specs); err != nil {
		return err
	}
	if len(d.older) > 0 {
		return d.stage(cfg, limits)
	}
	kept, err := keepLarger(d.dir, d.specs)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		d.log.Warn("maps are larger than configured: their rows would not fit", "maps", kept)
	}
	l := &later{}
	if l.begin, err = monotonic(); err != nil {
		return err
	}
	if l.opening, err = openTables(d.dir, d.specs, d.plane.programs()); err != nil {
		return err
	}
	d.tables, d.later, d.node = l.opening.tables, l, cfg.Node
	found, err := d.openPrograms()
	switch {
	case err != nil:
	case found == allCurrent:
		err = d.replaceWith(cfg.Node, d.takePrograms())
	case found == mustLoad:
		err = d.replaceNow(cfg.Node)
	default:
		d.log.Info("attached programs are of another build or have other constants; they forward until this build's are loaded")
	}
	if err != nil {
		return err
	}
	d.noteUsed()
	d.store = d.newStore(limits, cfg)
	return d.store.repair()
}

// Close lets go of everything. What is pinned stays and goes on forwarding.
func (d *Dataplane) Close() error {
	err := d.held.Close()
	d.tables.close()
	if d.later != nil {
		d.later.close()
	}
	for _, p := range d.programs {
		p.Close()
	}
	d.vtepGuard.Close()
	if d.store != nil {
		for _, pages := range d.store.pages() {
			pages.close()
		}
	}
	return err
}

// Node gives the constants that the programs carry.
func (d *Dataplane) Node() Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node
}

// SetNode replaces the programs in place by ones with other constants.
func (d *Dataplane) SetNode(n Node) error {
	if err := d.plane.check(n); err != nil {
		return fmt.Errorf("constants of the node: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n == d.node {
		return nil
	}
	return d.replaceNow(n)
}

// loadPrograms loads all programs, on half of the processors: the kernel's verifier takes
// a second for each of the large ones, and meanwhile others, which forward, want theirs.
func (d *Dataplane) loadPrograms(n Node, t tables) ([]*pinned.Program, error) {
	programs := d.plane.programs()
	list := make([]*pinned.Program, len(programs))
	var group errgroup.Group
	group.SetLimit(max(1, runtime.GOMAXPROCS(0)/2))
	for i, p := range programs {
		group.Go(func() (err error) {
			if list[i], err = d.loadProgram(p, n, t); err != nil {
				return fmt.Errorf("load program %s: %w", p, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		closePrograms(list)
		return nil, err
	}
	return list, nil
}

func closePrograms(list []*pinned.Program) {
	for _, p := range list {
		p.Close()
	}
}

// nodeSpec is a program with the constants of a node and the sizes of the maps.
func (p Program) nodeSpec(n Node, maps map[string]*ebpf.MapSpec) (*ebpf.CollectionSpec, error) {
	spec, err := p.spec()
	if err != nil {
		return nil, err
	}
	return spec, specialize(spec, n, maps)
}

// specialize writes the constants of a node and the sizes of the maps into an
// object, as far as it has them.
func specialize(spec *ebpf.CollectionSpec, n Node, maps map[string]*ebpf.MapSpec) error {
	for name, m := range maps {
		if have := spec.Maps[name]; have != nil {
			have.MaxEntries = m.MaxEntries
		}
	}
	variable := spec.Variables[bpfVarNode]
	if variable == nil {
		return nil
	}
	constants := n.constants()
	if front := maps[bpfMapRouteFrontV1]; front != nil {
		constants.RouteFrontMask = front.MaxEntries - 1
	}
	if err := variable.Set(constants); err != nil {
		return fmt.Errorf("set constants: %w", err)
	}
	return nil
}

func (d *Dataplane) loadProgram(p Program, n Node, t tables) (*pinned.Program, error) {
	spec, err := p.nodeSpec(n, d.specs)
	if err != nil {
		return nil, err
	}
	return pinned.Load(d.pins(), p.String(), spec, t)
}

// adoptProgram makes a loaded program the one that runs wherever p is attached. A
// pinned program that equals it is kept instead, so that a plain restart changes
// nothing. It gives back the one that runs, and closes the other.
func (d *Dataplane) adoptProgram(p Program, loaded *pinned.Program) (now *pinned.Program, err error) {
	if len(d.older) > 0 {
		older, err := pinned.Open(d.pins(), p.String())
		older.Close()
		return loaded, err // until Promote
	}
	now, replaced, err := p.at(d.pins()).Adopt(d.pickHook(), loaded)
	if replaced {
		d.log.Info("program was replaced in place", "program", p.String())
	}
	return now, err
}
