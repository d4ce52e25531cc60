package metadataproxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// Many networks in namespaces, of which each has a machine with the same addresses: one
// process serves them all, for little, and goes on with them when it starts itself anew.
// 50 here, 500 with SLUICE_NIGHTLY.
func TestManyNetworks(t *testing.T) {
	n := 50
	if nightly.On() {
		n = 500
	}
	w := newWorld(t)
	networks := make([]identity.Network, 0, n)
	guest := netip.MustParseAddr("10.0.0.5")
	for i := range n {
		name := fmt.Sprint("net", i)
		w.namespace("ovnmeta-"+name, "addr add 169.254.169.254/32 dev lo", "addr add 10.0.0.5/32 dev lo", "link add tap0 type veth peer name tap1", "link set tap1 up", "link set tap0 up",
			"addr add fe80::a9fe:a9fe/64 dev tap1 nodad", "addr add fe80::f816:3eff:fe00:5/64 dev tap1 nodad")
		networks = append(networks, identity.Network{Name: name, Namespace: "ovnmeta-" + name, Device: "tap1", IPv6: true, Members: []identity.Member{
			{Name: "p-" + name, Instance: "inst-" + name, Project: name, Addresses: []intent.PortAddress{{MAC: intent.MAC{0xfa, 0x16, 0x3e, 0, 0, 5}, Addr: guest}}},
		}})
	}
	p := w.start(nil)
	alone := memory(t, p.Process.Pid)
	w.identities([]identity.Port{red}, networks...)
	begin := time.Now()
	all := func() bool {
		s, err := p.status()
		return err == nil && s.Ready && s.Networks == n && len(s.Listeners) == 2*n+2
	}
	eventually(t, "all are served", all)
	t.Logf("%d networks: served within %s of the file; %d kB of memory, %d kB without; %s of CPU time so far", n, time.Since(begin).Round(time.Millisecond), memory(t, p.Process.Pid), alone, cpu(t, p.Process.Pid))
	for range 2 {
		for i := 0; i < n; i += max(1, n/25) {
			name := fmt.Sprint("net", i)
			if got, want := w.fromNetwork("ovnmeta-"+name, "10.0.0.5", "169.254.169.254"), fmt.Sprintf("200 inst-%[1]s %[1]s 10.0.0.5 0", name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			if got, want := w.fromNetwork("ovnmeta-"+name, "fe80::f816:3eff:fe00:5%tap1", "fe80::a9fe:a9fe%tap1"), fmt.Sprintf("200 inst-%[1]s %[1]s fe80::f816:3eff:fe00:5 0", name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		p.again(syscall.SIGHUP)
	}
	before := cpu(t, p.Process.Pid)
	time.Sleep(3 * time.Second)
	t.Logf("%s of CPU time in 3 s without requests", cpu(t, p.Process.Pid)-before)
	w.identities([]identity.Port{red}, networks[:1]...)
	eventually(t, "the others are not served any more", func() bool {
		s, err := p.status()
		return err == nil && len(s.Listeners) == 4
	})
}

// fromNetwork asks from an address in the namespace of a network.
func (w *world) fromNetwork(name, from, to string) string {
	w.t.Helper()
	source := netip.MustParseAddr(from)
	var c net.Conn
	err := netns.At(filepath.Join(w.netns, name)).Do(func() (err error) {
		d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: source.AsSlice(), Zone: source.Zone()}}
		c, err = d.Dial("tcp", net.JoinHostPort(to, "80"))
		return err
	})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, "GET /openstack HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		return err.Error()
	}
	return answer(w.t, c)
}

// memory is the anonymous memory of a process, in kB.
func memory(t *testing.T, pid int) (kB int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kB); err == nil {
			return kB
		}
	}
	t.Fatal("no RssAnon")
	return 0
}

// cpu is the CPU time that a process has used; the kernel counts it in hundredths.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var user, system int
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// The rights of the systemd unit are enough, and so is a file system that it may read
// alone.
func TestRightsOfUnit(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/systemd/sluiced-metadata.service")
	if err != nil {
		t.Fatal(err)
	}
	rights := "-all"
	for line := range strings.Lines(string(unit)) {
		if names, ok := strings.CutPrefix(strings.TrimSpace(line), "CapabilityBoundingSet="); ok {
			for _, name := range strings.Fields(names) {
				rights += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
			}
		}
	}
	if rights == "-all" {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	w := newWorld(t)
	// A certificate of another user, as Neutron's are.
	if err := os.Chown(filepath.Join(w.dir, "secret"), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatal(err)
	}
	p := w.start(func(c *exec.Cmd) {
		c.Args = append([]string{"setpriv", "--bounding-set", rights, "--inh-caps", rights, "--no-new-privs"}, c.Args...)
		c.Path = path
	})
	for range 2 {
		for _, from := range []string{atRed, atBlue6} {
			if got := w.ask(w.guest(from), "GET", "/", nil, nil); !strings.HasPrefix(got, "200 ") {
				t.Errorf("%s: %s", from, got)
			}
		}
		p.again(syscall.SIGHUP)
	}
	a, err := http.Get("http://" + w.health + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if a.StatusCode != 200 {
		t.Errorf("/readyz: %d", a.StatusCode)
	}
}
