package service

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
)

// The addresses there.
var (
	steered4 = proxy.Address4
	steered6 = netip.MustParseAddr("fd6e::a9fe:a9fe")
)

// runDir is where iproute2 keeps named namespaces.
const runDir = "/run/netns"

const (
	// lookInterval is between two looks at the file, and at what could not be opened yet.
	lookInterval = 250 * time.Millisecond
	// namespaceInterval is between two looks at the namespaces of networks: there may be
	// hundreds.
	namespaceInterval = time.Second
	// retryMost is the longest time until what could not be opened is tried again.
	retryMost = 2 * time.Second
	// DrainTime is how long requests under way have when the process ends, or hands over.
	DrainTime = 5 * time.Second
)

// Config is what a Service is made of.
type Config struct {
	// Identities is the file of package identity.
	Identities string
	// Namespaces is the directory of named namespaces; empty: iproute2's.
	Namespaces string
	// Steered: requests are steered to the namespace of that name, or will be. Without it
	// nobody listens there as long as the file has no port that is steered.
	Steered bool
	// OpenHeart opens what shows the heartbeat to whoever steers; nil: nobody looks. It
	// is called until it succeeds, and again every now and then.
	OpenHeart func() (Beater, error)
	// Store keeps the listening sockets; nil: nobody does.
	Store Store
	// Proxy is how guests are treated.
	Proxy proxy.Config
	Log   *slog.Logger
}

// Service is the running proxy.
type Service struct {
	cfg    Config
	reader *identity.Reader
	// steeredIn is the file of the namespace that steered requests come to. The loop's own.
	steeredIn string
	server    *proxy.Server
	before    *inherited
	serving   sync.WaitGroup

	mu sync.Mutex // guards what follows
	// table is nil until the file has been read once.
	table *identity.Table
	open  map[string]*listening
	// wait has, of each place that is not open, why, and when it is tried again.
	wait   map[string]*waitingPlace
	places []place
	looked time.Time // when the loop was last there
	file   FileStatus
	heart  HeartStatus
	// leaving: another one goes on with the listeners, at once.
	leaving bool
}

type waitingPlace struct {
	err   error
	since time.Time
	next  time.Time
	pause time.Duration
}

