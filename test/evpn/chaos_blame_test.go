package evpn_test

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// allowed is what the events of a round may cost a pair. An edit brushes all pairs of
// its cloud, those of other tenants, too: OVN's nodes write flows and their database,
// and the userspace datapath drops what it has to look up just then.
func allowed(events []event, p *pair) loss {
	sum := none
	for _, e := range events {
		switch {
		case e.touches(p) && e.loses == all:
			return all
		case e.touches(p):
			sum += e.loses
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
// gateways go and come back.
func (c *chaos) blameless(from, to time.Time, when string, events []event) {
	c.Helper()
	flapped, claimed := c.flapped(), c.claimed()
	moves := func(p *pair) (sum loss) {
		for _, cloud := range []string{p.from.cloud, p.to.cloud} {
			switch {
			case flapped[cloud] && !slices.ContainsFunc(events, func(e event) bool { return e.breaksTunnels(cloud) }):
				sum += 2 * some
			case claimed[gateway{cloud, p.tenant}]:
				sum += some
			}
		}
		return sum
	}
	for _, p := range c.traffic.pairs {
		most, l := allowed(events, p), p.lost(from, to)
		for ; most != all && l.lost > int(most) && time.Since(to) < answerTime; l = p.lost(from, to) {
			time.Sleep(100 * time.Millisecond)
		}
		if l.lost == 0 {
			continue
		}
		what := fmt.Sprintf("lost %d, %d in a row, the first after %d ms: %v", l.lost, l.row, l.first.Sub(from).Milliseconds(), p)
		switch {
		case most == all || l.lost <= int(most):
		case l.lost <= int(most+moves(p)):
			what += ": more than " + fmt.Sprint(most) + ", but OVN lost tunnels or moved gateways meanwhile"
			c.excused++
		default:
			what = fmt.Sprintf("%s: MORE THAN %d", what, most)
			c.Errorf("%s: %s", when, what)
		}
		c.note(what)
	}
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
