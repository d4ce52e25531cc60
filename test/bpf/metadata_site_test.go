package bpf_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// site is a node with the taps of two machines that have the same addresses, each in a
// bridge as a hybrid plug has it, and with the metadata proxy's namespace.
type site struct {
	t     *testing.T
	dir   string
	hook  pinned.Hook
	names map[string]string // of the namespaces, by what they are
	taps  *taps.Taps
	beat  *taps.Heartbeat
	index map[string]uint32 // of devices on the node
}

// The numbers of the machines, of either family.
var siteNumbers = map[string][2]uint32{"vm1": {300, 301}, "vm2": {302, 70000}}

const proxyNet = `
ip -n PROXY link set md1 up
ip -n PROXY addr add 169.254.169.254/32 dev md1
ip -n PROXY addr add fd6e::a9fe:a9fe/128 dev md1 nodad
ip -n PROXY neigh add 169.254.1.1 lladdr HOSTMAC dev md1 nud permanent
ip -n PROXY neigh add fe80::1 lladdr HOSTMAC dev md1 nud permanent
ip -n PROXY route add 100.64.0.0/10 via 169.254.1.1 dev md1 onlink
ip -n PROXY route add fd6d::/32 via fe80::1 dev md1`

const machineNet = `
ip -n NODE link add tapVM type veth peer name eth0 netns VM
ip -n NODE link add brVM type bridge
ip -n NODE link set tapVM master brVM
ip -n NODE link set tapVM up
ip -n NODE link set brVM up
ip -n VM link set eth0 address GUESTMAC addrgenmode none
ip -n VM link set eth0 up
ip -n VM addr add 10.0.0.5/24 dev eth0
ip -n VM addr add fe80::f816:3eff:fe00:5/64 dev eth0 nodad
ip -n VM route add 169.254.0.0/16 dev eth0`

// legacyNet is what answers in Open vSwitch's place, behind the bridge of vm1.
const legacyNet = `
ip -n NODE link add legacy type veth peer name eth0 netns LEGACY
ip -n NODE link set legacy master brvm1
ip -n NODE link set legacy up
ip -n LEGACY link set eth0 up
ip -n LEGACY addr add 10.0.0.2/24 dev eth0
ip -n LEGACY addr add 169.254.169.254/32 dev eth0`

func newSite(t *testing.T, hook pinned.Hook) *site {
	t.Helper()
	s := &site{t: t, dir: bpffs(t), hook: hook, names: map[string]string{}, index: map[string]uint32{}}
	for _, what := range []string{"node", "proxy", "vm1", "vm2", "legacy"} {
		name := fmt.Sprintf("sluice-md-%s%d", what, os.Getpid())
		s.names[what] = name
		command(t, "ip netns add "+name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
		command(t, "ip -n "+name+" link set lo up")
	}
	s.commands("ip -n NODE link add md0 address HOSTMAC mtu 65535 type veth peer name md1 address INSIDEMAC mtu 65535 netns PROXY\nip -n NODE link set md0 addrgenmode none")
	for _, vm := range []string{"vm1", "vm2"} {
		s.commands(strings.NewReplacer("tapVM", "tap"+vm, "brVM", "br"+vm, "-n VM", "-n "+s.names[vm], "netns VM", "netns "+s.names[vm]).Replace(machineNet))
	}
	s.commands(legacyNet)
	s.in("node", func() error {
		for _, device := range []string{"md0", "tapvm1", "tapvm2"} {
			d, err := net.InterfaceByName(device)
			if err != nil {
				return err
			}
			s.index[device] = uint32(d.Index)
		}
		return s.start()
	})
	s.commands("ip -n NODE link set md0 up" + proxyNet)
	for vm, ns := range map[string]string{"vm1": "eth0", "vm2": "eth0", "proxy": "md1"} {
		s.in(vm, func() error { _, err := running(t, ns); return err })
	}
	return s
}

func (s *site) commands(script string) {
	s.t.Helper()
	r := strings.NewReplacer("NODE", s.names["node"], "PROXY", s.names["proxy"], "LEGACY", s.names["legacy"],
		"HOSTMAC", hostMD.String(), "INSIDEMAC", insideMD.String(), "GUESTMAC", vmGuest.String())
	for line := range strings.Lines(strings.TrimSpace(script)) {
		command(s.t, r.Replace(strings.TrimSpace(line)))
	}
}

// in runs f in one of the namespaces.
func (s *site) in(what string, f func() error) {
	s.t.Helper()
	if err := netns.Named(s.names[what]).Do(f); err != nil {
		s.t.Fatal(err)
	}
}

// start loads and attaches everything, with the rows of both machines. It runs on the node.
func (s *site) start() error {
	s.taps = loadTaps(s.t, s.dir, s.hook)
	s.beat = beating(s.t, s.dir)
	err := errors.Join(s.taps.AttachProxy(s.index["md0"]), s.taps.SetProxy(taps.Proxy{Host: s.index["md0"], HostMAC: hostMD, Inside: insideMD}))
	for vm, n := range siteNumbers {
		for _, source := range []taps.Source{
			{IfIndex: s.index["tap"+vm], MAC: vmGuest, Addr: addr(guest4), Number: n[0], Answer: answerM},
			{IfIndex: s.index["tap"+vm], MAC: vmGuest, Number: n[1], Answer: answerM},
		} {
			err = errors.Join(err, s.taps.Put(source))
		}
		err = errors.Join(err, s.taps.Attach(s.index["tap"+vm]))
	}
	return err
}

// serve answers in a namespace with who asks, and with bodies of any size.
func (s *site) serve(what string, addresses ...string) (stop func()) {
	s.t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%s %s %d", what, r.RemoteAddr, n)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, largeBody)) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	var done sync.WaitGroup
	s.in(what, func() error {
		for _, a := range addresses {
			l, err := net.Listen("tcp", a)
			if err != nil {
				return err
			}
			done.Go(func() { _ = server.Serve(l) })
		}
		return nil
	})
	stop = sync.OnceFunc(func() {
		server.Close()
		done.Wait()
	})
	s.t.Cleanup(stop)
	return stop
}

const largeBody = 8 << 20

var proxyListens = []string{"169.254.169.254:80", "[fd6e::a9fe:a9fe]:80"}

// dial connects a machine's port to the metadata address of a family; port 0 is any.
func (s *site) dial(vm string, family int, port uint16) (c net.Conn, err error) {
	local, remote := "10.0.0.5", "169.254.169.254:80"
	dialErr := netns.Named(s.names[vm]).Do(func() error {
		if family == 6 {
			// The number of the device: net remembers those of names, and knows no namespaces.
			eth0, err := net.InterfaceByName("eth0")
			if err != nil {
				return err
			}
			local, remote = fmt.Sprintf("fe80::f816:3eff:fe00:5%%%d", eth0.Index), fmt.Sprintf("[fe80::a9fe:a9fe%%%d]:80", eth0.Index)
		}
		from := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(local), port))
		c, err = (&net.Dialer{LocalAddr: from, Timeout: patience / 2}).Dial("tcp", remote)
		return err
	})
	return c, dialErr
}

