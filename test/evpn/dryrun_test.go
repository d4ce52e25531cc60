package evpn_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
	"github.com/ovn-sluice/sluice/test/pins"
)

// A dry run tells what would be changed on a fresh node, beside a running
// sluiced, and on a node that others have changed; and changes nothing, to the
// byte.
func TestDryRun(t *testing.T) {
	w := &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{}))}
	const node = "a1"
	config := w.configFile(node)

	w.Log("on a fresh node everything is to be made")
	p := w.dryRun(node, config, true)
	for table, least := range map[string]int{
		"device": 1, "map": 20, "program": 2, "attachment": 2, "bridges": 1, "vrfs": 2, "gateways": 2, "served": 12, "routes": 14, "steering": 16,
	} {
		if got := count(p, table, "add"); got < least {
			t.Errorf("%d rows of %s to add, want at least %d", got, table, least)
		}
	}
	for _, c := range p.Changes {
		if c.Action != "add" || c.Error != "" || c.Held != "" {
			t.Errorf("on a node without anything of Sluice: %+v", c)
		}
	}
	w.plansToAnnounce(p, "10.10.0.11/32", "fd00:10::11/128")
	if routes, err := w.rrRoutes(vniRed); err != nil || len(routes) != 0 {
		t.Errorf("the reflector has %v, %v", routes, err)
	}

	w.Log("beside a running sluiced nothing is to be made")
	w.start("")
	w.connected()
	w.clean()
	p = w.dryRun(node, config, false)
	if len(p.Changes) > 0 {
		t.Errorf("changes: %+v", p.Changes)
	}
	if i := slices.IndexFunc(p.Unknown, func(u status.UnknownRows) bool { return u.Table == "routes" }); i < 0 || p.Unknown[i].Rows < len(redRoutes) {
		t.Errorf("imports of which nothing is known: %+v", p.Unknown)
	}
	w.plansToAnnounce(p, "10.10.0.11/32", "fd00:10::11/128")

	w.Log("without sluiced, what others changed is to be put right")
	w.kill(node, "sluiced")
	w.exec(node, "ip", "link", "set", "sluice-vxlan", "mtu", "1400")
	w.exec(node, "ovs-ofctl", "-O", "OpenFlow14", "--strict", "del-flows", "br-ex", w.steeringFlow(node))
	vm := lab.VM{Name: "a-red9", Chassis: "a2", Tenant: "red", Network: "net",
		Addr4: netip.MustParseAddr("10.10.0.99"), Addr6: netip.MustParseAddr("fd00:10::99")}
	if err := w.AddVM(t.Context(), "a", vm); err != nil {
		t.Fatal(err)
	}
	p = w.dryRun(node, config, true)
	if count(p, "device", "change") != 1 || count(p, "steering", "add")+count(p, "steering", "change") != 1 || count(p, "routes", "add") != 2 || len(p.Changes) != 4 {
		t.Errorf("changes: %+v", p.Changes)
	}
	w.startAgain(node, "sluiced")
	w.ready(node)
	w.clean()
	if p = w.dryRun(node, config, false); len(p.Changes) > 0 {
		t.Errorf("changes after sluiced has run: %+v", p.Changes)
	}
}

// configFile writes the configuration that StartSluiced would write.
func (w *world) configFile(node string) string {
	w.Helper()
	file := filepath.Join(w.TempDir(), "sluiced.yaml")
	text := fmt.Sprintf(lab.Config, w.node("rr").VTEP4)
	w.exec(node, "sh", "-c", "cat >"+file+" <<END\n"+text+"END\n")
	return file
}

// dryRun runs it and checks that the node is as before.
func (w *world) dryRun(node, config string, differs bool) status.Plan {
	w.Helper()
	before := labtest.Still(w, w.Lab, node, w.everything)
	out, err := w.Exec(w.Context(), node, "sh", "-c", filepath.Join(bin, "sluiced")+" --config "+config+" --dry-run -o json; echo $? >"+config+".rc")
	if err != nil {
		w.Fatal(err)
	}
	if after := w.everything(node); after != before {
		w.Errorf("the dry run changed something: %s", labtest.FirstDifference(before, after))
	}
	code, err := os.ReadFile(config + ".rc")
	if want := map[bool]string{false: "0", true: "3"}[differs]; err != nil || strings.TrimSpace(string(code)) != want {
		w.Errorf("exit code %s, %v, want %s", code, err, want)
	}
	var p status.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		w.Fatalf("%v:\n%s", err, out)
	}
	if p.Role != "gateway" || p.VTEP != w.node(node).VTEP4 || p.Chassis == "" {
		w.Errorf("the node: %+v", p)
	}
	return p
}

// everything is all that Sluice could change on a node, but for what a sluiced that runs
// there notes of its sessions of its own accord.
func (w *world) everything(node string) string {
	w.Helper()
	n := w.node(node)
	pinned, err := pins.Dump(filepath.Join(n.BPFFS))
	if err != nil {
		w.Fatal(err)
	}
	return pinned + w.exec(node, "sh", "-c", `
# without what passes by itself: carriers and timers of bridges, detection of duplicate addresses (a link-local one has its local route only then)
ip -d link | sed -E 's/[a-z_]+_(timer|delay_timer) +[0-9.]+//g; s/bridge_slave state [a-z]+//; s/NO-CARRIER,//; s/,LOWER_UP//; s/ state [A-Z]+ / /'; ip addr | sed 's/ tentative//'; ip -4 route show table all; ip -6 route show table all | grep -v fe80:
for d in $(ls /proc/sys/net/ipv4/conf); do grep -H . /proc/sys/net/ipv4/conf/$d/rp_filter /proc/sys/net/ipv4/conf/$d/forwarding; done
ovs-ofctl -O OpenFlow14 --no-stats dump-flows br-ex; ovs-ofctl show br-ex
for t in Bridge Port Interface; do ovs-vsctl --columns=_uuid,name,external_ids list $t; done
ovs-vsctl --columns=trunks,vlan_mode list Port
ovn-sbctl --columns=name,external_ids list Chassis_Private
ls -la $SLUICE_BPFFS; ls $OVS_RUNDIR
find $OVS_RUNDIR/sluice -type f ! -name northbound.json -exec sha256sum {} + 2>&1 || true`)
}

func count(p status.Plan, table, action string) (n int) {
	for _, c := range p.Changes {
		if c.Table == table && c.Action == action {
			n++
		}
	}
	return n
}

func (w *world) plansToAnnounce(p status.Plan, prefixes ...string) {
	w.Helper()
	for _, prefix := range prefixes {
		if !slices.ContainsFunc(p.Announcements, func(r status.PlannedRoute) bool { return r.VNI == vniRed && r.Prefix.String() == prefix }) {
			w.Errorf("%s of red is not among what would be announced: %+v", prefix, p.Announcements)
		}
	}
}

// steeringFlow is the match of one of Sluice's flows for ARP, as ovs-ofctl takes
// it with --strict.
func (w *world) steeringFlow(node string) string {
	w.Helper()
	for line := range strings.Lines(w.exec(node, "ovs-ofctl", "-O", "OpenFlow14", "--no-stats", "dump-flows", "br-ex")) {
		match, _, ok := strings.Cut(strings.TrimSpace(line), " actions=")
		cookie, match, _ := strings.Cut(match, ", ")
		if ok && strings.Contains(match, "arp_tpa=") && strings.HasPrefix(cookie, "cookie=0x736c") {
			w.Logf("deleting %s", match)
			return match
		}
	}
	w.Fatal("no flow for ARP")
	return ""
}
