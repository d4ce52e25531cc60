package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// DefaultDir holds the run directories of labs. It is short because unix socket
// paths are limited to 107 bytes.
const DefaultDir = "/run/sluice-lab"

// DefaultName is the name of a lab that was given none.
const DefaultName = "sluice"

// Options say where a lab lives.
type Options struct {
	// Name is the prefix of all namespaces. Default DefaultName.
	Name string
	// Dir is the parent of the run directory. Default DefaultDir. FRR's user has
	// to be able to pass through it.
	Dir string
	// KeepLogs leaves the log directory behind when Up fails.
	KeepLogs bool
	Log      *slog.Logger
	// Waiting, when set, is told what is waited for when that takes longer than ten seconds. It is
	// called from another goroutine.
	Waiting func(what string)
}

// Lab is a scenario that is up.
type Lab struct {
	prefix   string
	dir      string
	keepLogs bool
	log      *slog.Logger
	waiting  func(string)

	mu    sync.Mutex
	state state
}

// state is what is on disk as state.json.
type state struct {
	Scenario Scenario `json:"scenario"`
	Nodes    []Node   `json:"nodes"`
	// MadeNetnsMount: /run/netns was no mount before this lab.
	MadeNetnsMount bool `json:"madeNetnsMount,omitempty"`
}

func newState(s Scenario, prefix, dir string) (state, error) {
	// A deep copy: the lab changes its scenario as VMs come and go.
	b, err := json.Marshal(s)
	if err != nil {
		return state{}, err
	}
	st := state{Nodes: nodesOf(s, prefix, dir), MadeNetnsMount: !isMount("/run/netns")}
	return st, json.Unmarshal(b, &st.Scenario)
}

var labNameRE = regexp.MustCompile(`^[a-z0-9]{1,12}$`)

func newLab(opt Options) (*Lab, error) {
	if opt.Name == "" {
		opt.Name = DefaultName
	}
	if opt.Dir == "" {
		opt.Dir = DefaultDir
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Waiting == nil {
		opt.Waiting = func(what string) { opt.Log.Info("waiting", "for", what) }
	}
	if !labNameRE.MatchString(opt.Name) {
		return nil, fmt.Errorf("lab name %q: want 1 to 12 lower case letters and digits", opt.Name)
	}
	dir, err := filepath.Abs(filepath.Join(opt.Dir, opt.Name))
	if err != nil {
		return nil, err
	}
	if len(dir) > 50 {
		return nil, fmt.Errorf("run directory %s: more than 50 bytes, unix sockets below it would not work; choose a shorter one", dir)
	}
	return &Lab{prefix: opt.Name, dir: dir, keepLogs: opt.KeepLogs, log: opt.Log, waiting: opt.Waiting}, nil
}

// Up builds the scenario and returns when it works. On failure, or when ctx
// ends, everything is removed again.
func Up(ctx context.Context, s Scenario, opt Options) (*Lab, error) {
	l, err := newLab(opt)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Validate(), Require(s)); err != nil {
		return nil, err
	}
	if l.state, err = newState(s, l.prefix, l.dir); err != nil {
		return nil, err
	}
	if err := l.claim(); err != nil {
		return nil, err
	}
	if err := l.build(ctx); err != nil {
		if ctx.Err() != nil {
			// What it was about then says nothing.
			err = fmt.Errorf("it was interrupted before it was up, and is removed again: %w", context.Cause(ctx))
		}
		kept, saveErr := l.saveLogs()
		return nil, errors.Join(fmt.Errorf("lab %s: %w", l.prefix, err), saveErr, l.Down(), kept)
	}
	return l, nil
}

// ErrNoLab is wrapped by Open when there is no lab of the name.
var ErrNoLab = errors.New("there is no lab")

// Open finds a lab that is up, from its run directory.
func Open(opt Options) (*Lab, error) {
	l, err := newLab(opt)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(l.dir, "state.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w named %s (%s)", ErrNoLab, l.prefix, l.dir)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &l.state); err != nil {
		return nil, fmt.Errorf("%s/state.json: %w", l.dir, err)
	}
	return l, nil
}

