package evpn_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Two faults of others leave a path cut that Sluice has programmed: the incremental engine of OVN
// 23.03's ovn-controller at times forgets flows of a router port that was deleted and made again,
// and Open vSwitch 3.1 at times takes a datapath flow for changed that it could not change, and
// leaves it as long as packets come. Neither is told by whether the path works, which may be
// Sluice's fault: ovn-controller is, by the flows that it writes when it computes everything anew,
// and Open vSwitch by a datapath flow that does something else than its own OpenFlow tables say.

// mostMended is how often a test mends each fault of others'.
const mostMended = 2

// reachRenewed waits until a VM reaches addresses behind a router port that was deleted and made
// again. Faults of others on the chassis are looked for before, and mended, whatever the path does:
// nothing is mended from the first packet on that the test asserts.
func (w *world) reachRenewed(mended masked, chassis, vm string, addrs ...string) {
	w.Helper()
	w.clean()
	for _, addr := range addrs {
		// Neighbours are resolved, and datapath flows made, whose state is looked at. An answer is not asked for.
		_, _ = w.Exec(w.Context(), vm, "ping", "-n", "-c2", "-i0.2", "-W1", addr)
	}
	w.renew(mended, chassis)
	for _, problem := range mended.exceeded(bounds{each: mostMended, sum: mostMended + 1}) {
		w.Error(problem)
	}
	w.reach(vm, addrs...)
}

// renew mends what OVN and Open vSwitch of a chassis have, and would not have if they computed it
// now, and counts it.
func (w *world) renew(mended masked, chassis string) {
	w.Helper()
	lacked, err := w.recompute(chassis)
	if err != nil {
		w.Fatal(err)
	}
	if len(lacked) > 0 {
		mended.add(recomputed, fmt.Sprintf("%s lacked %d flows: %s", chassis, len(lacked), lacked[0]), 0)
		w.Logf("ovn-controller of %s lacked flows:\n%s", chassis, strings.Join(lacked, "\n"))
	}
	stale, err := w.staleFlows(chassis)
	if err != nil {
		w.Fatal(err)
	}
	if len(stale) > 0 {
		mended.add(purged, chassis+": "+stale[0], 0)
		w.Logf("ovs-vswitchd of %s has flows that its tables do not have:\n%s", chassis, strings.Join(stale, "\n"))
		w.exec(chassis, "ovs-appctl", "revalidator/purge")
	}
}

// recompute has ovn-controller of a chassis compute everything anew, and lists the flows of the
// integration bridge that it lacked before, or had with other actions, as of the port's former
// network. Flows of a former network that no port leads to any more stay until then by OVN's design.
func (w *world) recompute(chassis string) ([]string, error) {
	cloud := w.node(chassis).Cloud
	flows := func() ([]string, error) {
		// Every ovn-controller has followed Northbound, and its flows are in Open vSwitch.
		if _, err := w.NB(w.Context(), cloud, "--timeout=60", "--wait=hv", "sync"); err != nil {
			return nil, err
		}
		out, err := w.Exec(w.Context(), chassis, "ovs-ofctl", "--no-stats", "--no-names", "dump-flows", "br-int")
		return integrationFlows(out), err
	}
	before, err := flows()
	if err != nil {
		return nil, err
	}
	if _, err := w.Exec(w.Context(), chassis, "sh", "-c", recomputeCommand); err != nil {
		return nil, err
	}
	after, err := flows()
	return missing(after, before), err
}

// integrationFlows are the flows of a dump by what they do. Cookies are the first row's of several with
// one flow. Conjunctions are numbered anew, and of two ports with one match either has the flow.
func integrationFlows(dump string) (out []string) {
	for line := range strings.Lines(dump) {
		if _, flow, ok := strings.Cut(strings.TrimSpace(line), ", "); ok && !strings.Contains(flow, "conj") {
			out = append(out, flow)
		}
	}
	return out
}

