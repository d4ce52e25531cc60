package owned_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// inNamespace says that the process is the one in a network namespace of its own.
const inNamespace = "SLUICE_TEST_IN_NAMESPACE"

// Owned looks at the namespace of its process, so the tests run in another one.
func TestMain(m *testing.M) {
	if os.Getenv(inNamespace) != "" {
		os.Exit(m.Run())
	}
	again := exec.Command(os.Args[0], os.Args[1:]...)
	again.Env = append(os.Environ(), inNamespace+"=1")
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := again.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pin(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "prog_overlay_in")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// Without the switch's database the rest is listed and removed all the same, and
// the programs stay as long as a device needs them.
func TestProgramsOutliveDevices(t *testing.T) {
	ctx := context.Background()
	f := kernel.NewFabric(kernel.FabricConfig{Attach: func(context.Context, string, int) error { return nil }})
	if _, err := f.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "sluice0"}, PeerName: "sluice0-ovs"}
	if err := errors.Join(netlink.LinkAdd(pair), netlink.LinkAddAltName(pair, "sluice:bridge:br-ex")); err != nil {
		t.Fatal(err)
	}
	dir, file := pin(t)

	remove := func() (removed []string, err error) {
		things, err := owned.List(ctx, ovs.New(ovs.Config{}), dir)
		if !errors.Is(err, reconcile.ErrNotReady) {
			t.Errorf("a switch that was not read: %v", err)
		}
		err = nil
		for _, thing := range things {
			if e := thing.Remove(ctx); e != nil {
				err = errors.Join(err, e)
				continue
			}
			removed = append(removed, thing.What)
		}
		return removed, err
	}
	removed, err := remove()
	if err == nil || !strings.Contains(err.Error(), "sluice0: still there") {
		t.Errorf("removing with a pair that cannot be removed: %v", err)
	}
	if len(removed) != 1 || removed[0] != "device sluice-vxlan" {
		t.Errorf("removed %q", removed)
	}
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("the pin of the program: %v", err)
	}
	if err := netlink.LinkDel(pair); err != nil {
		t.Fatal(err)
	}
	if removed, err = remove(); err != nil || len(removed) != 1 {
		t.Errorf("removed %q: %v", removed, err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pin of the program: %v", err)
	}
}

// A pair that a crash left before it had its mark goes; one of somebody else's
// with such a name stays.
func TestUnmarkedPairs(t *testing.T) {
	ctx := context.Background()
	add := func(name, mac string) *netlink.Veth {
		v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-ovs"}
		if mac != "" {
			v.HardwareAddr, _ = net.ParseMAC(mac)
		}
		if err := netlink.LinkAdd(v); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = netlink.LinkDel(v) })
		return v
	}
	add("sluice3", "fe:73:6c:75:00:03")
	others := []*netlink.Veth{add("sluice4", ""), add("sluice5", "fe:73:6c:75:00:04"), add("sluice06", "fe:73:6c:75:00:06"), add("sluice7", "fe:73:6c:75:00:07")}
	if err := netlink.LinkSetUp(others[3]); err != nil {
		t.Fatal(err)
	}
	things, err := owned.List(ctx, ovs.New(ovs.Config{}), t.TempDir())
	if !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("a switch that was not read: %v", err)
	}
	if len(things) != 1 || things[0].What != "unfinished veth pair sluice3" {
		t.Fatalf("listed %+v", things)
	}
	for range 2 {
		if err := things[0].Remove(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := netlink.LinkByName("sluice3"); !errors.As(err, &netlink.LinkNotFoundError{}) {
		t.Errorf("sluice3: %v", err)
	}
	for _, v := range others {
		if _, err := netlink.LinkByName(v.Name); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// What metadata has goes: programs off taps, which stay, and the proxy's namespace. Those
// of networks cannot be looked at without the switch's database.
func TestMetadata(t *testing.T) {
	ctx := context.Background()
	name := fmt.Sprintf("slow%d", os.Getpid())
	names := namespace.Names{Proxy: name + "-proxy", Prefix: name + "-net-"}
	t.Cleanup(func() { _ = netns.Remove(names.ProxyPath()) })
	dir := bpffs(t)
	pins := owned.MetadataPins(filepath.Join(dir, "sluice"))
	tap := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "tap"}, PeerName: "vm"}
	if err := netlink.LinkAdd(tap); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = netlink.LinkDel(tap) })
	l, err := netlink.LinkByName("tap")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := taps.Load(taps.Config{Dir: pins, StaleAfter: time.Second, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	proxy := namespace.NewProxy(namespace.ProxyConfig{Names: names, Attach: func(_ context.Context, p taps.Proxy) error { return programs.AttachProxy(p.Host) }})
	if _, err := proxy.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(programs.Attach(uint32(l.Attrs().Index)), programs.Close()); err != nil {
		t.Fatal(err)
	}
	things, err := owned.Metadata(ctx, ovs.New(ovs.Config{}), names, pins)
	if !errors.Is(err, reconcile.ErrNotReady) || len(things) != 2 {
		t.Fatalf("%+v, %v", things, err)
	}
	for _, thing := range things {
		if err := thing.Remove(ctx); err != nil {
			t.Errorf("%s: %v", thing.What, err)
		}
	}
	if things, _ := owned.Metadata(ctx, ovs.New(ovs.Config{}), names, pins); len(things) > 0 {
		t.Errorf("left: %+v", things)
	}
	if _, err := os.Stat(pins); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pins: %v", err)
	}
	if _, err := netlink.LinkByName("tap"); err != nil {
		t.Errorf("the tap: %v", err)
	}
	if _, err := netlink.LinkByName(namespace.ProxyHost); !errors.As(err, &netlink.LinkNotFoundError{}) {
		t.Errorf("%s: %v", namespace.ProxyHost, err)
	}
}

// bpffs is a file system of the test's own.
func bpffs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}
