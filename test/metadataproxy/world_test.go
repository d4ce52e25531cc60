package metadataproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/programs"
)

// program is the sluiced that was built for the tests.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "metadataproxy")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "sluiced")
	code := 1
	if err := programs.LinkInto(dir, "sluiced"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// world is what a proxy is run in.
type world struct {
	t *testing.T
	// dir has its files; netns is the directory of namespaces; bin its program.
	dir, netns, bin string
	config          string
	health          string
	nova            *nova
	log             *buffer
}

var made atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, dir: dir, netns: filepath.Join(dir, "netns"), bin: filepath.Join(dir, "sluiced"), config: filepath.Join(dir, "sluiced.yaml"), log: &buffer{}}
	for _, err := range []error{os.Mkdir(w.netns, 0o700), os.Link(program, w.bin), os.WriteFile(filepath.Join(dir, "secret"), []byte("correct horse\n"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.pin()
	w.health = freeAddress(t)
	w.nova = startNova(t)
	host := netip.MustParseAddrPort(w.nova.Listener.Addr().String())
	w.configure(fmt.Sprintf("backend: nova, nova: {hosts: [%s], port: %d, secretFile: %s/secret}", host.Addr(), host.Port(), dir))
	w.namespace("sluice-metadata",
		"addr add 169.254.169.254/32 dev lo", "addr add fd6e::a9fe:a9fe/128 dev lo nodad",
		"addr add 100.64.0.7/32 dev lo", "addr add 100.64.0.8/32 dev lo", "addr add 100.64.0.9/32 dev lo", "addr add fd6d:0:0:8:f816:3eff:fe00:5/128 dev lo nodad")
	w.identities([]identity.Port{red, blue})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of sluiced metadata:\n%s", w.log)
		}
	})
	return w
}

