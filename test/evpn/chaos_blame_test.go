package evpn_test

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// back is how long all may take to work again after an event that has taken the only way away,
// beside the time for which it does: until OVN, Open vSwitch and BGP have done their part.
func back() time.Duration { return lab.Patience() }

// most is what the event may cost a pair that it touches. Of one that takes the way away these are
// the packets of its own time, and of that until all is back.
func (e event) most() loss {
	if e.loses != all {
		return e.loses
	}
	return loss((e.lasts + back()) / probeInterval)
}

// allowed is what the events of a round may cost a pair. An edit brushes all pairs of
// its cloud, those of other tenants, too: OVN's nodes write flows and their database,
// and the userspace datapath drops what it has to look up just then.
func allowed(events []event, p *pair) loss {
	sum := none
	for _, e := range events {
		switch {
		case e.touches(p):
			sum += e.most()
		case e.edit && (slices.Contains(e.needs, "nb:"+p.from.cloud) || slices.Contains(e.needs, "nb:"+p.to.cloud)):
			sum += brief
		}
	}
	return sum
}

// answerTime is how long an answer may take where none may be lost: on a busy
// machine the userspace datapath stands still for seconds.
const answerTime = 10 * time.Second

// blameless looks at what the pairs lost in the time of some events.
//
// BFD of OVN's tunnels that loses one on a busy machine, with no event on the switches of
// that cloud, has gateways move, and both ends answer for an address meanwhile. So does
// the end of a gateway chassis' database: until ovs-vswitchd has told the new one of its
// tunnels, ovn-controller there takes the other chassis for dead and claims the gateways
// for a moment. That is not Sluice's, and is counted apart, as far as such moves go: what
// OVN does in a while for a gateway that was claimed, and twice that for tunnels, since
// gateways go and come back. What edits cost pairs that they do not touch (allowed) is counted
// with it. How often that may be, and how many packets of the whole run, is bounded (chaosBounds).
func (c *chaos) blameless(from, to time.Time, when string, events []event) {
	c.Helper()
	flapped, claimed := c.flapped(), c.claimed()
	excused := map[string]int{}
	for _, p := range c.traffic.pairs {
		most, l := allowed(events, p), p.lost(from, to)
		for ; l.lost > int(most) && time.Since(to) < answerTime; l = p.lost(from, to) {
			time.Sleep(100 * time.Millisecond)
		}
		c.costs.note(events, p, l.lost)
		if l.lost == 0 {
			continue
		}
		what := fmt.Sprintf("lost %d, %d in a row, the first after %d ms: %v", l.lost, l.row, l.first.Sub(from).Milliseconds(), p)
		moves, kind := excuse(events, p, flapped, claimed)
		switch {
		case l.lost <= int(most):
			if !slices.ContainsFunc(events, func(e event) bool { return e.touches(p) }) {
				excused[brushed] += l.lost
			}
		case l.lost <= int(most+moves):
			what += ": more than " + fmt.Sprint(most) + ", but OVN lost tunnels or moved gateways meanwhile"
			excused[kind] += l.lost - int(most)
		default:
			what = fmt.Sprintf("%s: MORE THAN %d", what, most)
			c.Errorf("%s: %s", when, what)
		}
		c.note(what)
	}
	// What OVN does once may cost many pairs.
	for kind, packets := range excused {
		c.masked.add(kind, when, packets)
	}
}

// excuse is how much more a pair may lose by what OVN did of itself meanwhile, and what that was.
func excuse(events []event, p *pair, flapped map[string]bool, claimed map[gateway]bool) (sum loss, kind string) {
	for _, cloud := range []string{p.from.cloud, p.to.cloud} {
		switch {
		case flapped[cloud] && !slices.ContainsFunc(events, func(e event) bool { return e.breaksTunnels(cloud) }):
			sum, kind = sum+2*some, lostTunnels
		case claimed[gateway{cloud, p.tenant}]:
			sum, kind = sum+some, cmp.Or(kind, claimedAnew)
		}
	}
	return sum, kind
}

// costs are the packets that pairs on the way of an event have lost, by the kind of event: how
// many events there were, and what one of them cost a pair at most.
type costs map[string]*cost

type cost struct{ pairs, packets, most int }

func (c costs) note(events []event, p *pair, lost int) {
	for _, e := range events {
		if !e.touches(p) {
			continue
		}
		if c[e.kind] == nil {
			c[e.kind] = &cost{}
		}
		one := c[e.kind]
		one.pairs, one.packets, one.most = one.pairs+1, one.packets+lost, max(one.most, lost)
	}
}

func (c costs) String() string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		out = append(out, fmt.Sprintf("%s: %d packets of %d pairs on the way, of one at most %d", kind, c[kind].packets, c[kind].pairs, c[kind].most))
	}
	return "what events cost, with those of the same round:\n  " + strings.Join(out, "\n  ")
}

// flapped tells whose tunnels were lost to BFD since it was asked last.
func (c *chaos) flapped() map[string]bool {
	out := map[string]bool{}
	for _, cloud := range chaosClouds {
		now := 0
		for _, n := range chassisOf(cloud) {
			text, err := c.Exec(background, n, "ovs-vsctl", "--timeout=5", "--bare", "--columns=bfd_status", "find", "Interface", "bfd:enable=true")
			if err != nil {
				c.Logf("tunnels of %s: %v", n, err)
			}
			for _, m := range flapCount.FindAllStringSubmatch(text, -1) {
				count, _ := strconv.Atoi(m[1])
				now += count
			}
		}
		// A new ovs-vswitchd counts from 0.
		out[cloud] = now != c.flaps[cloud]
		c.flaps[cloud] = now
	}
	return out
}

var flapCount = regexp.MustCompile(`flap_count="?(\d+)`)

// gateway is the gateway of a tenant in a cloud.
type gateway struct{ cloud, tenant string }

// claimed tells which gateways of the pairs ovn-controller has claimed since it was asked
// last.
func (c *chaos) claimed() map[gateway]bool {
	out := map[gateway]bool{}
	for _, cloud := range chaosClouds {
		for _, n := range chassisOf(cloud) {
			p, err := c.Process(n, "controller")
			if err != nil {
				c.Fatal(err)
			}
			text, err := readFrom(p.Log, c.read[n])
			if err != nil {
				c.Fatal(err)
			}
			c.read[n] += int64(len(text))
			for _, m := range gatewayClaim.FindAllSubmatch(text, -1) {
				out[gateway{cloud, string(m[1])}] = true
			}
		}
	}
	return out
}

var gatewayClaim = regexp.MustCompile(`cr-lrp-(red|blue)-gw: Claiming `)

func readFrom(file string, offset int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// breaksTunnels tells whether a switch of a cloud goes, or what tells it of tunnels.
func (e event) breaksTunnels(cloud string) bool {
	return slices.ContainsFunc(e.takes, func(s string) bool {
		process, node, _ := strings.Cut(s, ":")
		return slices.Contains([]string{"vswitchd", "ovsdb", "controller"}, process) && slices.Contains(chassisOf(cloud), node)
	})
}
