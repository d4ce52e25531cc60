package service

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/nightly"
)

const (
	four = "http://169.254.169.254/openstack"
	six  = "http://[fd6e::a9fe:a9fe]/openstack"
	link = "http://[fe80::a9fe:a9fe%25tap1]/openstack"
)

// The namespace and the file come when they come: until then nobody is answered, nobody is
// refused, and the heart does not beat.
func TestSteered(t *testing.T) {
	w := newWorld(t)
	r := start(t, w.config(), nil)
	eventually(t, "it waits for the namespace", func() bool {
		l := r.Status().Listeners
		return len(l) == 2 && strings.Contains(l[0].Error, "no such file")
	})
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	eventually(t, "it listens", func() bool {
		l := r.Status().Listeners
		return l[0].Error == "" && l[1].Error == ""
	})
	early := make(chan string, 1)
	go func() {
		text, err := w.get(namespace.DefaultProxy, "100.64.0.7", four, false)
		early <- fmt.Sprint(text, err)
	}()
	time.Sleep(600 * time.Millisecond)
	if n := w.beats.Load(); n != 0 || len(early) != 0 {
		t.Errorf("before the file is there: %d beats, %d answers", n, len(early))
	}
	if s := r.Status(); s.Heart.Error == "" || !s.File.Read.IsZero() || s.Listeners[0].Serving {
		t.Errorf("before the file is there: %+v", s)
	}
	w.identities([]identity.Port{red, blue})
	if got := <-early; got != "200 inst-red net-red 10.0.0.5<nil>" {
		t.Errorf("whoever asked before: %s", got)
	}
	for from, want := range map[string]string{
		"100.64.0.7": "200 inst-red net-red 10.0.0.5", "100.64.0.8": "200 inst-blue net-blue 10.0.0.5",
		"100.64.0.9": "404 This address belongs to no instance that is known here.", "fd6d:0:0:8:f816:3eff:fe00:5": "200 inst-blue net-blue fe80::f816:3eff:fe00:5",
	} {
		to := four
		if strings.Contains(from, ":") {
			to = six
		}
		if got, err := w.get(namespace.DefaultProxy, from, to, false); got != want || err != nil {
			t.Errorf("%s: %q %v, want %q", from, got, err, want)
		}
	}
	eventually(t, "the heart beats", func() bool { return w.beats.Load() > 2 })
	if s := r.Status(); s.Heart.Error != "" || s.File.Ports != 2 || r.Alive() != nil {
		t.Errorf("%+v %v", s, r.Alive())
	}
	// A file that cannot be read changes nothing.
	if err := os.WriteFile(w.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the error is told", func() bool { s := r.Status().File; return s.Error != "" && s.Errors == 1 })
	if got, err := w.get(namespace.DefaultProxy, "100.64.0.7", four, false); !strings.HasPrefix(got, "200") {
		t.Errorf("with a broken file: %q %v", got, err)
	}
	n := w.beats.Load()
	eventually(t, "the heart still beats", func() bool { return w.beats.Load() > n+1 })
}

// A namespace that is replaced is listened in anew, and one that goes is not held: the
// heart stops with it.
func TestNamespaceIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	w.identities([]identity.Port{red})
	cfg := w.config()
	cfg.Store = &w.store
	r := start(t, cfg, nil)
	eventually(t, "it serves", r.serving(2))
	c := w.client(namespace.DefaultProxy, "100.64.0.7")
	defer c.CloseIdleConnections()
	if got, err := ask(c, four); err != nil {
		t.Fatal(got, err)
	}
	if got := w.store.String(); got != "steered4 steered6" {
		t.Errorf("stored: %s", got)
	}
	w.remove(namespace.DefaultProxy)
	eventually(t, "it has let go", func() bool {
		s := r.Status()
		return s.Listeners[0].Error != "" && s.Listeners[1].Error != "" && s.Connections == 0
	})
	if got := w.store.String(); got != "" {
		t.Errorf("stored: %s", got)
	}
	time.Sleep(beatInterval)
	n := w.beats.Load()
	time.Sleep(2 * beatInterval)
	if more := w.beats.Load() - n; more > 0 {
		t.Errorf("%d beats without a namespace", more)
	}
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	eventually(t, "it serves again", r.serving(2))
	if got, err := w.get(namespace.DefaultProxy, "100.64.0.7", four, false); err != nil || got != "200 inst-red net-red 10.0.0.5" {
		t.Errorf("%q %v", got, err)
	}
	// Replaced between two looks.
	w.remove(namespace.DefaultProxy)
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	eventually(t, "the next one is served", func() bool {
		got, err := w.get(namespace.DefaultProxy, "100.64.0.7", four, false)
		return err == nil && strings.HasPrefix(got, "200")
	})
}

