package ovn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// owned are the rows that a node with router n's gateway port needs.
func owned(n string, hosts bool) []string {
	out := []string{"cr-gw-" + n, "gw-" + n, "sgw-" + n, "in-" + n, "sin-" + n}
	if hosts {
		out = append(out, "vm-"+n)
	}
	return out
}

var annotated = Needs{Hosts: func(_ *Rows, i RouterInterface) bool { return i.Switch.ExternalIDs["neutron_bgpvpn:vni"] != "" }}

// TestFollowerDiscovers: the rows held are exactly those of this node's routers,
// while gateways come, move, and go, and switches come into need and out of it.
func TestFollowerDiscovers(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.provider("other", "physnet2")
	l.nb("lsp-add", "public", "vm-on-provider")
	l.tenant(1, "public", "a1", "a2")
	l.tenant(2, "public", "a2") // of no concern here
	w := l.follow(Config{Needs: annotated})
	base := []string{"ln-public", "ln-other"}

	w.untilPorts("router 1 without hosts", slices.Concat(base, owned("r1", false))...)
	l.nb("set", "Logical_Switch_Port", "sin-r1", `external_ids:neutron_bgpvpn\:vni=1001`)
	w.untilPorts("hosts of the annotated network", slices.Concat(base, owned("r1", true))...)
	if got := w.role(); !got.Gateway || !strings.Contains(got.Reason, "cr-gw-r1 is bound") {
		t.Errorf("role %+v", got)
	}

	l.sb("lsp-unbind", "cr-gw-r1", "--", "lsp-bind", "cr-gw-r1", "a2")
	w.until("the move away", func() bool { return len(w.gateways("r1")) == 0 })
	w.untilPorts("a candidate keeps its rows", slices.Concat(base, owned("r1", true))...)
	if got := w.role(); !got.Gateway || !strings.Contains(got.Reason, "may move") {
		t.Errorf("role %+v", got)
	}
	l.sb("lsp-unbind", "cr-gw-r1", "--", "lsp-bind", "cr-gw-r1", "a1")
	w.until("the move back", func() bool { return slices.Equal(w.gateways("r1"), []string{"cr-gw-r1"}) })

	l.tenant(3, "other", "a1")
	w.untilPorts("a second router", slices.Concat(base, owned("r1", true), owned("r3", false))...)
	l.nb("lr-del", "r3", "--", "ls-del", "net-r3")
	l.nb("--if-exists", "lsp-del", "sgw-r3")
	w.untilPorts("shrink by a router", slices.Concat(base, owned("r1", true))...)
	l.nb("remove", "Logical_Switch_Port", "sin-r1", "external_ids", `neutron_bgpvpn\:vni`)
	w.untilPorts("shrink by hosts", slices.Concat(base, owned("r1", false))...)
	l.nb("lr-del", "r1")
	w.untilPorts("shrink to nothing", base...)
	if got := w.role(); got.Gateway {
		t.Errorf("role %+v", got)
	}
}

func (w *watch) role() (out Role) {
	w.View(func(r *Rows) { out = r.Role() })
	return out
}

// gateways names the gateway ports of a router that are here.
func (w *watch) gateways(router string) (out []string) {
	w.View(func(r *Rows) {
		own, _ := r.OwnChassis()
		for _, id := range r.Routers() {
			if d, _ := r.Datapath(id); d.Name() == router {
				for _, g := range r.GatewayPorts(id, own.UUID) {
					out = append(out, g.Binding.LogicalPort)
				}
			}
		}
	})
	return out
}

// TestFollowerProviderPorts: all ports of a provider switch are followed, and the
// router ports behind them, only while a feature needs them.
func TestFollowerProviderPorts(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.nb("lsp-add", "public", "vm-public")
	l.tenant(1, "public", "a1")
	l.tenant(2, "public", "a2")
	w := l.follow(Config{Needs: Needs{Neighbours: func(r *Rows, g GatewayPort) bool {
		bridge, ok := r.BridgeOf(g.Localnet.Options["network_name"])
		return ok && r.OnlyOVN(bridge)
	}}})
	few := append([]string{"ln-public"}, owned("r1", false)...)
	all := append(few[:len(few):len(few)], "vm-public", "sgw-r2", "gw-r2")
	w.untilPorts("a bridge without others", all...)
	l.vs("add-port", "br-ex", "eth1")
	w.untilPorts("a physical port", few...)
	l.vs("del-port", "br-ex", "eth1", "--", "add-port", "br-ex", "sluice0-ovs",
		"--", "add-port", "br-ex", "patch-ln", "--", "set", "Port", "patch-ln", "external_ids:ovn-localnet-port=ln-public")
	w.untilPorts("only OVN and Sluice", all...)
}

