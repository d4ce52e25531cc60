package bpf_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	sluiceebpf "github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// exposing is a machine with a VM's port of the default VRF behind sluice0, and the
// far end of its NIC as a packet socket.
type exposing struct {
	*machine
	wire     int
	nic, far net.HardwareAddr
}

func newExposing(t *testing.T, hook sluiceebpf.Hook) *exposing {
	e := &exposing{machine: newMachine(t, hook)}
	e.start(1500)
	apply(t, e.d.VRFs(), map[intent.VNI]intent.VRF{intent.DefaultVRF: {VNI: intent.DefaultVRF, Index: 9}})
	apply(t, e.d.Gateways(), map[intent.GatewayKey]intent.Gateway{vm: {Key: vm, VNI: intent.DefaultVRF, Kind: intent.GatewayPort, LogicalPort: "vm"}})
	apply(t, e.d.Routes(), routes(local(intent.DefaultVRF, "203.0.113.5/32", vm), local(intent.DefaultVRF, "2001:db8:113::5/128", vm)))
	sysctl(t, e.node, "1", "ipv4/conf/sluice0/forwarding", "ipv6/conf/sluice0/forwarding")
	e.routes()
	e.inside(e.node, func() (err error) {
		e.nic, err = hardware("under")
		return err
	})
	e.inside(e.machine.far, func() (err error) {
		if e.far, err = hardware("under"); err == nil {
			e.wire, err = packetSocket("under")
		}
		return err
	})
	t.Cleanup(func() { unix.Close(e.wire) })
	return e
}

// routes are the host's into the underlay.
func (e *exposing) routes() {
	e.t.Helper()
	for _, line := range []string{
		"198.51.100.0/24 via 192.0.2.9", "2001:db8:9::/64 via 2001:db8:ffff::9", "198.18.6.0/24 via inet6 2001:db8:ffff::9",
	} {
		command(e.t, "ip -n "+filepath.Base(e.node.String())+" route replace "+line)
	}
}

func hardware(device string) (net.HardwareAddr, error) {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	return i.HardwareAddr, nil
}

func (e *exposing) attach() {
	e.t.Helper()
	e.inside(e.node, func() error {
		apply(e.t, e.d.UnderlayDevices(), map[string]intent.UnderlayDevice{"under": {Name: "under"}})
		return nil
	})
}

// listed is what the driver reads back.
func (e *exposing) listed(want map[string]intent.UnderlayDevice) {
	e.t.Helper()
	e.inside(e.node, func() error {
		got, err := e.d.UnderlayDevices().List(context.Background())
		if err != nil {
			return err
		}
		if len(got) != len(want) || got["under"] != want["under"] {
			e.t.Errorf("listed %+v, want %+v", got, want)
		}
		return nil
	})
}

// index is the NIC's.
func (e *exposing) index() (index int) {
	e.t.Helper()
	e.inside(e.node, func() error {
		i, err := net.InterfaceByName("under")
		if err == nil {
			index = i.Index
		}
		return err
	})
	return index
}

func (e *exposing) programs(want int) {
	e.t.Helper()
	e.inside(e.node, func() error {
		i, err := net.InterfaceByName("under")
		if err != nil {
			return err
		}
		if n := attachedPrograms(e.t, e.hook, i.Index); n != want {
			e.t.Errorf("%d programs on the NIC, want %d", n, want)
		}
		return nil
	})
}

// through sends packets of both families from the wire to the VM and back.
func (e *exposing) through() {
	e.t.Helper()
	for _, in := range [][]byte{under4("198.51.100.1", "203.0.113.5"), under6("2001:db8:9::1", "2001:db8:113::5")} {
		in = changed(changed(in, 0, e.nic...), 6, e.far...)
		if _, err := unix.Write(e.wire, in); err != nil {
			e.t.Fatal(err)
		}
		out := e.read(e.ovs, func(b []byte) bool { return bytes.HasPrefix(b, vmMAC[:]) })
		forwarded(nextHopMAC, vmMAC)(e.t, decode(in), decode(out))
	}
	for _, out := range [][]byte{
		vmOut4("203.0.113.5", "198.51.100.1"), vmOut6("2001:db8:113::5", "2001:db8:9::1"),
		vmOut4("203.0.113.5", "192.0.2.9"), vmOut6("2001:db8:113::5", "2001:db8:ffff::9"), // on the link
		vmOut4("203.0.113.5", "198.18.6.1"), // by a next hop of IPv6
	} {
		e.ovsFrame(out)
		got := e.read(e.wire, func(b []byte) bool { return isUDP(b, 7777) })
		forwarded(intent.MAC(e.nic), intent.MAC(e.far))(e.t, decode(out), decode(got))
	}
}

func isUDP(b []byte, port layers.UDPPort) bool {
	u, ok := decode(b).Layer(layers.LayerTypeUDP).(*layers.UDP)
	return ok && u.DstPort == port
}