// Where somebody listens already the namespace has to be Sluice's; the two share the
// connections then, and in the end of the other one those that wait with it are not lost.
func TestBesideAnAgent(t *testing.T) {
	w := newWorld(t)
	w.namespace("ovnmeta-a", networkSetup()...)
	c := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }), err)
	}}
	ns := netns.At(filepath.Join(w.dir, "ovnmeta-a"))
	var theirs net.Listener
	if err := ns.Do(func() (err error) { theirs, err = c.Listen(t.Context(), "tcp4", "169.254.169.254:80"); return err }); err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	cfg := w.config()
	cfg.Steered = false
	r := start(t, cfg, nil)
	w.identities(nil, network("a"))
	eventually(t, "it waits for the namespace to be Sluice's", func() bool {
		return slices.ContainsFunc(r.Status().Listeners, func(l ListenerStatus) bool { return strings.Contains(l.Error, "sluicectl adopt") })
	})
	if err := ns.Do(func() error {
		return exec.Command("sh", "-ec", "ip link property add dev lo altname sluice:metadata:a; sysctl net.ipv4.tcp_migrate_req=1").Run()
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it listens beside the other one", r.serving(2))
	answers := make(chan string, 40)
	for range cap(answers) {
		go func() {
			got, err := w.get("ovnmeta-a", "10.0.0.5", four, false)
			answers <- fmt.Sprint(got, err)
		}()
	}
	tcp, ok := theirs.(*net.TCPListener)
	if !ok {
		t.Fatalf("%T", theirs)
	}
	eventually(t, "some wait with the other one", func() bool {
		var n uint32
		return withFD(tcp, func(fd int) (err error) { n, err = waiting(fd); return err }) == nil && n > 0
	})
	if err := theirs.Close(); err != nil {
		t.Error(err)
	}
	for range cap(answers) {
		if got := <-answers; got != "200 inst-a a 10.0.0.5<nil>" {
			t.Error(got)
		}
	}
}

// Networks come and go with the file; who asks is found on the network whose namespace the
// request came in by.
func TestNetworks(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b"} {
		w.namespace("ovnmeta-"+name, networkSetup()...)
	}
	cfg := w.config()
	cfg.Steered, cfg.Store = false, &w.store
	r := start(t, cfg, nil)
	w.identities(nil, network("a"))
	eventually(t, "a is served", r.serving(2))
	w.identities(nil, network("a"), network("b"))
	eventually(t, "both are served", r.serving(4))
	for _, name := range []string{"a", "b"} {
		for from, want := range map[string]string{
			"10.0.0.5": "200 inst-NAME NAME 10.0.0.5", "10.0.0.6": "404 This address belongs to no instance that is known here.",
			"fe80::f816:3eff:fe00:5%tap1": "200 inst-NAME NAME fe80::f816:3eff:fe00:5", "fe80::a9fe:a9fe%tap1": "404 This address belongs to no instance that is known here.",
		} {
			to := four
			if strings.Contains(from, ":") {
				to = link
			}
			if got, err := w.get("ovnmeta-"+name, from, to, false); err != nil || got != strings.ReplaceAll(want, "NAME", name) {
				t.Errorf("%s on %s: %q %v, want %q", from, name, got, err, want)
			}
		}
	}
	if got := w.store.String(); got != "network4-ovnmeta-a network4-ovnmeta-b network6-ovnmeta-a network6-ovnmeta-b" {
		t.Errorf("stored: %s", got)
	}
	// Nothing is steered, and the heart says that the proxy runs.
	eventually(t, "a beat", func() bool { return w.beats.Load() > 0 })
	// The device is made anew, and the socket is on the old one.
	w.run("nsenter --net=%s/ovnmeta-a ip link del tap0", w.dir)
	for _, command := range networkSetup() {
		w.run("nsenter --net=%s/ovnmeta-a ip %s", w.dir, command)
	}
	eventually(t, "the new device is served", func() bool {
		got, err := w.get("ovnmeta-a", "fe80::f816:3eff:fe00:5%tap1", link, false)
		return err == nil && strings.HasPrefix(got, "200")
	})
	// One goes.
	b := w.client("ovnmeta-b", "10.0.0.5")
	defer b.CloseIdleConnections()
	if got, err := ask(b, four); err != nil || !strings.HasPrefix(got, "200") {
		t.Fatal(got, err)
	}
	a := network("a")
	a.IPv6 = false
	w.identities(nil, a)
	eventually(t, "b is not served any more", func() bool { return r.serving(1)() && r.Status().Connections == 0 })
	eventually(t, "what is stored follows", func() bool { return w.store.String() == "network4-ovnmeta-a" })
	if _, err := w.get("ovnmeta-b", "10.0.0.5", four, false); err == nil {
		t.Error("b answers")
	}
}