// recomputeCommand is that, on a chassis.
const recomputeCommand = `ovn-appctl -t "$OVN_RUNDIR"/ovn-controller.*.ctl inc-engine/recompute`

// staleFlows are the flows of a chassis' datapath that do something else than the OpenFlow tables
// say now. The flows of slow paths and after a recirculation, which a trace does not show whole, are
// not looked at.
func (w *world) staleFlows(chassis string) (out []string, err error) {
	if _, err := w.Exec(w.Context(), chassis, "ovs-appctl", "revalidator/wait"); err != nil {
		return nil, err
	}
	text, err := w.Exec(w.Context(), chassis, "ovs-appctl", "dpctl/dump-flows")
	if err != nil {
		return nil, err
	}
	for _, f := range datapathFlow.FindAllStringSubmatch(text, -1) {
		if strings.Contains(f[2], "userspace(") {
			continue
		}
		// A flow that ends meanwhile is none that stays.
		trace, err := w.Exec(w.Context(), chassis, "ovs-appctl", "ofproto/trace", "ovs-netdev", f[1])
		if err != nil {
			return nil, err
		}
		if does := tracedActions.FindStringSubmatch(trace); does != nil && does[1] != f[2] {
			out = append(out, fmt.Sprintf("%s does %s, and the tables say %s", f[1], f[2], does[1]))
		}
	}
	return out, nil
}

var (
	datapathFlow  = regexp.MustCompile(`(?m)^(recirc_id\(0\),.*), packets:.* actions:(.*)$`)
	tracedActions = regexp.MustCompile(`(?m)^Datapath actions: (.*)$`)
)

// A flow that OVN had not, or with other actions, is lacked; what only its cookie or its conjunction tells
// apart is not.
func TestLackedFlowsAreRead(t *testing.T) {
	before := integrationFlows(` cookie=0x1, priority=180,dl_vlan=99 actions=conjunction(100,2/2)
 cookie=0x2, table=9, priority=0,metadata=0x6 actions=resubmit(,10)
 cookie=0x3, table=65, priority=100,reg15=0x4,metadata=0x4 actions=clone(load:0x6->OXM_OF_METADATA[])
`)
	after := integrationFlows(` cookie=0x4, priority=180,dl_vlan=99 actions=conjunction(101,2/2)
 cookie=0x5, table=9, priority=0,metadata=0x6 actions=resubmit(,10)
 cookie=0x3, table=65, priority=100,reg15=0x4,metadata=0x4 actions=clone(load:0x3->OXM_OF_METADATA[])
`)
	want := []string{"table=65, priority=100,reg15=0x4,metadata=0x4 actions=clone(load:0x3->OXM_OF_METADATA[])"}
	if got := missing(after, before); !slices.Equal(got, want) {
		t.Errorf("lacked %q", got)
	}
}

// A flow that was left as it was is found, and no other.
func TestStaleFlowsAreRead(t *testing.T) {
	const dump = `flow-dump from the main thread:
recirc_id(0),in_port(6),eth_type(0x0800),ipv4(src=10.20.0.11,frag=no), packets:14, bytes:1372, used:0.094s, actions:set(ipv4(ttl=63)),7
recirc_id(0x3),in_port(6),eth_type(0x0800),ipv4(frag=no), packets:1, bytes:98, used:never, actions:7
`
	got := datapathFlow.FindAllStringSubmatch(dump, -1)
	if len(got) != 1 || got[0][1] != "recirc_id(0),in_port(6),eth_type(0x0800),ipv4(src=10.20.0.11,frag=no)" || got[0][2] != "set(ipv4(ttl=63)),7" {
		t.Errorf("flows %q", got)
	}
	does := tracedActions.FindStringSubmatch("Final flow: unchanged\nDatapath actions: set(ipv4(ttl=63)),7\n")
	if !slices.Equal(does, []string{"Datapath actions: set(ipv4(ttl=63)),7", "set(ipv4(ttl=63)),7"}) {
		t.Errorf("trace %q", does)
	}
}