// read reads up to the frame that is looked for.
func (e *exposing) read(fd int, is func([]byte) bool) []byte {
	e.t.Helper()
	buf := make([]byte, 2048)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			e.t.Fatalf("nothing came: %v", err)
		}
		if is(buf[:n]) {
			return buf[:n]
		}
	}
}

// host sends something to the node's own address, which its own stack answers.
func (e *exposing) host() {
	e.t.Helper()
	for _, a := range []netip.Addr{local4, local6} {
		family, address := "udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
		if a.Is6() {
			family = "udp6"
		}
		var c *net.UDPConn
		e.inside(e.node, func() (err error) {
			c, err = net.ListenUDP(family, address)
			return err
		})
		_ = c.SetReadDeadline(time.Now().Add(patience))
		e.inside(e.machine.far, func() error {
			to, err := net.DialUDP(family, nil, c.LocalAddr().(*net.UDPAddr))
			if err != nil {
				return err
			}
			_, err = to.Write([]byte("hello"))
			return errors.Join(err, to.Close())
		})
		if n, _, err := c.ReadFromUDP(make([]byte, 16)); err != nil || n != 5 {
			e.t.Errorf("the host did not get what was sent to %s: %d bytes, %v", a, n, err)
		}
		c.Close()
	}
}

// On real devices, with each hook: both ways, beside the host's traffic and that of
// tenants; the kernel looks after the neighbours.
func TestDevicesOfUnderlay(t *testing.T) {
	there := map[string]intent.UnderlayDevice{"under": {Name: "under"}}
	for _, hook := range []sluiceebpf.Hook{sluiceebpf.HookTCX, sluiceebpf.HookClsact} {
		t.Run(hook.String(), func(t *testing.T) {
			e := newExposing(t, hook)
			e.programs(0)
			e.attach()
			e.attach()
			e.programs(1)
			e.listed(there)
			e.through()
			e.host()
			e.traffic()
			counted, drops := counts(t, e.d)
			for reason, n := range drops {
				if n > 0 {
					t.Errorf("%d packets were dropped for %v", n, reason)
				}
			}
			if counted.Packets != 7+8 {
				t.Errorf("%d packets were counted, want 15", counted.Packets)
			}
			e.overRestart()
			e.listed(there)
			e.comesBack()
			e.cleanedUp()
		})
	}
}

// overRestart ends the process, and replaces the program in place.
func (e *exposing) overRestart() {
	e.t.Helper()
	e.d.Close()
	e.through()
	e.start(1400)
	e.programs(1)
	e.through()
}

// comesBack takes the NIC away and makes another one of that name.
func (e *exposing) comesBack() {
	e.t.Helper()
	old := e.index()
	node, far := filepath.Base(e.node.String()), filepath.Base(e.machine.far.String())
	command(e.t, "ip -n "+node+" link del under")
	e.listed(map[string]intent.UnderlayDevice{"under": {}})
	e.inside(e.node, func() error {
		errs := e.d.UnderlayDevices().Apply(context.Background(), []reconcile.Row[string, intent.UnderlayDevice]{{Key: "under", Value: intent.UnderlayDevice{Name: "under"}}})
		if len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrNotReady) {
			e.t.Errorf("without the NIC: %v", errs)
		}
		return nil
	})
	e.listed(nil)
	for _, line := range []string{
		"-n " + node + " link add under type veth peer name under netns " + far,
		"-n " + node + " addr add 192.0.2.1/24 dev under", "-n " + node + " addr add 2001:db8:ffff::1/64 dev under nodad",
		"-n " + far + " addr add 192.0.2.9/24 dev under", "-n " + far + " addr add 2001:db8:ffff::9/64 dev under nodad",
		"-n " + node + " link set under up", "-n " + far + " link set under up",
	} {
		command(e.t, "ip "+line)
	}
	e.routes()
	unix.Close(e.wire)
	e.inside(e.node, func() (err error) {
		_, err = running(e.t, "under")
		return err
	})
	e.inside(e.machine.far, func() (err error) {
		if e.far, err = hardware("under"); err == nil {
			e.wire, err = packetSocket("under")
		}
		return err
	})
	e.inside(e.node, func() (err error) {
		e.nic, err = hardware("under")
		return err
	})
	e.attach()
	e.listed(map[string]intent.UnderlayDevice{"under": {Name: "under"}})
	e.programs(1)
	e.through()
	if now := e.index(); now == old {
		e.t.Errorf("the new NIC has the index of the old one, %d", old)
	}
	if left, _ := filepath.Glob(filepath.Join(e.dir, "link_underlay_in_*")); len(left) > 1 {
		e.t.Errorf("pins %v are left", left)
	}
}