// TestFollowerTaps: a port of a bridge that no network is mapped to is no event.
func TestFollowerTaps(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.vs("add-br", "br-int")
	w := l.follow(Config{})
	w.untilPorts("the start", "ln-public")
	seen := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.seen
	}
	before := seen()
	for n := range 5 {
		l.vs("add-port", "br-int", fmt.Sprint("tap", n))
	}
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=192.0.2.9")
	l.waitFor("the last change", func() (ok bool) {
		w.View(func(r *Rows) { ok = r.External("ovn-encap-ip") == "192.0.2.9" })
		return ok
	})
	if n := seen() - before; n != 1 {
		t.Errorf("%d events, want that of the setting alone", n)
	}
}

// TestFollowerLostConnections: a server that stops changes no row and no other
// database's state; what happened meanwhile is applied on return.
func TestFollowerLostConnections(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	w := l.follow(Config{Needs: Needs{Hosts: func(*Rows, RouterInterface) bool { return true }}, Northbound: l.remote("nb")})
	want := append([]string{"ln-public"}, owned("r1", true)...)
	w.untilPorts("the start", want...)
	l.run("ovs-appctl", "-t", l.path("sb.ctl"), "exit")
	l.waitFor("the loss", func() bool { s := w.Status().InSync; return !s.SB && s.VSwitch && s.NB })
	if got := w.ports(); !slices.Equal(got, sortedNames(want)) {
		t.Errorf("rows after the loss: %v", got)
	}
	l.run("ovsdb-tool", "transact", l.path("sb.db"),
		`["OVN_Southbound",{"op":"update","table":"Port_Binding","where":[["logical_port","==","vm-r1"]],"row":{"mac":"02:00:00:02:00:05 10.10.0.66"}}]`)
	l.serve("sb")
	w.until("the return", func() bool {
		ok := false
		w.View(func(r *Rows) { _, ok = r.Port("vm-r1") })
		return ok
	})
	// northd puts the addresses of the Northbound row back.
	w.untilPorts("the same rows", want...)
}

// TestFollowerProbes: a server that hangs with its connection open is noticed
// within the configured time, and followed again when it answers.
func TestFollowerProbes(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	w := l.follow(Config{InactivityProbe: 100 * time.Millisecond})
	w.untilPorts("the start", "ln-public")
	pid := strings.TrimSpace(l.run("cat", l.path("sb.pid")))
	l.run("kill", "-STOP", pid)
	defer l.run("kill", "-CONT", pid)
	// Without the setting this takes 20 s.
	start := time.Now()
	l.waitFor("the loss", func() bool { return !w.Status().InSync.SB })
	if took := time.Since(start); took > ovsdb.DefaultInactivityProbe {
		t.Errorf("noticed after %v", took)
	}
	l.run("kill", "-CONT", pid)
	w.untilPorts("the return", "ln-public")
}

// TestFollowerFollowsRemote: another ovn-remote is another database, whose rows
// take the place of the old ones at once, when all of them have come.
func TestFollowerFollowsRemote(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	w := l.follow(Config{})
	want := append([]string{"ln-public"}, owned("r1", false)...)
	w.untilPorts("the start", want...)
	l.run("ovsdb-tool", "create", l.path("sb2.db"), "/usr/share/ovn/ovn-sb.ovsschema")
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote="+l.remote("nowhere"))
	l.waitFor("the new remote", func() bool { return !w.Status().InSync.SB })
	if got := w.ports(); !slices.Equal(got, sortedNames(want)) {
		t.Errorf("rows while the new server is away: %v", got)
	}
	// The per-chassis form comes first, as in ovn-controller.
	l.serve("sb2")
	l.run("ovn-sbctl", "--timeout=30", "--db="+l.remote("sb2"), "init")
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote-a1="+l.remote("sb2"))
	w.untilPorts("an empty database")
	l.vs("remove", "Open_vSwitch", ".", "external_ids", "ovn-remote-a1", "--",
		"set", "Open_vSwitch", ".", "external_ids:ovn-remote="+l.remote("sb"))
	w.untilPorts("the first one again", want...)
}

