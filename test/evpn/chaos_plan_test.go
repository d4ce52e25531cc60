package evpn_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// loss is how many packets of a pair an event may cost that is on the pair's way.
type loss int

const (
	// none: forwarding does not need what the event takes away.
	none loss = 0
	// brief is for what changes flows of others on the way: a quarter of a second.
	brief loss = 5
	// few is for what stops the userspace datapath for a moment: half a second.
	few loss = 10
	// some is for what OVN itself does in a while, on a machine that does other things, too: five seconds.
	some loss = 100
	// all: packets have no way until what the event took away is there again (event.most).
	all loss = -1
)

// event is one thing that happens.
type event struct {
	text string
	// kind is what events are counted by.
	kind string
	// after the beginning of the round it starts; edits wait for each other.
	after time.Duration
	edit  bool
	// needs and takes name what has to be there for it, and what it takes away: of two
	// events of a round none takes what the other one needs or takes.
	needs, takes []string
	// loses of the pairs that touches tells.
	loses   loss
	touches func(*pair) bool
	// lasts is how long what it takes away is gone.
	lasts time.Duration
	do    func(context.Context, *world) error
	// plans changes what the planner knows, once the event is taken.
	plans func()
}

func (e event) String() string { return fmt.Sprintf("%4d ms  %s", e.after.Milliseconds(), e.text) }

// conflicts tells whether two events cannot be in one round.
func (e event) conflicts(o event) bool {
	meets := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
	}
	return meets(e.takes, o.takes) || meets(e.takes, o.needs) || meets(e.needs, o.takes)
}

// planner makes rounds of events out of a seed. What it makes depends on nothing
// else, so that the same seed makes the same rounds.
type planner struct {
	random *rand.Rand
	// vni and gateway are of the tenants with pairs: their VNI in all clouds, and where their
	// gateway port of cloud A is.
	vni     map[string]int
	gateway map[string]string
	// behind are the nodes that had a tenant's gateway port of cloud A in this round.
	behind  map[string]map[string]bool
	extra   []*extraTenant
	guests  []*guest
	counter int
}

// extraTenant is one that comes and goes.
type extraTenant struct {
	name, cloud string
	vni         int
	networks    []string
}

// guest is a virtual machine that comes and goes.
type guest struct {
	name, cloud, chassis, tenant, network string
}

func newPlanner(seed uint64) *planner {
	return &planner{
		random:  rand.New(rand.NewPCG(seed, 0)),
		vni:     map[string]int{"red": vniRed, "blue": vniBlue},
		gateway: map[string]string{"red": "a1", "blue": "a1"},
	}
}

const mostEvents = 3

// round is one to three events that overlap.
func (p *planner) round() []event {
	p.behind = map[string]map[string]bool{}
	for tenant, node := range p.gateway {
		p.behind[tenant] = map[string]bool{node: true}
	}
	var out []event
	for want := 1 + p.random.IntN(mostEvents); len(out) < want; {
		e := p.draw()
		if slices.ContainsFunc(out, e.conflicts) {
			continue
		}
		if !e.edit {
			e.after = p.upTo(1500 * time.Millisecond)
		}
		if e.plans != nil {
			e.plans()
		}
		out = append(out, e)
	}
	return out
}

// pick takes one of a list.
func pick[T any](p *planner, list ...T) T { return list[p.random.IntN(len(list))] }

func (p *planner) upTo(d time.Duration) time.Duration {
	return time.Duration(p.random.Int64N(int64(d/time.Millisecond))) * time.Millisecond
}

// next is a number that no object has had.
func (p *planner) next() int { p.counter++; return p.counter }

// passes tells whether a pair's packets go through Open vSwitch of a node: that of a
// virtual machine, or that of a gateway port.
func (p *planner) passes(node string) func(*pair) bool {
	behind := p.behind
	return func(q *pair) bool {
		for _, vm := range []place{q.from, q.to} {
			if vm.chassis == node || gatewayOf(vm.cloud, q.tenant, node, behind) {
				return true
			}
		}
		return false
	}
}

// leaves tells whether a pair's packets go through the fabric at a node.
func (p *planner) leaves(node string) func(*pair) bool {
	behind := p.behind
	return func(q *pair) bool {
		return gatewayOf(q.from.cloud, q.tenant, node, behind) || gatewayOf(q.to.cloud, q.tenant, node, behind)
	}
}

func gatewayOf(cloud, tenant, node string, behind map[string]map[string]bool) bool {
	if cloud == "a" {
		return behind[tenant][node]
	}
	return node == cloud+"1"
}

func (p *planner) ofTenant(tenant string) func(*pair) bool {
	return func(q *pair) bool { return q.tenant == tenant }
}

func nobody(*pair) bool { return false }

// list writes down a round.
func list(events []event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "\n    %v", e)
	}
	return b.String()
}

// A seed makes the same rounds each time, and in many rounds everything happens.
func TestChaosIsRepeatable(t *testing.T) {
	one, other := newPlanner(1), newPlanner(1)
	all := ""
	for i := range 500 {
		a, b := one.round(), other.round()
		if list(a) != list(b) {
			t.Fatalf("round %d: %s\nthe second time: %s", i+1, list(a), list(b))
		}
		for i, e := range a {
			if slices.ContainsFunc(a[i+1:], e.conflicts) {
				t.Errorf("one event takes what another one needs: %s", list(a))
			}
		}
		all += list(a)
	}
	for _, word := range []string{
		"kill sluiced", "stop sluiced", "kill bgpd", "kill nb", "kill sb", "kill northd", "kill controller", "stop controller",
		"kill vswitchd", "kill ovsdb", "link underlay", "gateway of", "VNI of red", "VNI of x", "is \"abc\"", "comes to a3", "moves from",
		"goes from", "router of x", "network n",
	} {
		if !strings.Contains(all, word) {
			t.Errorf("in 500 rounds no event was %q", word)
		}
	}
	if strings.Contains(all, "sluiced on "+steady) {
		t.Errorf("sluiced on %s is ended", steady)
	}
}