// The connections of a port that goes are closed, and no others.
func TestPortGoes(t *testing.T) {
	w := newWorld(t)
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	w.identities([]identity.Port{red, blue})
	r := start(t, w.config(), nil)
	eventually(t, "it serves", r.serving(2))
	for _, from := range []string{"100.64.0.7", "100.64.0.8"} {
		c := w.client(namespace.DefaultProxy, from)
		defer c.CloseIdleConnections()
		if got, err := ask(c, four); err != nil {
			t.Fatal(got, err)
		}
	}
	if n := r.Status().Connections; n != 2 {
		t.Fatalf("%d connections", n)
	}
	w.identities([]identity.Port{blue})
	eventually(t, "red's is closed", func() bool { return r.Status().Connections == 1 })
	other := blue
	other.Instance = "inst-other"
	w.identities([]identity.Port{other})
	eventually(t, "that of another instance is closed, too", func() bool { return r.Status().Connections == 0 })
}

// One service hands over to the next under load: nothing is refused, and nothing breaks
// off.
func TestHandOver(t *testing.T) {
	w := newWorld(t)
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	w.namespace("ovnmeta-a", networkSetup()...)
	w.identities([]identity.Port{red, blue}, network("a"))
	cfg := w.config()
	cfg.Store, cfg.Proxy.Backend = &w.store, echo{time.Millisecond}
	r := start(t, cfg, nil)
	eventually(t, "it serves", r.serving(4))
	var stop atomic.Bool
	var asked atomic.Int64
	var guests sync.WaitGroup
	for _, g := range []struct{ ns, from, to, want string }{
		{namespace.DefaultProxy, "100.64.0.7", four, "200 inst-red net-red 10.0.0.5"},
		{namespace.DefaultProxy, "fd6d:0:0:8:f816:3eff:fe00:5", six, "200 inst-blue net-blue fe80::f816:3eff:fe00:5"},
		{"ovnmeta-a", "10.0.0.5", four, "200 inst-a a 10.0.0.5"},
		{"ovnmeta-a", "fe80::f816:3eff:fe00:5%tap1", link, "200 inst-a a fe80::f816:3eff:fe00:5"},
	} {
		for i := range 4 {
			guests.Go(func() {
				c := w.client(g.ns, g.from)
				c.Transport.(*http.Transport).DisableKeepAlives = i%2 == 0
				defer c.CloseIdleConnections()
				for !stop.Load() {
					if got, err := ask(c, g.to); err != nil || got != g.want {
						t.Errorf("%s in %s: %q %v", g.from, g.ns, got, err)
						return
					}
					asked.Add(1)
				}
			})
		}
	}
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		r = start(t, cfg, r.handOver())
	}
	time.Sleep(100 * time.Millisecond)
	stop.Store(true)
	guests.Wait()
	if n := asked.Load(); n < 100 {
		t.Errorf("%d requests", n)
	}
	if s := r.Status(); s.Heart.Error != "" {
		t.Errorf("%+v", s)
	}
	t.Logf("%d requests", asked.Load())
}