func (l *Lab) build(ctx context.Context) error {
	begin := time.Now()
	if err := l.makeDirs(); err != nil {
		return err
	}
	if err := l.makeAuthority(); err != nil {
		return err
	}
	if err := l.makeUnderlay(ctx); err != nil {
		return err
	}
	l.log.Info("underlay is up", "nodes", len(l.Nodes()), "after", time.Since(begin))
	g, gctx := errgroup.WithContext(ctx)
	for _, c := range l.state.Scenario.Clouds {
		g.Go(func() error {
			if err := l.startCloud(gctx, c); err != nil {
				return fmt.Errorf("cloud %s: %w", c.Name, err)
			}
			l.log.Info("cloud is up", "cloud", c.Name, "after", time.Since(begin))
			return nil
		})
	}
	for _, r := range l.state.Scenario.Reflectors {
		g.Go(func() error { return l.startReflector(gctx, r) })
	}
	for _, p := range l.state.Scenario.Peers {
		g.Go(func() error { return l.startPeer(gctx, p) })
	}
	return g.Wait()
}

func (l *Lab) startCloud(ctx context.Context, c Cloud) error {
	if err := l.startCentral(ctx, c); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.writeNorthbound(gctx, c) })
	for _, ch := range c.Chassis {
		g.Go(func() error { return l.startChassis(gctx, c, ch) })
	}
	for _, p := range c.Providers {
		g.Go(func() error { return l.startGateway(gctx, c, p) })
	}
	if c.API {
		g.Go(func() error { return l.loopback(gctx, apiNode) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := l.plugVMs(ctx, c); err != nil {
		return err
	}
	return l.waitCloud(ctx, c)
}

// claim makes the run directory with the state in it, in one step: whoever makes
// it owns the name, and a lab that is interrupted at any point can be taken down.
func (l *Lab) claim() error {
	parent := filepath.Dir(l.dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(l.state, "", " ")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(tmp, "state.json"), b); err != nil {
		return err
	}
	// A directory can replace an empty one only.
	if err := os.Rename(tmp, l.dir); errors.Is(err, os.ErrExist) {
		return fmt.Errorf("a lab named %s is already there (%s): take it down first: sluice-lab down --name %s", l.prefix, l.dir, l.prefix)
	} else if err != nil {
		return err
	}
	return nil
}

func (l *Lab) makeDirs() error {
	dirs := []string{l.logDir(), filepath.Join(l.dir, "proc"), filepath.Join(l.dir, "bpffs")}
	for _, n := range l.state.Nodes {
		dirs = append(dirs, filepath.Join(n.Dir, "bin"))
	}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	bpffs := filepath.Join(l.dir, "bpffs")
	if err := unix.Mount("bpffs", bpffs, "bpf", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mounting a bpffs at %s: %w", bpffs, err)
	}
	for _, n := range l.state.Nodes {
		if n.BPFFS == "" {
			continue
		}
		if err := os.Mkdir(n.BPFFS, 0o700); err != nil {
			return err
		}
	}
	return l.writeSecret()
}

func (l *Lab) saveState() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := json.MarshalIndent(l.state, "", " ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(l.dir, "state.json"), b)
}

func (l *Lab) logDir() string { return filepath.Join(l.dir, "log") }

// LogDir is where every process of the lab logs, as NODE-NAME.log.
func (l *Lab) LogDir() string { return l.logDir() }

// Dir is the run directory.
func (l *Lab) Dir() string { return l.dir }

// Name is the lab's name, the prefix of its namespaces.
func (l *Lab) Name() string { return l.prefix }

// Scenario is what was asked for, with the VMs that were added since.
func (l *Lab) Scenario() Scenario {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Scenario
}

// Nodes lists all nodes.
func (l *Lab) Nodes() []Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Node(nil), l.state.Nodes...)
}

// Node finds a node by name.
func (l *Lab) Node(name string) (Node, error) {
	for _, n := range l.Nodes() {
		if n.Name == name {
			return n, nil
		}
	}
	var names []string
	for _, n := range l.Nodes() {
		names = append(names, n.Name)
	}
	return Node{}, fmt.Errorf("lab %s has no node %q; there are: %s", l.prefix, name, strings.Join(names, ", "))
}