// TestPublish: our keys of this chassis' row, and nothing else.
func TestPublish(t *testing.T) {
	l := newLab(t)
	w := l.follow(Config{})
	if err := w.Publish(map[string]string{"ovn-thing": "x"}); err == nil {
		t.Error("a foreign key was accepted")
	}
	if err := w.Publish(map[string]string{"sluice-api": "[2001:db8::1]:9443"}); err != nil {
		t.Fatal(err)
	}
	get := func() string { return l.sb("get", "Chassis_Private", "a1", "external_ids") }
	want := `{foreign=kept, sluice-api="[2001:db8::1]:9443"}`
	l.waitFor("the keys", func() bool { return get() == want })
	l.sb("remove", "Chassis_Private", "a1", "external_ids", "sluice-api")
	l.waitFor("the key to come back", func() bool { return get() == want })
	if err := w.Status().Publish; err != nil {
		t.Error(err)
	}
}

// TestUnregistered: the tables without a row of this node's name are named while Southbound is in
// sync, for a name of either source; nothing is called published then. The keys come back with the
// row, and under another name they go into that row, though it is followed already.
func TestUnregistered(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1", "a2") // so that a2's rows are followed
	l.sb("create", "Chassis_Private", "name=a2", "chassis="+l.sb("--bare", "--columns=_uuid", "find", "Chassis", "name=a2"))
	w := l.follow(Config{})
	if err := w.Publish(map[string]string{"sluice-version": "1"}); err != nil {
		t.Fatal(err)
	}
	expect := func(what, name string, tables ...string) {
		t.Helper()
		l.waitFor(what, func() bool {
			s := w.Status()
			return s.InSync.SB && s.SystemID == name && slices.Equal(s.Unregistered, tables) && s.Published == (len(tables) == 0)
		})
		if len(tables) > 0 {
			return
		}
		if got := l.sb("get", "Chassis_Private", name, "external_ids:sluice-version"); got != `"1"` {
			t.Errorf("%s: published is %s", what, got)
		}
	}
	expect("both rows", "a1")
	l.sb("destroy", "Chassis_Private", "a1")
	expect("the private row deleted", "a1", "Chassis_Private")
	l.sb("chassis-del", "a1")
	expect("both deleted", "a1", "Chassis", "Chassis_Private")
	l.sb("create", "Chassis_Private", "name=a1")
	expect("one is back", "a1", "Chassis")
	l.sb("chassis-add", "a1", "geneve", "192.0.2.1")
	expect("both are back", "a1")
	l.vs("set", "Open_vSwitch", ".", "external_ids:system-id=a2")
	expect("another name, with rows", "a2")
	l.vs("set", "Open_vSwitch", ".", "external_ids:system-id=new")
	expect("another name, without rows", "new", "Chassis", "Chassis_Private")
	configured := l.follow(Config{SystemID: "typo"})
	l.waitFor("a name of the configuration", func() bool { return len(configured.Status().Unregistered) == 2 })
}