// A socket of before is used only in the place that it is of.
func TestForeignSockets(t *testing.T) {
	w := newWorld(t)
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	w.namespace("ovnmeta-a", networkSetup()...)
	w.namespace("ovnmeta-gone", networkSetup()...)
	w.identities([]identity.Port{red, blue}, network("a"), network("gone"))
	cfg := w.config()
	r := start(t, cfg, nil)
	eventually(t, "it serves", r.serving(6))
	sockets := r.handOver()
	w.remove(namespace.DefaultProxy) // replaced meanwhile
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	w.remove("ovnmeta-gone")
	for i := range sockets { // and one is in another's place
		switch sockets[i].Name {
		case "network4-ovnmeta-a":
			sockets[i].Name = "network6-ovnmeta-a"
		case "network6-ovnmeta-a":
			sockets[i].Name = "network4-ovnmeta-a"
		}
	}
	r = start(t, cfg, sockets)
	eventually(t, "it serves", r.serving(4))
	for _, g := range []struct{ ns, from, to string }{
		{namespace.DefaultProxy, "100.64.0.7", four}, {namespace.DefaultProxy, "fd6d:0:0:8:f816:3eff:fe00:5", six}, {"ovnmeta-a", "10.0.0.5", four}, {"ovnmeta-a", "fe80::f816:3eff:fe00:5%tap1", link},
	} {
		if got, err := w.get(g.ns, g.from, g.to, false); err != nil || !strings.HasPrefix(got, "200") {
			t.Errorf("%s in %s: %q %v", g.from, g.ns, got, err)
		}
	}
	r.end()
	if len(r.before.sockets) != 0 {
		t.Errorf("sockets that nobody wants: %v", r.before.sockets)
	}
}

