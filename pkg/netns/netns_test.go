package netns_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newNamespace(t *testing.T, suffix string) netns.Namespace {
	t.Helper()
	name := fmt.Sprintf("slns%d%s", os.Getpid(), suffix)
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Fatalf("ip netns add: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	return netns.Named(name)
}

func identity(t *testing.T, n netns.Namespace) string {
	t.Helper()
	var id string
	if err := n.Do(func() (err error) { id, err = os.Readlink("/proc/thread-self/ns/net"); return err }); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestDo(t *testing.T) {
	a, b := newNamespace(t, "a"), newNamespace(t, "b")
	own := identity(t, netns.Namespace{})
	ids := map[string]bool{own: true, identity(t, a): true, identity(t, b): true}
	if len(ids) != 3 {
		t.Fatalf("want 3 different namespaces, got %v", ids)
	}
	want := errors.New("told")
	if err := a.Do(func() error { return want }); !errors.Is(err, want) {
		t.Fatalf("error of the function: %v", err)
	}
	if err := netns.At("/nowhere").Do(func() error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("missing namespace: %v", err)
	}
	if err := a.Do(func() error { runtime.Goexit(); return nil }); err == nil {
		t.Fatal("a function that ended its goroutine passed as a success")
	}
}

// Many goroutines in and out of namespaces leave no thread behind in one.
func TestThreadsComeHome(t *testing.T) {
	a := newNamespace(t, "a")
	own := identity(t, netns.Namespace{})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				if err := a.Do(func() error { return nil }); err != nil {
					t.Error(err)
				}
				if id, _ := os.Readlink("/proc/thread-self/ns/net"); id != own {
					t.Errorf("goroutine runs in %s, want %s", id, own)
				}
			}
		})
	}
	wg.Wait()
}

func TestNetlink(t *testing.T) {
	a := newNamespace(t, "a")
	err := a.Netlink(func(h *netlink.Handle) error {
		links, err := h.LinkList()
		if err == nil && (len(links) == 0 || links[0].Attrs().Name != "lo") {
			err = fmt.Errorf("links: %v", links)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A namespace has what prepare made of it, is known to ip-netns(8), and outlives the
// thread that made it.
func TestCreate(t *testing.T) {
	dir := t.TempDir() + "/netns"
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	named := fmt.Sprintf("slns%dc", os.Getpid())
	for _, path := range []string{dir + "/first", filepath.Join(netns.RunDir, named)} {
		t.Cleanup(func() { _ = netns.Remove(path) })
		ns, err := netns.Create(path, func() error { return exec.Command("ip", "link", "set", "lo", "up").Run() })
		if err != nil {
			t.Fatal(err)
		}
		if there, err := netns.Exists(path); !there || err != nil {
			t.Errorf("%s: %t, %v", path, there, err)
		}
		if identity(t, ns) == identity(t, netns.Namespace{}) {
			t.Error("it is the process's own namespace")
		}
		if err := ns.Do(func() error { return exec.Command("sh", "-c", "ip link show up | grep -q lo:").Run() }); err != nil {
			t.Errorf("lo is not up: %v", err)
		}
		if _, err := netns.Create(path, func() error { return nil }); !errors.Is(err, os.ErrExist) {
			t.Errorf("again: %v", err)
		}
	}
	if out, err := exec.Command("ip", "netns", "exec", named, "true").CombinedOutput(); err != nil {
		t.Errorf("ip netns exec: %v: %s", err, out)
	}
	for range 2 {
		if err := netns.Remove(dir + "/first"); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := netns.Exists(dir + "/first"); there || err != nil {
		t.Errorf("removed: %t, %v", there, err)
	}
}

func TestCreateFails(t *testing.T) {
	dir := t.TempDir() + "/netns"
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	own := identity(t, netns.Namespace{})
	broken := errors.New("not prepared")
	if _, err := netns.Create(dir+"/ns", func() error { return broken }); !errors.Is(err, broken) {
		t.Fatalf("error: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if identity(t, netns.Namespace{}) != own {
		t.Error("the thread did not come home")
	}
	// A file with something in it is somebody's; an empty one is in nobody's way.
	if err := os.WriteFile(dir+"/other", []byte("text"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := netns.Create(dir+"/other", func() error { return nil }); !errors.Is(err, os.ErrExist) {
		t.Errorf("in place of another file: %v", err)
	}
	taken := map[string]func(path string) error{
		"directory":            func(path string) error { return os.Mkdir(path, 0o755) },
		"dangling link":        func(path string) error { return os.Symlink(path+"-nowhere", path) },
		"socket":               func(path string) error { l, err := net.Listen("unix", path); _ = l; return err },
		"mount of a file":      func(path string) error { return mountEmpty(t, path) },
		"link to another file": func(path string) error { return os.Symlink(dir+"/other", path) },
	}
	for name, take := range taken {
		path := dir + "/" + strings.ReplaceAll(name, " ", "-")
		if err := take(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadDir(dir)
		if _, err := netns.Create(path, func() error { return nil }); !errors.Is(err, os.ErrExist) {
			t.Errorf("in place of a %s: %v", name, err)
		}
		if there, err := netns.Exists(path); there || err != nil && name != "dangling link" {
			t.Errorf("a %s: %t, %v", name, there, err)
		}
		if after, _ := os.ReadDir(dir); len(after) != len(before) {
			t.Errorf("in place of a %s something was made: %v, was %v", name, after, before)
		}
	}
	if err := os.WriteFile(dir+"/ns", nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if there, err := netns.Exists(dir + "/ns"); there || err != nil {
		t.Errorf("a file: %t, %v", there, err)
	}
	if _, err := netns.Create(dir+"/ns", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := netns.Remove(dir + "/ns"); err != nil {
		t.Fatal(err)
	}
}

// mountEmpty mounts an empty file on another one.
func mountEmpty(t *testing.T, path string) error {
	from := t.TempDir() + "/empty"
	for _, file := range []string{from, path} {
		if err := os.WriteFile(file, nil, 0o444); err != nil {
			return err
		}
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	return unix.Mount(from, path, "none", unix.MS_BIND, "")
}
