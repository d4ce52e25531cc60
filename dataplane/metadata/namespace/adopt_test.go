package namespace_test

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// agent makes what neutron-ovn-metadata-agent makes, and a guest beside it.
func (n *node) agent() {
	n.t.Helper()
	n.host(strings.NewReplacer("NET", n.ns+"-net-"+red, "NODE", n.ns, "GUEST", n.ns+"-guest").Replace(`
		ip netns add NET
		ip -n NODE link add tap2f0d7ac1-00 type veth peer name tap2f0d7ac1-01
		ip -n NODE link set tap2f0d7ac1-01 netns NET
		ip -n NET link set tap2f0d7ac1-01 address fa:16:3e:01:02:03
		ip -n NODE link set tap2f0d7ac1-00 mtu 1442; ip -n NET link set tap2f0d7ac1-01 mtu 1442
		ip -n NODE link set tap2f0d7ac1-00 up; ip -n NET link set tap2f0d7ac1-01 up; ip -n NET link set lo up
		ip -n NET addr add 10.0.0.2/24 brd + dev tap2f0d7ac1-01; ip -n NET addr add 10.0.1.2/24 brd + dev tap2f0d7ac1-01
		ip -n NET addr add 169.254.169.254/32 dev tap2f0d7ac1-01; ip -n NET addr add fe80::a9fe:a9fe/128 dev tap2f0d7ac1-01 nodad
		# In place of its rule of iptables that fills checksums in.
		ip netns exec NET ethtool -K tap2f0d7ac1-01 tx off`))
	n.guest()
	n.run(`ovs-vsctl add-port br-int tap2f0d7ac1-00 -- set interface tap2f0d7ac1-00 external_ids:iface-id=port-` + red + ``)
	n.until("the port is known", func() bool { _, there, err := n.sw.FindPort("tap2f0d7ac1-00"); return there && err == nil })
}

func option(options ...int) func(int) error {
	return func(fd int) error {
		for _, o := range options {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o, 1); err != nil {
				return err
			}
		}
		return nil
	}
}

// What the agent made is foreign, is adopted under requests, and needs nothing anew; a
// listener beside the one that haproxy has opened takes over from it, and no request is
// refused.
func TestAdopt(t *testing.T) {
	n := newNode(t)
	n.withSwitch()
	n.agent()
	d := n.networks()
	want := tableOf(network(red))
	// As haproxy opens its own (socket(7)).
	old := n.listen("tcp4", "169.254.169.254:80", "haproxy", option(unix.SO_REUSEADDR, unix.SO_REUSEPORT))
	sleep := n.inside(red, "sleep 300 >/dev/null 2>&1 & echo $!")
	defer n.host("kill " + strings.TrimSpace(sleep))

	rows := []reconcile.Row[string, intent.MetadataNetwork]{{Key: red, Value: want[red]}}
	if errs := d.Apply(t.Context(), rows); len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrForeign) {
		t.Fatalf("before it is adopted: %v", errs)
	}
	n.expect(d, "before it is adopted", table{})
	adoptable, strangers, err := d.Adoptable(t.Context())
	if err != nil || len(strangers) > 0 || len(adoptable) != 1 {
		t.Fatalf("%+v, %+v, %v", adoptable, strangers, err)
	}
	a := adoptable[0]
	if a.Network != red || len(a.Unmarked) != 3 || !a.Pair || !a.Listening || !slices.ContainsFunc(a.Processes, func(p namespace.Process) bool { return p.Name == "sleep" }) {
		t.Errorf("adoptable: %+v", a)
	}

	var asked, failed atomic.Int32
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := n.ask("tcp4", "169.254.169.254:80"); got != "haproxy" && got != "sluice" {
				t.Errorf("a request failed: %s", got)
				failed.Add(1)
			}
			asked.Add(1)
		}
	}()
	defer func() { close(stop); <-done; t.Logf("%d requests, %d failed", asked.Load(), failed.Load()) }()
	parts := func(foreign bool) {
		t.Helper()
		all, err := d.Parts(red)
		if err != nil || len(all) != 3 {
			t.Errorf("parts: %+v, %v", all, err)
		}
		for _, p := range all {
			if !p.There || p.Foreign() != foreign || p.Ours == foreign {
				t.Errorf("part %+v, foreign: want %t", p, foreign)
			}
		}
	}
	parts(true)
	before := n.inside(red, "ip -o link show tap2f0d7ac1-01 | cut -d: -f1")
	for range 2 {
		if err := d.Adopt(t.Context(), red); err != nil {
			t.Fatal(err)
		}
	}
	if adoptable, _, err := d.Adoptable(t.Context()); err != nil || len(adoptable) > 0 {
		t.Errorf("adopted, and still: %+v, %v", adoptable, err)
	}
	parts(false)
	n.apply(d, want)
	n.expect(d, "adopted", want)
	if after := n.inside(red, "ip -o link show tap2f0d7ac1-01 | cut -d: -f1"); after != before {
		t.Errorf("the device was made anew: %s, was %s", after, before)
	}
	n.until("requests go on", func() bool { return asked.Load() > 20 })

	beside, err := proxy.ListenBeside(t.Context(), netns.At(n.names.Path(red)), netip.MustParseAddrPort("169.254.169.254:80"))
	if err != nil {
		t.Fatal(err)
	}
	n.serve(beside, "sluice")
	n.until("the new listener answers", func() bool { return n.ask("tcp4", "169.254.169.254:80") == "sluice" })
	was := asked.Load()
	n.until("requests go on", func() bool { return asked.Load() > was+20 })
	_ = old.Close()
	for range 20 {
		if got := n.ask("tcp4", "169.254.169.254:80"); got != "sluice" {
			t.Fatalf("after the end of the old listener: %s", got)
		}
	}
}

// What ended half way is adopted too; what has another form is somebody else's.
func TestAdoptHalf(t *testing.T) {
	n := newNode(t)
	n.withSwitch()
	n.host(strings.NewReplacer("NS-", n.ns+"-net-", "NODE", n.ns).Replace(`
		ip netns add NS-empty; ip netns add NS-other; ip -n NS-other link add x type veth peer name y`))
	d := n.networks()
	adoptable, strangers, err := d.Adoptable(t.Context())
	if err != nil || len(adoptable) != 1 || adoptable[0].Network != "empty" || len(strangers) != 1 || strangers[0].Network != "other" {
		t.Fatalf("%+v, %+v, %v", adoptable, strangers, err)
	}
	if err := d.Adopt(t.Context(), "other"); !errors.Is(err, reconcile.ErrForeign) {
		t.Errorf("a stranger: %v", err)
	}
	if err := d.Adopt(t.Context(), "none"); err == nil {
		t.Error("what is not there was adopted")
	}
	if err := d.Adopt(t.Context(), "empty"); err != nil {
		t.Fatal(err)
	}
	want := tableOf(network("empty"))
	n.apply(d, want)
	n.expect(d, "adopted", want)
	if err := errors.Join(d.Delete(t.Context(), []string{"empty"})...); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(n.names.Path("other")); err != nil {
		t.Error(err)
	}
}
