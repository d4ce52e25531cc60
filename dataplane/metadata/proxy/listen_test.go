package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// echo answers with who asks.
type echo struct{}

func (echo) ServeMetadata(w http.ResponseWriter, _ *http.Request, id Identity) Outcome {
	_, _ = io.WriteString(w, id.Instance+" "+id.Network)
	return Answered
}

// One server listens at the same two addresses in many namespaces, and knows by the
// listener which network asks; also before the addresses are there.
func TestOneServerForManyNamespaces(t *testing.T) {
	const networks = 20
	s := New(Config{Backend: echo{}})
	var names []string
	var listeners []net.Listener
	run := func(command string) {
		t.Helper()
		if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	served := make(chan error, 2*networks)
	for i := range networks {
		name := fmt.Sprintf("slmd%d-%d", os.Getpid(), i)
		names = append(names, name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
		run(fmt.Sprintf("ip netns add %[1]s; ip -n %[1]s link set lo up; ip -n %[1]s link add tap0 type veth peer name tap1; ip -n %[1]s link set tap0 up; ip -n %[1]s link set tap1 up", name))
		resolve := func(local, _ netip.AddrPort) (Identity, bool) {
			return Identity{Port: name, Instance: fmt.Sprint("inst-", i), Network: local.Addr().WithZone("").String()}, true
		}
		for _, at := range []netip.Addr{Address4, Address6.WithZone("tap1")} {
			l, err := Listen(t.Context(), netns.Named(name), netip.AddrPortFrom(at, Port))
			if err != nil {
				t.Fatal(err)
			}
			listeners = append(listeners, l)
			go func() { served <- s.Serve(l, resolve) }()
		}
	}
	for _, name := range names { // after the listeners
		run(fmt.Sprintf("ip -n %[1]s addr add %[2]s/32 dev tap1; ip -n %[1]s addr add %[3]s/128 dev tap1 nodad", name, Address4, Address6))
	}
	for i, name := range names {
		for _, at := range []string{fmt.Sprintf("http://%s/", Address4), fmt.Sprintf("http://[%s%%25tap1]/", Address6)} {
			want := fmt.Sprintf("inst-%d %s", i, Address4)
			if at[7] == '[' {
				want = fmt.Sprintf("inst-%d %s", i, Address6)
			}
			if got, err := get(t.Context(), netns.Named(name), at); err != nil || got != want {
				t.Errorf("%s in %s: %q %v, want %q", at, name, got, err, want)
			}
		}
	}
	for _, l := range listeners {
		_ = l.Close()
	}
	for range 2 * networks {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if _, err := Listen(t.Context(), netns.Named("slmd-none"), netip.AddrPortFrom(Address4, Port)); err == nil {
		t.Error("there is a listener in no namespace")
	}
}

// get asks from inside a namespace.
func get(ctx context.Context, ns netns.Namespace, at string) (string, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, to string) (c net.Conn, err error) {
		err = ns.Do(func() (err error) { c, err = (&net.Dialer{}).DialContext(ctx, network, to); return err })
		return c, err
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	a, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return string(text), err
}
