package namespace_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

func (n *node) proxy(attach func(context.Context, taps.Proxy) error) *namespace.Proxy {
	return namespace.NewProxy(namespace.ProxyConfig{Node: n.namespace(), Names: n.names, Attach: attach})
}

func TestProxy(t *testing.T) {
	n := newNode(t)
	var attached []taps.Proxy
	p := n.proxy(func(_ context.Context, p taps.Proxy) error {
		if out := n.run("ip -br link show sluice-md0"); len(attached) == 0 && strings.Contains(out, "UP") {
			t.Errorf("up before the program: %s", out)
		}
		attached = append(attached, p)
		return nil
	})
	if there, err := p.Exists(); there || err != nil {
		t.Errorf("before: %t, %v", there, err)
	}
	if what, err := p.Check(); len(what) != 1 || err != nil {
		t.Errorf("before: %q, %v", what, err)
	}
	made, err := p.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(attached) != 1 || attached[0] != made {
		t.Errorf("attached to %+v, made %+v", attached, made)
	}
	n.check(p)
	inside := n.names.ProxyPath()
	for where, wants := range map[string][]string{
		n.run("ip -d link show sluice-md0; ip addr show sluice-md0"): {"NOARP", "UP", "mtu 65535", "altname sluice:metadata", "addrgenmode none", made.HostMAC.String()},
		n.in(inside, "ip -d link show; ip addr; ip route; ip -6 route; ip neigh; ip -6 neigh"): {
			"mtu 65535", "addrgenmode none", made.Inside.String(), "altname sluice:metadata", "inet 169.254.169.254/32", "inet6 fd6e::a9fe:a9fe/128",
			"100.64.0.0/10 via", "fd6d::/32 via", "lladdr " + made.HostMAC.String() + " PERMANENT",
		},
		n.in(inside, "sysctl net.ipv4.ip_forward net.ipv4.conf.sluice-md1.rp_filter net.ipv6.conf.sluice-md1.accept_ra"): {"ip_forward = 0", "rp_filter = 0", "accept_ra = 0"},
	} {
		for _, want := range wants {
			if !strings.Contains(where, want) {
				t.Errorf("%q is not in: %s", want, where)
			}
		}
	}
	if out := n.run("ip addr show sluice-md0"); strings.Contains(out, "inet") {
		t.Errorf("the node's end has addresses: %s", out)
	}
	if out := n.in(inside, "ip -6 addr"); strings.Contains(out, "fe80") || strings.Contains(out, "tentative") {
		t.Errorf("addresses: %s", out)
	}
	again, err := p.Ensure(t.Context())
	if err != nil || again != made {
		t.Errorf("again: %+v, %v, was %+v", again, err, made)
	}
	for range 2 {
		if err := p.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := p.Exists(); there || err != nil || len(n.spaces()) > 0 {
		t.Errorf("removed: %t, %v, %v", there, err, n.spaces())
	}
	if out := n.run("ip link"); strings.Contains(out, "sluice-md") {
		t.Errorf("removed: %s", out)
	}
}

func (n *node) check(p *namespace.Proxy) {
	n.t.Helper()
	if what, err := p.Check(); len(what) > 0 || err != nil {
		n.t.Fatalf("not as it should be: %q, %v", what, err)
	}
}

// Whatever somebody changes is seen, and mended without making the rest anew.
func TestProxyMends(t *testing.T) {
	n := newNode(t)
	p := n.proxy(nil)
	made, err := p.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inside := n.names.ProxyPath()
	for _, tc := range []struct {
		where, damage string
		anew          bool
	}{
		{"", "ip link set sluice-md0 down", false},
		{"", "ip link set sluice-md0 mtu 1500", false},
		{"", "ip link set sluice-md0 arp on", false},
		{"", "ip link set sluice-md0 address 02:00:00:00:00:09", false},
		{"", "sysctl -qw net.ipv6.conf.sluice-md0.disable_ipv6=0", false},
		{"", "ip link del sluice-md0", true},
		{inside, "ip link del sluice-md1", true},
		{inside, "ip link set sluice-md1 down", false},
		{inside, "ip link set lo down", false},
		{inside, "ip link set sluice-md1 mtu 1000", false},
		{inside, "ip link set sluice-md1 arp on", false},
		{inside, "ip link set sluice-md1 address 02:00:00:00:00:09", false},
		{inside, "ethtool -K sluice-md1 tx off", false},
		{inside, "ip addr flush dev sluice-md1", false},
		{inside, "ip addr add 10.0.0.1/24 dev sluice-md1", false},
		{inside, "ip addr del 169.254.169.254/32 dev sluice-md1", false},
		{inside, "ip route del 100.64.0.0/10", false},
		{inside, "ip -6 route del fd6d::/32", false},
		{inside, "ip route replace 100.64.0.0/10 dev sluice-md1", false},
		{inside, "ip neigh flush nud permanent dev sluice-md1; ip -6 neigh flush nud permanent dev sluice-md1", false},
		{inside, "sysctl -qw net.ipv4.ip_forward=1", false},
		{inside, "sysctl -qw net.ipv4.conf.all.rp_filter=2", false},
		{inside, "sysctl -qw net.ipv6.conf.sluice-md1.disable_ipv6=1", false},
		{inside, "sysctl -qw net.ipv6.conf.sluice-md1.addr_gen_mode=0", false},
		{inside, "ip link set sluice-md1 name other", true},
		{inside, "ip link set sluice-md1 netns 1", true},
	} {
		where := tc.where
		if where == "" {
			where = "/run/netns/" + n.ns
		}
		n.in(where, tc.damage)
		if what, err := p.Check(); len(what) == 0 || err != nil {
			t.Errorf("not seen: %s: %q, %v", tc.damage, what, err)
		}
		got, err := p.Ensure(t.Context())
		if err != nil {
			t.Fatalf("after %s: %v", tc.damage, err)
		}
		if (got.Host != made.Host) != tc.anew {
			t.Errorf("after %s: made anew %t", tc.damage, got.Host != made.Host)
		}
		made = got
		if what, err := p.Check(); len(what) > 0 || err != nil {
			t.Errorf("after %s: %q, %v", tc.damage, what, err)
		}
	}
	// The namespace itself: the outer end went with the inner one.
	if err := netns.Remove(inside); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.check(p)
}

func TestProxyAttachFails(t *testing.T) {
	n := newNode(t)
	broken := errors.New("no program")
	if _, err := n.proxy(func(context.Context, taps.Proxy) error { return broken }).Ensure(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("error: %v", err)
	}
	if out := n.run("ip -br link show sluice-md0"); !strings.Contains(out, "DOWN") {
		t.Fatalf("not down: %s", out)
	}
}

// What is not Sluice's is an error, and stays as it is.
func TestProxyForeign(t *testing.T) {
	for name, script := range map[string]string{
		"device": "ip -n NS link add sluice-md0 type bridge",
		"veth":   "ip -n NS link add sluice-md0 type veth peer name x",
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.host(strings.ReplaceAll(script, "NS", n.ns))
			before := n.run("ip -d link") + strings.Join(n.spaces(), " ")
			p := n.proxy(nil)
			if _, err := p.Ensure(t.Context()); !errors.Is(err, reconcile.ErrForeign) {
				t.Errorf("error: %v", err)
			}
			err := p.Remove()
			if !errors.Is(err, reconcile.ErrForeign) {
				t.Errorf("removal: %v", err)
			}
			if after := strings.TrimSuffix(n.run("ip -d link")+strings.Join(n.spaces(), " "), n.names.ProxyPath()); after != before {
				t.Errorf("%s\nwas\n%s", after, before)
			}
		})
	}
}

