package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a directory of namespaces, a file of identities, and who tells of heartbeats.
type world struct {
	t     *testing.T
	dir   string
	file  string
	beats atomic.Int64
	store store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.file = filepath.Join(t.TempDir(), "metadata", "identities.json")
	w.store.t = t
	return w
}

// Beat implements Beater.
func (w *world) Beat() error {
	w.beats.Add(1)
	return nil
}

var made atomic.Int64

// namespace makes one, by a name of its own on this machine, in which setup has run.
func (w *world) namespace(name string, setup ...string) {
	w.t.Helper()
	real := fmt.Sprintf("slsv%d-%d", os.Getpid(), made.Add(1))
	w.run("ip netns add %s", real)
	w.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", real).Run() })
	w.run("ip -n %s link set lo up", real)
	for _, command := range setup {
		w.run("ip -n %s %s", real, command)
	}
	if err := os.Symlink("/run/netns/"+real, filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// remove removes one.
func (w *world) remove(name string) {
	w.t.Helper()
	link := filepath.Join(w.dir, name)
	real, err := os.Readlink(link)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run("ip netns del %s", filepath.Base(real))
	if err := os.Remove(link); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run(format string, args ...any) {
	w.t.Helper()
	command := strings.Fields(fmt.Sprintf(format, args...))
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %v: %s", command, err, out)
	}
}

// steered is the setup of the namespace that requests are steered to; guests are there, as
// if they were steered.
func steeredSetup() []string {
	return []string{
		"addr add 169.254.169.254/32 dev lo", "addr add fd6e::a9fe:a9fe/128 dev lo nodad",
		"addr add 100.64.0.7/32 dev lo", "addr add 100.64.0.8/32 dev lo", "addr add 100.64.0.9/32 dev lo",
		"addr add fd6d:0:0:8:f816:3eff:fe00:5/128 dev lo nodad",
	}
}

// networkSetup is that of a network's namespace, with two guests.
func networkSetup() []string {
	return []string{
		"link add tap0 type veth peer name tap1", "link set tap0 up", "link set tap1 up",
		"addr add 169.254.169.254/32 dev tap1", "addr add fe80::a9fe:a9fe/64 dev tap1 nodad",
		"addr add 10.0.0.5/32 dev tap1", "addr add 10.0.0.6/32 dev tap1", "addr add fe80::f816:3eff:fe00:5/64 dev tap1 nodad",
	}
}

func mac(last byte) intent.MAC { return intent.MAC{0xfa, 0x16, 0x3e, 0, 0, last} }

var (
	red  = identity.Port{Name: "p-red", Instance: "inst-red", Network: "net-red", Numbers4: map[identity.Number]netip.Addr{7: netip.MustParseAddr("10.0.0.5")}}
	blue = identity.Port{Name: "p-blue", Instance: "inst-blue", Network: "net-blue", Numbers4: map[identity.Number]netip.Addr{8: netip.MustParseAddr("10.0.0.5")}, Numbers6: map[identity.Number]intent.MAC{8: mac(5)}}
)

// network has one guest at 10.0.0.5.
func network(name string) identity.Network {
	return identity.Network{Name: name, Namespace: "ovnmeta-" + name, Device: "tap1", IPv6: true, Members: []identity.Member{
		{Name: "p-" + name, Instance: "inst-" + name, Addresses: []intent.PortAddress{{MAC: mac(5), Addr: netip.MustParseAddr("10.0.0.5")}}},
	}}
}

func (w *world) identities(ports []identity.Port, networks ...identity.Network) {
	w.t.Helper()
	table, err := identity.NewTable(ports, networks)
	if err == nil {
		err = identity.Write(w.file, table)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// echo answers with who asks, after a moment.
type echo struct{ time.Duration }

func (e echo) ServeMetadata(w http.ResponseWriter, _ *http.Request, id proxy.Identity) proxy.Outcome {
	time.Sleep(e.Duration)
	_, _ = io.WriteString(w, id.Instance+" "+id.Network+" "+id.Address.String())
	return proxy.Answered
}

func (w *world) config() Config {
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}
	return Config{
		Identities: w.file, Namespaces: w.dir, Steered: true, OpenHeart: func() (Beater, error) { return w, nil },
		Proxy: proxy.Config{Backend: echo{}}, Log: log,
	}
}

// running is a service that runs.
type running struct {
	*Service
	stop  context.CancelFunc
	leave chan struct{}
	done  chan []Socket
}

func start(t *testing.T, cfg Config, before []Socket) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Service: New(cfg, before), stop: cancel, leave: make(chan struct{}), done: make(chan []Socket, 1)}
	go func() { r.done <- r.Run(ctx, r.leave); close(r.done) }()
	t.Cleanup(r.end)
	return r
}

func (r *running) end() {
	r.stop()
	<-r.done
}

func (r *running) handOver() []Socket {
	close(r.leave)
	return <-r.done
}

// eventually waits for something to be so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func (r *running) serving(n int) func() bool {
	return func() bool {
		return len(slices.DeleteFunc(r.Status().Listeners, func(l ListenerStatus) bool { return !l.Serving })) == n
	}
}

// get asks from an address in a namespace, and tells the status and the text.
func (w *world) get(name, from, to string, keep bool) (string, error) {
	c := w.client(name, from)
	if !keep {
		defer c.CloseIdleConnections()
	}
	return ask(c, to)
}

func ask(c *http.Client, to string) (string, error) {
	a, err := c.Get(to)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return fmt.Sprintf("%d %s", a.StatusCode, strings.TrimSpace(string(text))), err
}

func (w *world) client(name, from string) *http.Client {
	ns := netns.At(filepath.Join(w.dir, name))
	source := netip.MustParseAddr(from)
	dial := func(ctx context.Context, network, to string) (c net.Conn, err error) {
		err = ns.Do(func() (err error) {
			d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: source.AsSlice(), Zone: source.Zone()}}
			c, err = d.DialContext(ctx, network, to)
			return err
		})
		return c, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: false}, Timeout: 20 * time.Second}
}

// store is a service manager's.
type store struct {
	t     *testing.T
	mu    sync.Mutex
	names []string
}

func (s *store) StoreFD(name string, fd int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, _, err := boundTo(fd); err != nil {
		s.t.Errorf("what is stored as %s: %v", name, err)
	}
	s.names = append(s.names, name)
	return nil
}

func (s *store) RemoveFD(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.names, name)
	if i < 0 {
		return errors.New("there is none")
	}
	s.names = slices.Delete(s.names, i, i+1)
	return nil
}

func (s *store) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(s.names)), " ")
}
