package bpf_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

var tapHooks = []pinned.Hook{pinned.HookAuto, pinned.HookTCX, pinned.HookClsact}

// What else is on a tap stays, before and behind ours, over restarts and at the end.
func TestTapsAttach(t *testing.T) {
	for _, hook := range tapHooks {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			dir := bpffs(t)
			if err := ns.Do(func() error { return attachTaps(t, hook, dir, index) }); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// onDevice are the programs of a device's ingress in the order that they are asked.
func onDevice(t *testing.T, hook pinned.Hook, index int) (ids []ebpf.ProgramID) {
	t.Helper()
	if hook.Pick() == pinned.HookTCX {
		res, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range res.Programs {
			ids = append(ids, p.ID)
		}
		return ids
	}
	filters, err := netlink.FilterList(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: index}}, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(filters, func(a, b netlink.Filter) int { return int(a.Attrs().Priority) - int(b.Attrs().Priority) })
	for _, f := range filters {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Name != pinned.RefuseName {
			ids = append(ids, ebpf.ProgramID(b.Id))
		}
	}
	return ids
}

// foreignOn attaches a program that is not Sluice's.
func foreignOn(t *testing.T, hook pinned.Hook, index int) (id ebpf.ProgramID) {
	t.Helper()
	prog := passing(t)
	info, err := prog.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ = info.ID()
	if hook.Pick() == pinned.HookTCX {
		l, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: prog, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return id
	}
	// The qdisc of one who filters what comes in, and knows no clsact.
	ingress := &netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS}}
	filter := &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 1, Protocol: 3},
		Fd: prog.FD(), Name: "theirs", DirectAction: true}
	if err := errors.Join(netlink.QdiscAdd(ingress), netlink.FilterAdd(filter)); err != nil {
		t.Fatal(err)
	}
	return id
}

func pinnedID(t *testing.T, dir, name string) ebpf.ProgramID {
	t.Helper()
	p, err := pinned.Open(dir, name)
	if err != nil || p == nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer p.Close()
	id, _ := p.ID()
	return id
}

// planned is what a start would do that wants the program on one tap; 0: on none.
func planned(t *testing.T, dir string, hook pinned.Hook, tap uint32, want ...string) {
	t.Helper()
	r, err := taps.Inspect(dir, hook)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	wanted := map[uint32]string{}
	if tap != 0 {
		wanted[tap] = "tap"
	}
	changes, err := r.Changes(time.Minute)
	more, moreErr := r.Attachments("md", 0, wanted)
	if err := errors.Join(err, moreErr); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range append(changes, more...) {
		got = append(got, c.Action+" "+c.Table+" "+c.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("planned: %q, want %q", got, want)
	}
}

// attachTaps runs in the namespace.
func attachTaps(t *testing.T, hook pinned.Hook, dir string, index int) error {
	theirs := foreignOn(t, hook, index)
	want := func(when string, ids ...ebpf.ProgramID) {
		t.Helper()
		if hook.Pick() == pinned.HookClsact {
			slices.Reverse(ids) // the first priority was taken
		}
		if got := onDevice(t, hook, index); !slices.Equal(got, ids) {
			t.Errorf("%s: the device has the programs %v, want %v", when, got, ids)
		}
	}
	listed := func(r interface{ Attached() ([]uint32, error) }, ifindexes ...uint32) {
		t.Helper()
		if got, err := r.Attached(); err != nil || !slices.Equal(got, ifindexes) {
			t.Errorf("attached: %v, %v, want %v", got, err, ifindexes)
		}
	}
	tap := uint32(index)
	planned(t, dir, hook, tap, "add map guests4_v1", "add map guests6_v1", "add map heartbeat_v1", "add map numbers_v1", "add map proxy_v1",
		"add map steered_v1", "add map taps_v1", "add program proxy_in", "add program tap_in", "add attachment proxy_in on md", "add attachment tap_in on tap")
	d := loadTaps(t, dir, hook)
	listed(d)
	planned(t, dir, hook, tap, "add attachment proxy_in on md", "add attachment tap_in on tap")
	if err := errors.Join(d.Attach(tap), d.Attach(tap)); err != nil {
		return err
	}
	first := pinnedID(t, dir, "tap_in")
	want("attached", first, theirs)
	listed(d, tap)
	d.Close()
	r, err := taps.Inspect(dir, hook)
	if err != nil {
		return err
	}
	defer r.Close()
	listed(r, tap)
	planned(t, dir, hook, tap, "add attachment proxy_in on md")
	device, err := net.InterfaceByIndex(index)
	if err != nil {
		return err
	}
	planned(t, dir, hook, 0, "add attachment proxy_in on md", "delete attachment tap_in on "+device.Name)
	if c, err := r.Changes(time.Second); err != nil || len(c) != 1 || c[0].Key != "tap_in" || c[0].Actual != "with other constants" {
		t.Errorf("other constants: %+v, %v", c, err)
	}
	// A plain restart changes nothing; other constants replace the program in its place.
	d = loadTaps(t, dir, hook)
	want("after a restart", first, theirs)
	d.Close()
	d, err = taps.Load(taps.Config{Dir: dir, Hook: hook, StaleAfter: time.Second, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer d.Close()
	now := pinnedID(t, dir, "tap_in")
	if now == first {
		t.Error("other constants did not replace the program")
	}
	want("after it was replaced", now, theirs)
	if err := errors.Join(d.Detach(tap), d.Detach(tap)); err != nil {
		return err
	}
	want("detached", theirs)
	listed(d)
	listed(r)
	if err := d.Attach(tap); err != nil {
		return err
	}
	if err := goneTap(t, d, dir); err != nil {
		return err
	}
	listed(d, tap)
	d.Close()
	if err := taps.Remove(dir); err != nil {
		return err
	}
	want("after all was removed", theirs)
	return nil
}

// goneTap: of a tap that is deleted nothing is left.
func goneTap(t *testing.T, d *taps.Taps, dir string) error {
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "tap9"}, PeerName: "tap9-vm"}); err != nil {
		return err
	}
	l, err := netlink.LinkByName("tap9")
	if err != nil {
		return err
	}
	index := uint32(l.Attrs().Index)
	if err := errors.Join(d.Attach(index), netlink.LinkDel(l)); err != nil {
		return err
	}
	if got, err := d.Attached(); err != nil || slices.Contains(got, index) {
		t.Errorf("attached: %v, %v with device %d deleted", got, err, index)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "link_tap_in_"+strconv.Itoa(int(index)))); err != nil || len(left) > 0 {
		t.Errorf("pins %v, %v of a device that is gone", left, err)
	}
	return errors.Join(d.Detach(index), d.Detach(index))
}