// cleanedUp takes the program off, puts it on again, and removes all that is pinned:
// the NIC is the host's as before.
func (e *exposing) cleanedUp() {
	e.t.Helper()
	e.inside(e.node, func() error {
		return errors.Join(append(e.d.UnderlayDevices().Delete(context.Background(), []string{"under"}),
			e.d.UnderlayDevices().Delete(context.Background(), []string{"under"})...)...)
	})
	e.programs(0)
	e.listed(nil)
	e.attach()
	e.programs(1)
	e.d.Close()
	e.inside(e.node, func() error { return sluiceebpf.Remove(e.dir, sluiceebpf.Fabric) })
	e.programs(0)
	if _, err := os.Stat(e.dir); !errors.Is(err, os.ErrNotExist) {
		e.t.Errorf("the pin directory is left: %v", err)
	}
	e.host()
}

// A device that carries no Ethernet is refused, and so is a name that cannot be one.
// Others' programs are left alone, also before Sluice's.
func TestUnderlayDevicesOfOthers(t *testing.T) {
	ns, _ := namespace(t)
	dir := bpffs(t)
	if err := ns.Do(func() error {
		d := load(t, sluiceebpf.Config{Dir: dir, Node: node(), Limits: fewRows})
		for _, name := range []string{"lo", "", "a-name-that-is-too-long"} {
			errs := d.UnderlayDevices().Apply(context.Background(), []reconcile.Row[string, intent.UnderlayDevice]{{Key: name, Value: intent.UnderlayDevice{Name: name}}})
			if len(errs) != 1 || errs[0] == nil || errors.Is(errs[0], reconcile.ErrNotReady) {
				t.Errorf("device %q: %v", name, errs)
			}
		}
		there := map[string]intent.UnderlayDevice{"sluice0": {Name: "sluice0"}}
		apply(t, d.UnderlayDevices(), there)
		nic, err := net.InterfaceByName("sluice0")
		if err != nil {
			return err
		}
		foreign, err := link.AttachTCX(link.TCXOptions{Interface: nic.Index, Program: passing(t), Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
		if errors.Is(err, link.ErrNotSupported) {
			return nil
		}
		if err != nil {
			return err
		}
		defer foreign.Close()
		apply(t, d.UnderlayDevices(), there)
		if got, err := d.UnderlayDevices().List(context.Background()); err != nil || got["sluice0"] != there["sluice0"] {
			t.Errorf("listed %+v, %v", got, err)
		}
		if n := attachedPrograms(t, sluiceebpf.HookTCX, nic.Index); n != 2 {
			t.Errorf("%d programs, want 2", n)
		}
		return errors.Join(d.UnderlayDevices().Delete(context.Background(), []string{"sluice0"})...)
	}); err != nil {
		t.Fatal(err)
	}
}

// A qdisc of another kind that is on the NIC already, with filters of others, is used
// and kept.
func TestUnderlayDeviceWithIngressQdisc(t *testing.T) {
	ns, index := namespace(t)
	dir := bpffs(t)
	foreign := func(pref int) *netlink.BpfFilter {
		return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1,
			Protocol: unix.ETH_P_ALL, Priority: uint16(pref)}, Fd: passing(t).FD(), Name: "others", DirectAction: true}
	}
	if err := ns.Do(func() error {
		d := load(t, sluiceebpf.Config{Dir: dir, Node: node(), Hook: sluiceebpf.HookClsact, Limits: fewRows})
		ingress := &netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS}}
		if err := errors.Join(netlink.QdiscAdd(ingress), netlink.FilterAdd(foreign(49))); err != nil {
			return err
		}
		there := map[string]intent.UnderlayDevice{"sluice0": {Name: "sluice0"}}
		apply(t, d.UnderlayDevices(), there)
		wantList(t, d.UnderlayDevices(), there)
		if n := attachedPrograms(t, sluiceebpf.HookClsact, index); n != 2 {
			t.Errorf("%d filters, want 2", n)
		}
		if errs := d.UnderlayDevices().Delete(context.Background(), []string{"sluice0"}); errs != nil {
			return errors.Join(errs...)
		}
		if n := attachedPrograms(t, sluiceebpf.HookClsact, index); n != 1 {
			t.Errorf("%d filters of others, want 1", n)
		}
		// One that is first is in the way, and is said so.
		if err := netlink.FilterAdd(foreign(1)); err != nil {
			return err
		}
		errs := d.UnderlayDevices().Apply(context.Background(), []reconcile.Row[string, intent.UnderlayDevice]{{Key: "sluice0", Value: there["sluice0"]}})
		if len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrForeign) {
			t.Errorf("with a filter in the place of ours: %v", errs)
		}
		wantList(t, d.UnderlayDevices(), map[string]intent.UnderlayDevice{"sluice0": {}})
		return errors.Join(d.UnderlayDevices().Delete(context.Background(), []string{"sluice0"})...)
	}); err != nil {
		t.Fatal(err)
	}
}
