package metadataproxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/haproxy"
)

// Each request of a table gets from the proxy what it gets from the real haproxy with the
// configuration of Neutron's agent; where it does not, decision 17 says so.
func TestLikeHaproxy(t *testing.T) {
	docs, err := os.ReadFile("../../docs/decisions/0017-metadata.md")
	if err != nil {
		t.Fatal(err)
	}
	behind := http.HandlerFunc(behindBoth)
	theirs, ours := runHaproxy(t, behind), runProxy(t, behind)
	if len(rawRequests) != 60 {
		t.Errorf("there are %d requests", len(rawRequests))
	}
	differ := 0
	for _, r := range rawRequests {
		theirs, ours := theirs(r.raw), ours(r.raw)
		if theirs != r.haproxy || ours != r.sluice && r.sluice != "" || r.sluice == "" && ours != r.haproxy {
			t.Errorf("%s: haproxy %q, Sluice %q; the table has %q and %q", r.name, theirs, ours, r.haproxy, r.sluice)
		}
		if r.sluice == "" {
			continue
		}
		differ++
		if line := fmt.Sprintf("| %s | %s | %s |", r.name, r.haproxy, r.sluice); !bytes.Contains(docs, []byte(line)) {
			t.Errorf("docs/decisions/0017-metadata.md lacks %q", line)
		}
	}
	t.Logf("%d requests, %d are answered otherwise", len(rawRequests), differ)
}

// behindBoth answers for Nova, and for the agent that haproxy asks.
func behindBoth(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	status := http.StatusOK
	if n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/status/")); err == nil {
		status = n
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s %s %d", r.Method, r.URL.Path, len(body))
}

// answersTo sends a request, closes the sending side if the request does not ask for that, and puts the statuses of all that comes
// into words, and of what was answered behind what it was asked.
func answersTo(t *testing.T, dial func() (net.Conn, error), raw string) string {
	t.Helper()
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	_, _ = io.WriteString(c, raw)
	if !strings.HasSuffix(raw, closes) {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	in := bufio.NewReader(c)
	var out []string
	for {
		method, _, _ := strings.Cut(raw, " ")
		a, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			break
		}
		body, _ := io.ReadAll(a.Body)
		switch {
		case a.StatusCode == http.StatusContinue:
			continue
		case a.StatusCode == http.StatusOK:
			out = append(out, fmt.Sprintf("200 %s", body))
		default:
			out = append(out, fmt.Sprint(a.StatusCode))
		}
	}
	if len(out) == 0 {
		return "closed"
	}
	return strings.TrimSpace(strings.Join(out, ", "))
}

// runHaproxy starts it in a namespace, with an agent.
func runHaproxy(t *testing.T, agent http.Handler) func(raw string) string {
	t.Helper()
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "agent"), filepath.Join(dir, "haproxy.conf")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: agent, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	if err := os.WriteFile(file, haproxy.Config("net", socket, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("slmh%d", os.Getpid())
	for _, c := range []string{"ip netns add " + name, "ip -n " + name + " link set lo up", "ip -n " + name + " addr add 169.254.169.254/32 dev lo"} {
		words := strings.Fields(c)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", c, err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	h := exec.Command("nsenter", "--net=/run/netns/"+name, "--", "haproxy", "-db", "-q", "-f", file)
	h.Stderr = os.Stderr
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Process.Kill(); _ = h.Wait() })
	dial := func() (c net.Conn, err error) {
		err = netns.Named(name).Do(func() (err error) {
			c, err = net.DialTimeout("tcp", "169.254.169.254:80", 10*time.Second)
			return err
		})
		return c, err
	}
	eventually(t, "haproxy listens", func() bool {
		c, err := dial()
		if err == nil {
			_ = c.Close()
		}
		return !errors.Is(err, syscall.ECONNREFUSED)
	})
	return func(raw string) string { return answersTo(t, dial, raw) }
}

// runProxy serves one port on loopback.
func runProxy(t *testing.T, handler http.Handler) func(raw string) string {
	t.Helper()
	behind := httptest.NewServer(handler)
	t.Cleanup(behind.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(behind.Listener.Addr().String())
	backend, err := proxy.NewNova(proxy.NovaConfig{Hosts: []string{at.Addr().String()}, Port: int(at.Port()), Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := proxy.New(proxy.Config{Backend: backend, MaxConnections: 1000})
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(l, func(_, remote netip.AddrPort) (proxy.Identity, bool) {
			return proxy.Identity{Port: "p", Instance: "i", Project: "p", Network: "n", Address: remote.Addr(), Assigned: true}, true
		})
	}()
	t.Cleanup(func() {
		_ = l.Close()
		if err := errors.Join(<-done, s.Shutdown(t.Context())); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	dial := func() (net.Conn, error) { return net.Dial("tcp4", l.Addr().String()) }
	return func(raw string) string { return answersTo(t, dial, raw) }
}