// Another hook than before takes over, and leaves one program.
func TestTapsChangeHook(t *testing.T) {
	t.Run("tcx", changeHook)
}

func changeHook(t *testing.T) {
	ns, index := namespace(t)
	dir := bpffs(t)
	err := ns.Do(func() error {
		peer, err := netlink.LinkByName("sluice0-ovs")
		if err != nil {
			return err
		}
		proxy := peer.Attrs().Index
		for _, hook := range []pinned.Hook{pinned.HookClsact, pinned.HookTCX, pinned.HookClsact} {
			d := loadTaps(t, dir, hook)
			if err := errors.Join(d.Attach(uint32(index)), d.AttachProxy(uint32(proxy))); err != nil {
				return err
			}
			for _, h := range []pinned.Hook{pinned.HookTCX, pinned.HookClsact} {
				want := 0
				if h == hook {
					want = 1
				}
				for _, device := range []int{index, proxy} {
					if got := onDevice(t, h, device); len(got) != want {
						t.Errorf("by %s: device %d has the programs %v of %s, want %d", hook, device, got, h, want)
					}
				}
			}
			d.Close()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The proxy's device has nothing before proxy_in, and refuses all without it.
func TestProxyAttach(t *testing.T) {
	for _, hook := range tapHooks {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			dir := bpffs(t)
			err := ns.Do(func() error {
				d := loadTaps(t, dir, hook)
				attached := func(want bool) {
					t.Helper()
					if ok, err := d.ProxyAttached(uint32(index)); ok != want || err != nil {
						t.Errorf("attached %t, %v, want %t", ok, err, want)
					}
				}
				attached(false)
				if err := errors.Join(d.AttachProxy(uint32(index)), d.AttachProxy(uint32(index))); err != nil {
					return err
				}
				attached(true)
				if got, want := onDevice(t, hook, index), pinnedID(t, dir, "proxy_in"); len(got) != 1 || got[0] != want {
					t.Errorf("the device has the programs %v, want %d", got, want)
				}
				if err := netlink.QdiscDel(clsactOf(index)); err != nil {
					return err
				}
				attached(false)
				if err := d.AttachProxy(uint32(index)); err != nil {
					return err
				}
				attached(true)
				if hook.Pick() == pinned.HookTCX {
					foreignOn(t, hook, index)
					if err := d.AttachProxy(uint32(index)); !errors.Is(err, reconcile.ErrForeign) {
						t.Errorf("with a program before it: %v", err)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A daemon with the rights of the systemd unit does all of it, and a proxy its part.
func TestTapsWithRightsOfUnit(t *testing.T) {
	if dir := os.Getenv(rightsDir); dir != "" {
		tapsWithRights(t, dir)
		return
	}
	rights := unitRights(t)
	for _, hook := range []pinned.Hook{pinned.HookTCX, pinned.HookClsact} {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			dir := bpffs(t)
			start := func() {
				c := exec.Command("setpriv", "--bounding-set", rights, "--inh-caps", rights, os.Args[0], "-test.run=^TestTapsWithRightsOfUnit$", "-test.v")
				c.Env = append(os.Environ(), rightsDir+"="+dir, rightsIndex+"="+strconv.Itoa(index), rightsHook+"="+strconv.Itoa(int(hook)))
				var out []byte
				err := ns.Do(func() (err error) {
					out, err = c.CombinedOutput()
					return err
				})
				if err != nil || !strings.Contains(string(out), "attached with rights") {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			start()
			first := pinnedID(t, dir, "tap_in")
			start()
			if again := pinnedID(t, dir, "tap_in"); again != first {
				t.Errorf("a restart replaced program %d by %d", first, again)
			}
		})
	}
}

func tapsWithRights(t *testing.T, dir string) {
	index, err := strconv.Atoi(os.Getenv(rightsIndex))
	hook, errHook := strconv.Atoi(os.Getenv(rightsHook))
	if err := errors.Join(err, errHook); err != nil {
		t.Fatal(err)
	}
	d := loadTaps(t, dir, pinned.Hook(hook))
	beating(t, dir)
	if err := errors.Join(d.Put(here4), d.Put(here6), d.Attach(uint32(index)), d.Detach(uint32(index)), d.Attach(uint32(index)),
		d.SetProxy(taps.Proxy{Host: uint32(index), HostMAC: hostMD, Inside: insideMD})); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Attached(); err != nil || len(got) != 1 {
		t.Fatalf("attached %v, %v", got, err)
	}
	wantSources(t, d, here4, here6)
	if err := errors.Join(d.Remove(here4), d.Remove(here6)); err != nil {
		t.Fatal(err)
	}
	t.Log("attached with rights of the unit")
}