// ask sends one request and reads the answer's body.
func (s *site) ask(vm string, family int, port uint16, method, path string, body io.Reader) (string, error) {
	c, err := s.dial(vm, family, port)
	if err != nil {
		return "", err
	}
	defer c.Close()
	// No port waits for late packets after the connection.
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.SetDeadline(time.Now().Add(patience))
	req, err := http.NewRequest(method, "http://metadata"+path, body)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Dial: func(string, string) (net.Conn, error) { return c, nil }}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// isAnswered asks from a machine and compares who it was to the proxy.
func (s *site) isAnswered(vm string, family int, port uint16) {
	s.t.Helper()
	got, err := s.ask(vm, family, port, http.MethodGet, "/", nil)
	if err != nil {
		s.t.Errorf("%s, IPv%d: %v", vm, family, err)
		return
	}
	var by, from string
	if _, err := fmt.Sscan(got, &by, &from); err != nil {
		s.t.Errorf("%s, IPv%d: answer %q", vm, family, got)
		return
	}
	n, guest, ok := identity.Parse(netip.MustParseAddrPort(from).Addr())
	want := siteNumbers[vm][family/6]
	if by != "proxy" || !ok || uint32(n) != want || family == 6 && guest != netip.MustParseAddr(guest6) {
		s.t.Errorf("%s, IPv%d: answered by %s to %s: number %d (%t), guest %s, want the number %d", vm, family, by, from, n, ok, guest, want)
	}
}

var families = []int{4, 6}

func (s *site) until(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not yet: %s", what)
		}
	}
}

// ping sends an echo request and waits for the reply.
func (s *site) ping(vm string, family int) error {
	return netns.Named(s.names[vm]).Do(func() error {
		domain, proto := unix.AF_INET, unix.IPPROTO_ICMP
		message := []byte{8, 0, 0xf7, 0xf5, 0, 7, 0, 3} // with its checksum; that of IPv6 the kernel computes
		var to unix.Sockaddr = &unix.SockaddrInet4{Addr: addr(metadata4).As4()}
		if family == 6 {
			eth0, err := net.InterfaceByName("eth0")
			if err != nil {
				return err
			}
			domain, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
			message[0] = 128
			to = &unix.SockaddrInet6{Addr: addr(metadata6).As16(), ZoneId: uint32(eth0.Index)}
		}
		fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		timeout := unix.NsecToTimeval(patience.Nanoseconds())
		if err := errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout), unix.Sendto(fd, message, 0, to)); err != nil {
			return err
		}
		buf := make([]byte, 256)
		for {
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return fmt.Errorf("no reply: %w", err)
			}
			got := buf[:n]
			if family == 4 {
				got = got[20:]
			}
			if len(got) == 8 && (got[0] == 0 || got[0] == 129) && got[5] == 7 && got[7] == 3 {
				return nil
			}
		}
	})
}