// pin makes what the proxy's heart beats in, on a bpffs of the test's own.
func (w *world) pin() {
	w.t.Helper()
	dir := filepath.Join(w.dir, "bpf")
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = unix.Mount("bpf", dir, "bpf", 0, "")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	loaded, err := taps.Load(taps.Config{Dir: owned.MetadataPins(filepath.Join(dir, "sluice")), StaleAfter: 3 * time.Second, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = loaded.Close() // what is pinned stays
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// configure writes the configuration with a section metadata.
func (w *world) configure(metadata string) {
	w.t.Helper()
	text := fmt.Sprintf("roles: none\nstateDir: %[1]s/state\nadmin: {socket: %[1]s/d.sock}\ndataplane: {bpffs: %[1]s/bpf/sluice}\nmetadata: {socket: %[1]s/m.sock, listen: %[2]q, %[3]s}\n", w.dir, w.health, metadata)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) identities(ports []identity.Port, networks ...identity.Network) {
	w.t.Helper()
	table, err := identity.NewTable(ports, networks)
	if err == nil {
		err = identity.Write(identity.Path(filepath.Join(w.dir, "state")), table)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

var (
	red  = identity.Port{Name: "p-red", Instance: "inst-red", Project: "red", Network: "net-red", Numbers4: map[identity.Number]netip.Addr{7: netip.MustParseAddr("10.0.0.5")}}
	blue = identity.Port{Name: "p-blue", Instance: "inst-blue", Project: "blue", Network: "net-blue", Numbers4: map[identity.Number]netip.Addr{8: netip.MustParseAddr("10.0.0.5")},
		Numbers6: map[identity.Number]intent.MAC{8: {0xfa, 0x16, 0x3e, 0, 0, 5}}}
)

// What guests ask, and from where.
const (
	atRed, atBlue, atBlue6, atNobody = "100.64.0.7", "100.64.0.8", "fd6d:0:0:8:f816:3eff:fe00:5", "100.64.0.9"
)

// namespace makes one, under a name of its own on this machine.
func (w *world) namespace(name string, setup ...string) {
	w.t.Helper()
	real := fmt.Sprintf("slmp%d-%d", os.Getpid(), made.Add(1))
	commands := append([]string{"ip netns add " + real, "ip -n " + real + " link set lo up"}, setup...)
	for i, c := range commands {
		if i > 1 {
			c = "ip -n " + real + " " + c
		}
		words := strings.Fields(c)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			w.t.Fatalf("%s: %v: %s", c, err, out)
		}
	}
	w.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", real).Run() })
	if err := os.Symlink("/run/netns/"+real, filepath.Join(w.netns, name)); err != nil {
		w.t.Fatal(err)
	}
}

// nova is a stand-in that checks what Nova checks.
type nova struct {
	*httptest.Server
	secret  atomic.Value
	handler atomic.Pointer[http.HandlerFunc]
}

func startNova(t *testing.T) *nova {
	n := &nova{}
	n.secret.Store("correct horse")
	n.Server = httptest.NewServer(n)
	t.Cleanup(n.Close)
	return n
}

func (n *nova) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	for _, name := range []string{"X-Instance-ID", "X-Tenant-ID", "X-Instance-ID-Signature", "X-Forwarded-For"} {
		if len(r.Header.Values(name)) != 1 {
			http.Error(w, name, http.StatusBadRequest)
			return
		}
	}
	secret, _ := n.secret.Load().(string)
	if r.Header.Get("X-Instance-ID-Signature") != proxy.Sign([]byte(secret), r.Header.Get("X-Instance-ID")) {
		http.Error(w, "the signature", http.StatusForbidden)
		return
	}
	if h := n.handler.Load(); h != nil {
		(*h)(w, r)
		return
	}
	fmt.Fprintf(w, "%s %s %s %d", r.Header.Get("X-Instance-ID"), r.Header.Get("X-Tenant-ID"), r.Header.Get("X-Forwarded-For"), len(body))
}

// process is a running sluiced metadata.
type process struct {
	*exec.Cmd
	w    *world
	done chan error
}

// start starts one, and waits until it is ready; with words of a shell before it.
func (w *world) start(change func(*exec.Cmd)) *process {
	w.t.Helper()
	p := w.launch(change)
	p.ready()
	return p
}

func (w *world) launch(change func(*exec.Cmd)) *process {
	w.t.Helper()
	c := exec.Command(w.bin, "metadata", "--config", w.config, "--netns", w.netns)
	c.Stderr, c.Stdout = w.log, w.log
	c.Env = append(os.Environ(), "NOTIFY_SOCKET=")
	if change != nil {
		change(c)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	p := &process{c, w, make(chan error, 1)}
	go func() { p.done <- c.Wait(); close(p.done) }()
	w.t.Cleanup(func() { p.end(syscall.SIGTERM) })
	return p
}

// end ends it by a signal, if it has not ended yet.
func (p *process) end(s syscall.Signal) error {
	p.w.t.Helper()
	select {
	case err := <-p.done:
		return err
	default:
	}
	_ = p.Process.Signal(s)
	select {
	case err := <-p.done:
		return err
	case <-time.After(30 * time.Second):
		_ = p.Process.Kill()
		<-p.done
		return errors.New("it did not end")
	}
}

func (p *process) ready() {
	p.w.t.Helper()
	eventually(p.w.t, "it is ready", func() bool {
		s, err := p.status()
		return err == nil && s.Ready
	})
}

// again has it start itself anew, and waits until it has.
func (p *process) again(s syscall.Signal) {
	p.w.t.Helper()
	p.signal(s)()
}

// signal sends one by which it starts itself anew; what it returns waits until it has.
func (p *process) signal(s syscall.Signal) (wait func()) {
	p.w.t.Helper()
	before, err := p.status()
	if err != nil {
		p.w.t.Fatal(err)
	}
	if err := p.Process.Signal(s); err != nil {
		p.w.t.Fatal(err)
	}
	return func() { p.w.t.Helper(); p.isAnew(before) }
}

func (p *process) isAnew(before status.MetadataProxy) {
	p.w.t.Helper()
	eventually(p.w.t, "it has started itself anew", func() bool {
		now, err := p.status()
		return err == nil && now.Started.After(before.Started) && now.Ready
	})
}

func (p *process) status() (out status.MetadataProxy, err error) {
	return out, p.w.admin("/v1/metadata/proxy", &out)
}

func (w *world) admin(path string, into any) error {
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(w.dir, "m.sock"))
	}}
	defer t.CloseIdleConnections()
	a, err := (&http.Client{Transport: t, Timeout: 5 * time.Second}).Get("http://m" + path)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	return json.NewDecoder(a.Body).Decode(into)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// dial connects from an address in a namespace.
func (w *world) dial(name, from string) (c net.Conn, err error) {
	source := netip.MustParseAddr(from)
	to := "169.254.169.254:80"
	if source.Is6() {
		to = "[fd6e::a9fe:a9fe]:80"
	}
	err = netns.At(filepath.Join(w.netns, name)).Do(func() (err error) {
		d := net.Dialer{Timeout: 30 * time.Second, LocalAddr: &net.TCPAddr{IP: source.AsSlice()}}
		c, err = d.Dial("tcp", to)
		return err
	})
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(90 * time.Second))
	}
	return c, err
}

func (w *world) steered(from string) net.Conn {
	w.t.Helper()
	c, err := w.dial("sluice-metadata", from)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// guest is an HTTP client that connects from an address.
func (w *world) guest(from string) *http.Client {
	t := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return w.dial("sluice-metadata", from) }}
	w.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: 60 * time.Second}
}

func (w *world) ask(c *http.Client, method, path string, header http.Header, body []byte) string {
	w.t.Helper()
	r, err := http.NewRequest(method, "http://169.254.169.254"+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range header {
		r.Header[k] = v
	}
	a, err := c.Do(r)
	if err != nil {
		return err.Error()
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", a.StatusCode, strings.TrimSpace(string(text)))
}

// buffer is a log.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