// Connections that wait and are not taken stop the heart.
func TestAliveness(t *testing.T) {
	inner, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	l := &listening{inner: inner.(*net.TCPListener)}
	now := time.Now()
	if l.alive(now) == nil {
		t.Error("alive before it is served")
	}
	l.begin()
	if err := l.alive(now); err != nil {
		t.Error(err)
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp4", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 2 {
		c := dial()
		defer c.Close()
	}
	if err := l.alive(now); err != nil {
		t.Errorf("at the first look: %v", err)
	}
	if l.alive(now.Add(time.Second)) == nil {
		t.Error("alive though nothing is taken")
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := l.alive(now.Add(2 * time.Second)); err != nil {
		t.Errorf("one was taken: %v", err)
	}
	if l.alive(now.Add(3*time.Second)) == nil {
		t.Error("alive though the other is not taken")
	}
	if c, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := l.alive(now.Add(4 * time.Second)); err != nil {
		t.Errorf("all were taken: %v", err)
	}
	close(l.served)
	if l.alive(now) == nil {
		t.Error("alive though it is served no longer")
	}
}

// What the heart writes to may come later, fail, and be replaced.
func TestHeart(t *testing.T) {
	var opened, closed, beats int
	var fail error
	h := heart{open: func() (Beater, error) {
		if fail != nil {
			return nil, fail
		}
		opened++
		return beater{&beats, &closed, &fail}, nil
	}}
	fail = errors.New("no pins")
	now := time.Now()
	if h.beat(now) == nil {
		t.Error("it beats without pins")
	}
	fail = nil
	for i := range 8 {
		if err := h.beat(now.Add(time.Duration(i) * beatInterval)); err != nil {
			t.Error(err)
		}
	}
	if opened != 2 || closed != 1 || beats != 8 {
		t.Errorf("opened %d times, closed %d, %d beats", opened, closed, beats)
	}
	h.close()
	if closed != 2 {
		t.Errorf("closed %d times", closed)
	}
}

type beater struct {
	beats, closed *int
	fail          *error
}

func (b beater) Beat() error  { *b.beats++; return *b.fail }
func (b beater) Close() error { *b.closed++; return nil }

// Hundreds of networks cost little: 50 here, 500 with SLUICE_NIGHTLY.
func TestManyNetworks(t *testing.T) {
	n := 50
	if nightly.On() {
		n = 500
	}
	w := newWorld(t)
	networks := make([]identity.Network, 0, n)
	for i := range n {
		name := fmt.Sprint("n", i)
		w.namespace("ovnmeta-"+name, "addr add 169.254.169.254/32 dev lo", "addr add 10.0.0.5/32 dev lo")
		one := network(name)
		one.IPv6 = false
		networks = append(networks, one)
	}
	w.identities(nil, networks...)
	cfg := w.config()
	cfg.Steered = false
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	r := start(t, cfg, nil)
	eventually(t, "all are served", r.serving(n))
	took := time.Since(begin)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d networks: served after %s, %d bytes of heap and stack each", n, took, (int64(after.HeapInuse+after.StackInuse)-int64(before.HeapInuse+before.StackInuse))/int64(n))
	if took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, i := range []int{0, n / 2, n - 1} {
		name := fmt.Sprint("n", i)
		if got, err := w.get("ovnmeta-"+name, "10.0.0.5", four, false); err != nil || got != "200 inst-"+name+" "+name+" 10.0.0.5" {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

// Who asks while the process ends is answered, or hears nothing; nobody is reset.
func TestNobodyIsResetInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	w.identities([]identity.Port{red})
	r := start(t, w.config(), nil)
	eventually(t, "it serves", r.serving(2))
	var answered, silent atomic.Int64
	var askers errgroup.Group
	for range 16 {
		askers.Go(func() error {
			for {
				c := w.client(namespace.DefaultProxy, "100.64.0.7")
				c.Timeout = time.Second / 2
				got, err := ask(c, four)
				c.CloseIdleConnections()
				var late net.Error
				switch {
				case err == nil && strings.HasPrefix(got, "200"):
					answered.Add(1)
				case errors.Is(err, syscall.ECONNREFUSED):
					return nil // nobody listens any more: the program drops what says so
				case errors.As(err, &late) && late.Timeout():
					silent.Add(1)
				default:
					return fmt.Errorf("%q %w", got, err)
				}
			}
		})
	}
	eventually(t, "some are answered", func() bool { return answered.Load() > 100 })
	r.end()
	if err := askers.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d answered, %d heard nothing", answered.Load(), silent.Load())
}

// Ports that are steered are served also by a proxy whose configuration says that none
// are; without the file nobody is told that they are served.
func TestSteeredAgainstConfiguration(t *testing.T) {
	w := newWorld(t)
	w.namespace(namespace.DefaultProxy, steeredSetup()...)
	cfg := w.config()
	cfg.Steered = false
	r := start(t, cfg, nil)
	eventually(t, "the heart waits for the file", func() bool { return r.Status().Heart.Error != "" })
	if !r.Status().Heart.Last.IsZero() {
		t.Error("the heart beat without a file")
	}
	w.identities([]identity.Port{red})
	eventually(t, "it listens where requests are steered to", r.serving(2))
	if got, err := w.get(namespace.DefaultProxy, "100.64.0.7", four, false); !strings.HasPrefix(got, "200") || err != nil {
		t.Errorf("%q %v", got, err)
	}
	eventually(t, "the heart beats", func() bool { return !r.Status().Heart.Last.IsZero() && r.Status().Heart.Error == "" })
	w.identities(nil)
	eventually(t, "it listens nowhere", r.serving(0))
}

// No namespace is left behind that somebody entered.
func TestOwnNamespaceStays(t *testing.T) {
	home, err := cookieIn(netns.Namespace{})
	if err != nil || home == 0 {
		t.Fatal(home, err)
	}
	w := newWorld(t)
	w.namespace("x")
	other, err := cookieIn(netns.At(w.dir + "/x"))
	if err != nil || other == home {
		t.Errorf("%d and %d, %v", home, other, err)
	}
	if again, err := cookieIn(netns.Namespace{}); err != nil || again != home {
		t.Errorf("%d and then %d, %v", home, again, err)
	}
}

// A kernel without IPv6 has one steered listener, and the heart beats with it.
func TestWithoutIPv6(t *testing.T) {
	was := hasIPv6
	hasIPv6 = func() bool { return false }
	defer func() { hasIPv6 = was }()
	w := newWorld(t)
	w.namespace(namespace.DefaultProxy, "addr add 169.254.169.254/32 dev lo", "addr add 100.64.0.7/32 dev lo")
	w.namespace("ovnmeta-a", networkSetup()...)
	w.identities([]identity.Port{red}, network("a"))
	r := start(t, w.config(), nil)
	defer r.end() // before it is another kernel again
	eventually(t, "it serves, and its heart beats", func() bool { return r.serving(2)() && w.beats.Load() > 2 })
	if l := r.Status().Listeners; len(l) != 2 {
		t.Errorf("it listens, or waits, in %+v", l)
	}
	if got, err := w.get(namespace.DefaultProxy, "100.64.0.7", four, false); err != nil || got != "200 inst-red net-red 10.0.0.5" {
		t.Errorf("%q %v", got, err)
	}
}