// Where something else has the name of the namespace it is made by another one, and that stays as it
// is; when that has gone the namespace keeps its name.
func TestProxyNameTaken(t *testing.T) {
	for name, script := range map[string]string{
		"directory":                  "mkdir AT",
		"dangling link":              "ln -s AT-nowhere AT",
		"link to a file":             "touch DIR/file; ln -s DIR/file AT",
		"link to itself":             "ln -s AT AT",
		"file":                       "echo text > AT",
		"bind mount of a file":       "echo text > DIR/file; touch AT; mount --bind DIR/file AT",
		"bind mount of an empty one": "touch DIR/file AT; mount --bind DIR/file AT",
		"socket":                     "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"AT\")'",
		"namespace of somebody":      "ip netns add $(basename AT)",
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			at := n.names.ProxyPath()
			n.host(strings.NewReplacer("AT", at, "DIR", t.TempDir()).Replace(script))
			look := func() string {
				out, err := exec.Command("sh", "-c", "stat -c '%F %i %s %m' "+at+"; ls -d "+at+"*; true").CombinedOutput()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			before := look()
			p := n.proxy(nil)
			if _, err := p.Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			n.check(p)
			inside := n.names.ProxyPath()
			if inside != at+"-2" || n.names.ProxyServed() != inside {
				t.Errorf("it is %s, and the proxy serves %s", inside, n.names.ProxyServed())
			}
			if out := n.in(inside, "ip addr"); !strings.Contains(out, "169.254.169.254/32") {
				t.Errorf("addresses: %s", out)
			}
			if after := strings.ReplaceAll(look(), inside+"\n", ""); after != before {
				t.Errorf("%s\nwas\n%s", after, before)
			}
			n.host("umount " + at + " 2>/dev/null || true; rm -rf " + at)
			if _, err := p.Ensure(t.Context()); err != nil || n.names.ProxyPath() != inside {
				t.Errorf("the name has come free: %s, %v", n.names.ProxyPath(), err)
			}
			n.check(p)
			if err := p.Remove(); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Ensure(t.Context()); err != nil || n.names.ProxyPath() != at {
				t.Errorf("made anew: %s, %v", n.names.ProxyPath(), err)
			}
		})
	}
}

