package bgp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// GoBGP keeps settings in package variables, and only the end of a process ends
// a session without CEASE: each speaker of the tests is therefore a process, the
// test binary itself, that takes commands on stdin and reports on stdout.

const (
	childEnv    = "SLUICE_BGP_TEST_SPEAKER"
	childBFDEnv = "SLUICE_BGP_TEST_BFD" // peers of a BFD speaker beside it
	// mayDie is of a speaker that is to be ended by a panic, mayRace of one of which the
	// BGP server has races of its own: it takes a family from a session while it reads it.
	mayDie  = "SLUICE_BGP_TEST_MAY_DIE=1"
	mayRace = "SLUICE_BGP_TEST_MAY_RACE=1"
)

type childPolicy struct {
	VNI            intent.VNI
	Index          uint16
	Export, Import []string
	Auto           bool
}

type childCommand struct {
	Policies []childPolicy
	// Set is used when not nil, else Upserts and Deletes.
	Set, Upserts, Deletes []intent.RouteKey
	Status, Routes        bool
	Explain               *status.Query
	Stop, StopBFD         bool
	Linger                time.Duration  // before a stopped one tells what it has, and ends
	Unicast               []netip.Prefix // announce these, when not nil
	Fill                  int            // announce this many hosts of VNI 1001
	Shutdown              *bool
	Yield, Hold           []intent.RouteKey
	Ready                 bool
	Links                 bool // look at the links
}

type childHop struct {
	VTEP string
	VNI  intent.VNI
	MAC  string
}

type childReport struct {
	Upserts []childRoute
	Deletes []intent.RouteKey
	VTEPs   []netip.Addr
	Gone    []netip.Addr
	InSync  bool
	Status  *Status
	Seen    Sightings
	Routes  []RouteInfo
	Learned []underlay.Learned // plain unicast
	Unicast bool               // it is in sync
	Steps   []status.Step
	Done    bool
	Paths   []string
	Errors  []string
}

type childRoute struct {
	Key  intent.RouteKey
	Hops []childHop
}