// TestFollowerChurn: after random changes, made while conditions change too, the
// rows are those that a new follower finds.
func TestFollowerChurn(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	for n := 1; n <= 4; n++ {
		l.tenant(n, "public", "a1", "a2")
	}
	needs := annotated
	needs.Neighbours = func(r *Rows, g GatewayPort) bool { return g.Switch.ExternalIDs["all"] != "" }
	w := l.follow(Config{Needs: needs, Northbound: l.remote("nb")})
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		r := fmt.Sprint("r", 1+random.IntN(4))
		switch random.IntN(6) {
		case 0:
			l.nb("set", "Logical_Switch_Port", "sin-"+r, `external_ids:neutron_bgpvpn\:vni=1001`)
		case 1:
			l.nb("remove", "Logical_Switch_Port", "sin-"+r, "external_ids", `neutron_bgpvpn\:vni`)
		case 2:
			l.sb("lsp-unbind", "cr-gw-"+r, "--", "lsp-bind", "cr-gw-"+r, []string{"a1", "a2"}[random.IntN(2)])
		case 3:
			l.nb("set", "Logical_Switch_Port", "sgw-"+r, "external_ids:all=1")
		case 4:
			l.nb("remove", "Logical_Switch_Port", "sgw-"+r, "external_ids", "all")
		case 5:
			l.nb("--if-exists", "lr-nat-del", r, "--", "lr-nat-add", r, "snat", "172.24.4.9", fmt.Sprintf("10.10.%d.0/24", random.IntN(200)))
		}
	}
	fresh := l.follow(Config{Needs: needs, Northbound: l.remote("nb")})
	fresh.until("a new follower", func() bool { return len(fresh.ports()) > 0 })
	content := func(w *watch) (out []Row) {
		w.View(func(r *Rows) {
			out = slices.Concat(values(r.ports), values(r.datapaths), values(r.chassis), values(r.ha), values(r.haGroups),
				values(r.routers), values(r.routerPorts), values(r.nat), values(r.static))
		})
		slices.SortFunc(out, func(a, b Row) int { return strings.Compare(string(a.Key()), string(b.Key())) })
		return out
	}
	w.until("the same rows", func() bool { return cmp.Equal(content(w), content(fresh)) })
}

// TestFollowerWithoutSystemID: nothing is in sync, and what is there stays.
func TestFollowerWithoutSystemID(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	w := l.follow(Config{})
	want := sortedNames(append([]string{"ln-public"}, owned("r1", false)...))
	w.untilPorts("the start", want...)
	l.vs("remove", "Open_vSwitch", ".", "external_ids", "system-id")
	l.waitFor("the loss", func() bool { return !w.Status().InSync.SB })
	if got := w.ports(); !slices.Equal(got, want) {
		t.Errorf("rows without a system-id: %v", got)
	}
	l.vs("set", "Open_vSwitch", ".", "external_ids:system-id=a1")
	w.untilPorts("the return", want...)
}

// TestFollowerNamed: a configured name is the node's name in every way, whatever
// the switch says.
func TestFollowerNamed(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.tenant(2, "public", "a2")
	l.vs("set", "Open_vSwitch", ".", "external_ids:system-id=a2", "external_ids:ovn-bridge-mappings-a1=physnet7:br-ex")
	w := l.follow(Config{SystemID: "a1"})
	w.untilPorts("the rows of a1", append([]string{"ln-public"}, owned("r1", false)...)...)
	if s := w.Status(); s.SystemID != "a1" {
		t.Errorf("status names %q", s.SystemID)
	}
	w.View(func(r *Rows) {
		if got := r.External("ovn-bridge-mappings"); got != "physnet7:br-ex" {
			t.Errorf("mappings %q", got)
		}
	})
	if err := w.Publish(map[string]string{"sluice-version": "1"}); err != nil {
		t.Fatal(err)
	}
	l.waitFor("the row of a1", func() bool {
		return strings.Contains(l.sb("get", "Chassis_Private", "a1", "external_ids"), "sluice-version")
	})
}

// TestPublishRefused: behind RBAC, for a client without the chassis' certificate,
// everything is followed and the write is an error that says so.
func TestPublishRefused(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	l.sb("set-connection", "role=ovn-controller", "p"+l.remote("rbac"))
	l.vs("set", "Open_vSwitch", ".", "external_ids:ovn-remote="+l.remote("rbac"))
	w := l.follow(Config{})
	w.untilPorts("the rows", append([]string{"ln-public"}, owned("r1", false)...)...)
	if err := w.Publish(map[string]string{"sluice-api": "x"}); err != nil {
		t.Fatal(err)
	}
	l.waitFor("the refusal", func() bool { return w.Status().Publish != nil })
	var denied *ovsdb.PermissionError
	if err := w.Status().Publish; !errors.As(err, &denied) || !strings.Contains(err.Error(), "RBAC") {
		t.Errorf("error %v", err)
	}
}

func sortedNames(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	return out
}