// A crash between two steps leaves what the next start finishes.
func TestProxyUnfinished(t *testing.T) {
	n := newNode(t)
	if err := os.WriteFile(n.names.ProxyPath(), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	n.run("ip link add sluice-md0 address fe:73:6c:75:a9:fe type veth peer name sluice-md1")
	p := n.proxy(nil)
	if _, err := p.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.check(p)
}

// A connection that comes from a number's address by the outer end is answered there,
// and one that the proxy begins gets no further than the outer end.
func TestProxyCarries(t *testing.T) {
	n := newNode(t)
	p := n.proxy(nil)
	if _, err := p.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ at, from, network string }{
		{"169.254.169.254", "100.64.0.7", "tcp4"},
		{"fd6e::a9fe:a9fe", "fd6d::7:f816:3eff:fe00:5", "tcp6"},
	} {
		at := netip.MustParseAddr(tc.at)
		var l net.Listener
		if err := p.Namespace().Do(func() (err error) {
			l, err = net.Listen(tc.network, netip.AddrPortFrom(at, 80).String())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				got <- err.Error()
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "hello")
			got <- c.RemoteAddr().String()
		}()
		// The node's end is fail-closed, so the test lends it the guest's address.
		bits := map[string]string{"tcp4": "/32", "tcp6": "/128"}[tc.network]
		n.run(`sysctl -qw net.ipv6.conf.sluice-md0.disable_ipv6=0 net.ipv4.conf.sluice-md0.rp_filter=0
			ip addr add ` + tc.from + bits + ` dev sluice-md0 nodad
			ip route replace ` + tc.at + bits + ` dev sluice-md0 src ` + tc.from + `
			ip neigh replace ` + tc.at + ` lladdr fe:73:6d:75:a9:fe dev sluice-md0 nud permanent`)
		var answer []byte
		err := n.namespace().Do(func() error {
			c, err := net.DialTimeout(tc.network, netip.AddrPortFrom(at, 80).String(), 5*time.Second)
			if err != nil {
				return err
			}
			defer c.Close()
			answer, err = io.ReadAll(c)
			return err
		})
		if err != nil || string(answer) != "hello" {
			t.Errorf("from %s: %q, %v", tc.from, answer, err)
		}
		_ = l.Close()
		if remote := <-got; !slices.Contains([]string{tc.from, "[" + tc.from + "]"}, remote[:strings.LastIndex(remote, ":")]) {
			t.Errorf("the proxy saw %s, not %s", remote, tc.from)
		}
	}
}