func runChild() int {
	var cfg Config
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	level := slog.LevelInfo
	if os.Getenv("SLUICE_BGP_TEST_DEBUG") != "" {
		level = slog.LevelDebug
	}
	s, err := New(cfg, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.PoliciesComplete()
	stopBFD, err := childBFD(os.Getenv(childBFDEnv), s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	enc := json.NewEncoder(os.Stdout)
	report := func(r childReport) {
		mu.Lock()
		defer mu.Unlock()
		_ = enc.Encode(r)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	go func() {
		_ = s.Watch(context.Background(), func(u ImportUpdate) { report(importReport(u)) })
	}()
	in := json.NewDecoder(os.Stdin)
	for {
		var c childCommand
		if err := in.Decode(&c); err == io.EOF {
			return 0
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if c.Stop {
			s.Stop(false)
			if err := <-ended; err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			if c.Linger > 0 {
				time.Sleep(c.Linger) // for what the server still says
				learned, _ := s.Unicast()
				report(childReport{Done: true, Learned: learned})
			}
			return 0
		}
		if c.StopBFD {
			stopBFD()
		}
		report(obey(s, c))
	}
}

func obey(s *GoBGP, c childCommand) childReport {
	ctx := context.Background()
	pathsSeen.mu.Lock()
	r := childReport{Done: true, Paths: slices.Clone(pathsSeen.list)}
	pathsSeen.mu.Unlock()
	fail := func(err error) {
		if err != nil {
			r.Errors = append(r.Errors, err.Error())
		}
	}
	if c.Links {
		links, err := childLinks()
		fail(err)
		s.LinksChanged(links)
	}
	if c.Status {
		st, err := s.Status(ctx)
		fail(err)
		r.Status, r.Seen = &st, s.Sightings()
		r.Seen.Uses = nil // route targets are no text that is read back
	}
	if c.Unicast != nil {
		for _, err := range s.setUnicast(ctx, useUnderlay, c.Unicast, nil) {
			fail(err)
		}
	}
	r.Learned, r.Unicast = s.Unicast()
	if c.Routes {
		routes, err := s.Routes(ctx)
		fail(err)
		r.Routes = routes
	}
	if c.Explain != nil {
		steps, err := s.Explain(ctx, *c.Explain)
		fail(err)
		r.Steps = steps
	}
	if c.Policies != nil {
		m := map[intent.VNI]intent.VRFPolicy{}
		for _, p := range c.Policies {
			m[p.VNI] = intent.VRFPolicy{VNI: p.VNI, Index: p.Index, Export: targets(p.Export...), Import: targets(p.Import...), AutoImport: p.Auto}
		}
		for _, err := range s.SetPolicies(m) {
			r.Errors = append(r.Errors, err.Error())
		}
	}
	if c.Ready {
		s.Ready()
	}
	if c.Shutdown != nil {
		fail(s.GracefulShutdown(ctx, *c.Shutdown))
	}
	s.Yield(ctx, c.Yield, true)
	s.Yield(ctx, c.Hold, false)
	announce := func(keys []intent.RouteKey) []Announcement {
		var out []Announcement
		for _, k := range keys {
			out = append(out, Announcement{Key: k})
		}
		return out
	}
	var failed map[intent.RouteKey]error
	if c.Fill > 0 {
		failed = setAll(ctx, s, hosts(1001, c.Fill))
	} else if c.Set != nil {
		m := map[intent.RouteKey]Announcement{}
		for _, a := range announce(c.Set) {
			m[a.Key] = a
		}
		failed = setAll(ctx, s, m)
	} else {
		failed = s.Update(ctx, announce(c.Upserts), c.Deletes)
	}
	for _, err := range failed {
		r.Errors = append(r.Errors, err.Error())
	}
	return r
}

// childLinks are those of the process's namespace.
func childLinks() (out []underlay.Link, err error) {
	list, err := link.New(netns.Namespace{}).Links()
	for _, l := range list {
		out = append(out, underlay.Link{Name: l.Name, Index: l.Index, Carrier: l.Carrier, Loopback: l.Loopback, Prefixes: l.Prefixes})
	}
	return out, err
}

func importReport(u ImportUpdate) childReport {
	r := childReport{Deletes: u.Deletes, Gone: u.GoneVTEPs, InSync: u.InSync}
	for _, v := range u.VTEPs {
		r.VTEPs = append(r.VTEPs, v.Addr)
	}
	for _, route := range u.Upserts {
		cr := childRoute{Key: route.Key}
		for _, h := range route.NextHops.All() {
			cr.Hops = append(cr.Hops, childHop{h.VTEP.String(), h.VNI, h.RouterMAC.String()})
		}
		r.Upserts = append(r.Upserts, cr)
	}
	return r
}

// hosts are n announcements of a VNI, IPv4 and IPv6 in turn.
func hosts(vni intent.VNI, n int) map[intent.RouteKey]Announcement {
	m := make(map[intent.RouteKey]Announcement, n)
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if i%2 == 1 {
			b := netip.MustParseAddr("2001:db8::").As16()
			b[13], b[14], b[15] = byte(i>>16), byte(i>>8), byte(i)
			a = netip.AddrFrom16(b)
		}
		k := intent.NewHostKey(vni, a)
		m[k] = Announcement{Key: k}
	}
	return m
}

func targets(words ...string) intent.RouteTargets {
	var rts []intent.RouteTarget
	for _, w := range words {
		rt, err := intent.ParseRouteTarget(w)
		if err != nil {
			panic(err)
		}
		rts = append(rts, rt)
	}
	return intent.NewRouteTargets(rts...)
}

// speaker is the test's side of a speaker process.
type speaker struct {
	t       testing.TB
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	replies chan childReport
	log     *testLog

	mu     sync.Mutex
	routes map[intent.RouteKey][]childHop
	vteps  map[netip.Addr]bool
	inSync bool
	// deleted counts the deletes seen so far, goneOf those of a row, changes all that
	// became of one.
	deleted int
	goneOf  map[intent.RouteKey]int
	changes map[intent.RouteKey]int
	exited  chan struct{}
}

func startSpeaker(t testing.TB, cfg Config) *speaker {
	t.Helper()
	return startSpeakerIn(t, "", cfg)
}

// startSpeakerIn starts a speaker in a named network namespace; "" is the test's own.
func startSpeakerIn(t testing.TB, ns string, cfg Config, env ...string) *speaker {
	t.Helper()
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := commandIn(ns, os.Args[0])
	cmd.Env = append(append(os.Environ(), childEnv+"="+string(raw)), env...)
	log := &testLog{t: t, mayDie: slices.Contains(env, mayDie), mayRace: slices.Contains(env, mayRace)}
	cmd.Stderr = log
	s := &speaker{t: t, cmd: cmd, log: log, replies: make(chan childReport, 16), routes: map[intent.RouteKey][]childHop{},
		goneOf: map[intent.RouteKey]int{}, changes: map[intent.RouteKey]int{}, vteps: map[netip.Addr]bool{}, exited: make(chan struct{})}
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read(bufio.NewReader(out))
	t.Cleanup(func() { s.kill(); log.close() })
	return s
}

func (s *speaker) read(r io.Reader) {
	defer close(s.exited)
	dec := json.NewDecoder(r)
	for {
		var rep childReport
		if dec.Decode(&rep) != nil {
			_ = s.cmd.Wait()
			return
		}
		if rep.Done {
			s.replies <- rep
			continue
		}
		s.mu.Lock()
		for _, u := range rep.Upserts {
			s.routes[u.Key] = u.Hops
			s.changes[u.Key]++
		}
		for _, k := range rep.Deletes {
			delete(s.routes, k)
			s.deleted++
			s.goneOf[k]++
			s.changes[k]++
		}
		for _, a := range rep.VTEPs {
			s.vteps[a] = true
		}
		for _, a := range rep.Gone {
			delete(s.vteps, a)
		}
		s.inSync = rep.InSync
		s.mu.Unlock()
	}
}

// kill ends the process as SIGKILL does in production.
func (s *speaker) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

func (s *speaker) stop() {
	s.t.Helper()
	if err := json.NewEncoder(s.stdin).Encode(childCommand{Stop: true}); err != nil {
		s.t.Fatal(err)
	}
	<-s.exited
}

func (s *speaker) do(c childCommand) childReport {
	s.t.Helper()
	if err := json.NewEncoder(s.stdin).Encode(c); err != nil {
		s.t.Fatal(err)
	}
	select {
	case r := <-s.replies:
		if len(r.Errors) > 0 {
			s.t.Fatalf("the speaker failed: %v", r.Errors)
		}
		return r
	case <-s.exited:
		s.t.Fatal("the speaker has exited")
	case <-time.After(time.Minute):
		s.t.Fatal("the speaker does not answer")
	}
	return childReport{}
}

func (s *speaker) hops(k intent.RouteKey) []childHop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routes[k]
}

// deletes counts what the watcher was told to delete so far.
func (s *speaker) deletes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleted
}

// deletedOf counts the deletes of one row, changesOf all that became of it.
func (s *speaker) deletedOf(k intent.RouteKey) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.goneOf[k]
}

func (s *speaker) changesOf(k intent.RouteKey) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[k]
}

func (s *speaker) synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inSync
}

// eventually waits for a state; the deadline is only for a broken build.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// testLog passes a process's log to the test while it runs, and fails it for what
// no process may report.
type testLog struct {
	mu   sync.Mutex
	t    testing.TB
	done bool
	// mayDie, mayRace: no failure.
	mayDie, mayRace bool
	text            strings.Builder
}

// says tells whether the process has logged a line with all of the words.
func (l *testLog) says(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			return true
		}
	}
	return false
}

func (l *testLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		l.t.Logf("%s", b)
		l.text.Write(b)
		if !l.mayRace && strings.Contains(string(b), "DATA RACE") || !l.mayDie && strings.Contains(string(b), "panic: ") {
			l.t.Error("the process reports a race or a panic")
		}
	}
	return len(b), nil
}

func (l *testLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
}