// New makes a service that goes on with the sockets of a process before.
func New(cfg Config, before []Socket) *Service {
	if cfg.Namespaces == "" {
		cfg.Namespaces = runDir
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{
		cfg: cfg, reader: identity.NewReader(cfg.Identities), server: proxy.New(cfg.Proxy), before: newInherited(before),
		open: map[string]*listening{}, wait: map[string]*waitingPlace{}, looked: time.Now(),
	}
}

// Run serves until ctx ends, and then lets requests under way come to their end; or until
// handOver is closed, and returns the sockets with which another one goes on.
func (s *Service) Run(ctx context.Context, handOver <-chan struct{}) []Socket {
	begin := time.Now()
	s.look(ctx, begin, true)
	beats, stop := context.WithCancel(ctx)
	var heart sync.WaitGroup
	heart.Go(func() { s.beat(beats) })
	defer heart.Wait()
	defer stop()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for lookedAtNetworks := begin; ; {
		select {
		case <-ctx.Done():
			s.end()
			return nil
		case <-handOver:
			return s.leave()
		case <-tick.C:
		}
		now := time.Now()
		all := now.Sub(lookedAtNetworks) >= namespaceInterval
		if all {
			lookedAtNetworks = now
		}
		s.look(ctx, now, all)
	}
}

// look follows the file and the namespaces.
func (s *Service) look(ctx context.Context, now time.Time, networks bool) {
	changed := s.lookAtFile(now)
	if path := (namespace.Names{Dir: s.cfg.Namespaces}).ProxyServed(); path != s.steeredIn {
		s.steeredIn, changed = path, true
	}
	if changed {
		s.setPlaces()
		s.server.Check()
	}
	s.closeUnwanted()
	for _, p := range s.places {
		if l := s.open[p.socket]; l != nil {
			if p.network == "" || networks || changed {
				s.lookAt(p, l)
			}
		}
		if s.open[p.socket] == nil && ctx.Err() == nil {
			s.tryOpen(ctx, p, now)
		}
	}
	s.forgetInherited()
	s.mu.Lock()
	s.looked = now
	s.mu.Unlock()
}

// closeUnwanted closes what is in no place any more: of networks that have gone, or that
// are served elsewhere.
func (s *Service) closeUnwanted() {
	wanted := make(map[string]place, len(s.places))
	for _, p := range s.places {
		wanted[p.socket] = p
	}
	for name, l := range s.open {
		if _, ok := wanted[name]; !ok {
			s.shut(name, l, "the network is not served any more")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.wait {
		if _, ok := wanted[name]; !ok {
			delete(s.wait, name)
		}
	}
}

// lookAt closes a listener whose namespace, or whose server, is not there any more.
func (s *Service) lookAt(p place, l *listening) {
	if err := l.stays(p); err != nil {
		s.shut(p.socket, l, err.Error())
		return
	}
	if l.served == nil {
		s.serve(p, l)
		return
	}
	select {
	case <-l.served:
		s.shut(p.socket, l, "it was served no longer")
	default:
	}
}

// shut closes a listener and what came in by it, and lets go of the namespace.
func (s *Service) shut(name string, l *listening, why string) {
	s.cfg.Log.Info("metadata listener is closed", "listener", name, "why", why)
	l.end()
	s.server.Drop(l)
	s.unstore(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, name)
}

func (s *Service) tryOpen(ctx context.Context, p place, now time.Time) {
	w := s.wait[p.socket]
	if w != nil && now.Before(w.next) {
		return
	}
	l, err := open(ctx, p, s.before)
	if err != nil {
		s.waits(p, now, err)
		return
	}
	s.mu.Lock()
	delete(s.wait, p.socket)
	s.open[p.socket] = l
	s.mu.Unlock()
	s.cfg.Log.Info("metadata listener is open", "listener", p.socket, "network", p.network, "address", p.at().String())
	s.store(p.socket, l)
	s.serve(p, l)
}

// waits takes note of why a place is not open.
func (s *Service) waits(p place, now time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wait[p.socket]
	if w == nil {
		w = &waitingPlace{since: now, pause: lookInterval}
		s.wait[p.socket] = w
		s.cfg.Log.Info("metadata listener waits", "listener", p.socket, "network", p.network, "error", err)
	}
	w.err, w.next, w.pause = err, now.Add(w.pause), min(2*w.pause, retryMost)
}

func (s *Service) store(name string, l *listening) {
	if s.cfg.Store == nil {
		return
	}
	if err := withFD(l.inner, func(fd int) error { return s.cfg.Store.StoreFD(name, fd) }); err != nil {
		s.cfg.Log.Warn("a socket cannot be stored in the service manager; a restart of this process refuses connections", "listener", name, "error", err)
	}
}

func (s *Service) unstore(name string) {
	if s.cfg.Store == nil {
		return
	}
	if err := s.cfg.Store.RemoveFD(name); err != nil {
		s.cfg.Log.Warn("a socket cannot be removed from the service manager", "listener", name, "error", err)
	}
}

// serve begins to take connections, once it can be known who asks.
func (s *Service) serve(p place, l *listening) {
	if s.table == nil || l.served != nil {
		return
	}
	s.mu.Lock()
	l.begin()
	s.mu.Unlock()
	resolve := s.steered
	if p.network != "" {
		resolve = s.on(p.network)
	}
	s.serving.Go(func() {
		defer close(l.served)
		if err := s.server.Serve(l, resolve); err != nil {
			s.cfg.Log.Error("metadata listener failed; opening it again", "listener", p.socket, "error", err)
		}
	})
}

// forgetInherited closes the sockets of before that nobody wants, or whose namespace has
// gone: they would keep it alive.
func (s *Service) forgetInherited() {
	if s.table == nil || len(s.before.sockets) == 0 {
		return
	}
	paths := map[string]string{}
	for _, p := range s.places {
		paths[p.socket] = p.path
	}
	for _, name := range s.before.close(func(listener string) bool { return exists(paths[listener]) }) {
		s.unstore(name)
	}
}

func exists(path string) bool {
	_, err := lookUp(path)
	return path != "" && err == nil
}

// Alive tells whether the service does its work: whether it looks, and takes connections.
func (s *Service) Alive() error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := now.Sub(s.looked); d > deadAfter {
		return fmt.Errorf("the metadata proxy has not read its files for %s", d.Round(time.Second))
	}
	for name, l := range s.open {
		if l.served == nil {
			continue
		}
		if err := l.alive(now); err != nil {
			return fmt.Errorf("metadata listener %s: %w", name, err)
		}
	}
	return nil
}

// deadAfter is far more than a look takes with thousands of namespaces.
const deadAfter = 30 * time.Second
