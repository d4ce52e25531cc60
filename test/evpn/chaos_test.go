package evpn_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// replay is the variable of the environment that repeats a run: SEED, or SEED:ROUNDS.
const replay = "SLUICE_CHAOS"

// chaos is a run of random events.
type chaos struct {
	*world
	seed    uint64
	rounds  int // 0: as many as there is time for
	plan    *planner
	traffic *traffic
	begin   time.Time
	history []string
	// flaps is how often each cloud's tunnels were lost to BFD of OVN's, and read how far the
	// logs of ovn-controller were. masked is what was excused by what these say, or was mended, and
	// costs what the events took.
	flaps  map[string]int
	read   map[string]int64
	masked masked
	costs  costs
}

// timeVariable of the environment is how long events go on, as 2m.
const timeVariable = "SLUICE_CHAOS_TIME"

// chaosTime is how long events go on.
func chaosTime(t *testing.T) time.Duration {
	t.Helper()
	if set := os.Getenv(timeVariable); set != "" {
		d, err := time.ParseDuration(set)
		if err != nil {
			t.Fatalf("%s: %v", timeVariable, err)
		}
		return d
	}
	if nightly.On() {
		return 30 * time.Minute
	}
	return 45 * time.Second
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{seed: nightly.Seed(t, 1), flaps: map[string]int{}, read: map[string]int64{}, masked: masked{}, costs: costs{}}
	if s := os.Getenv(replay); s != "" {
		seed, rounds, _ := strings.Cut(s, ":")
		var err1, err2 error
		c.seed, err1 = strconv.ParseUint(seed, 10, 64)
		if rounds != "" {
			c.rounds, err2 = strconv.Atoi(rounds)
		}
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("%s=%s: want SEED or SEED:ROUNDS: %v", replay, s, err)
		}
	}
	c.plan = newPlanner(c.seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d; the same again: %s=%d:%d go test -run '^TestChaos$' ./test/evpn\nwhat happened:%s",
				c.seed, replay, c.seed, len(c.history), strings.Join(c.history, ""))
		}
	})
	return c
}

// Processes are killed and started again, links go down and up, and OVN is edited,
// at random and at once, while virtual machines talk. An event that is not on the way
// of a pair costs it nothing, or a moment where it is an edit of the pair's cloud; any
// other pair is back when all has settled. In the end every table, device and flow is
// as after a clean start, and nothing has been left over.
func TestChaos(t *testing.T) {
	c := newChaos(t)
	c.world = own(t, chaosScenario(), "")
	c.traffic = c.startTraffic(c.pairs())
	c.settle(time.Now())
	before := c.usage()
	c.begin = time.Now()
	quiet := c.begin
	for end := time.Now().Add(chaosTime(t)); c.again(end); {
		quiet = c.round(quiet)
	}
	c.blameless(quiet, time.Now(), "after the last event", nil)
	c.summary()
	c.sameAsAfterCleanStart(before)
	if leaks := c.traffic.leaks(); leaks != "" {
		t.Errorf("tenants got packets of others:\n%s", leaks)
	}
}

// again tells whether there is another round.
func (c *chaos) again(end time.Time) bool {
	if c.rounds > 0 {
		return len(c.history) < c.rounds
	}
	return time.Now().Before(end)
}

// chaosScenario is the evpn scenario with a third cloud, so that each of two clouds has
// somebody to talk to while the third one suffers.
func chaosScenario() lab.Scenario {
	s := lab.EVPN(lab.EVPNParams{Compute: true})
	c := lab.Cloud{
		Name: "c", Chassis: []lab.Chassis{{Name: "c1", Gateway: true, Priority: 20}},
		Providers: []lab.Provider{{Name: "public", Physnet: "physnet1", Bridge: "br-ex",
			Subnet4: netip.MustParsePrefix("172.26.0.0/16"), Subnet6: netip.MustParsePrefix("2001:db8:26::/64")}},
	}
	for _, tenant := range s.Clouds[0].Tenants {
		c.Tenants = append(c.Tenants, lab.Tenant{Name: tenant.Name, VNI: tenant.VNI, AS: lab.FabricAS, Provider: "public", Networks: []lab.Network{{Name: "net",
			Subnet4: netip.MustParsePrefix("10.40.0.0/24"), Subnet6: netip.MustParsePrefix("fd00:40::/64")}}})
		c.VMs = append(c.VMs, lab.VM{Name: "c-" + tenant.Name + "1", Chassis: "c1", Tenant: tenant.Name, Network: "net",
			Addr4: netip.MustParseAddr("10.40.0.11"), Addr6: netip.MustParseAddr("fd00:40::11")})
	}
	s.Clouds = append(s.Clouds, c)
	return s
}

// pairs are a ring of the three clouds for both tenants, and one more from a3, which
// has no gateway port.
func (c *chaos) pairs() []*pair {
	c.Helper()
	at := map[string]place{
		"a": {cloud: "a", chassis: "a2"}, "b": {cloud: "b", chassis: "b1"}, "c": {cloud: "c", chassis: "c1"},
	}
	subnet := map[string]int{"a": 10, "b": 20, "c": 40}
	var out []*pair
	add := func(tenant string, from, to place) {
		for _, format := range []string{"10.%d.0.11", "fd00:%d::11"} {
			addr := netip.MustParseAddr(fmt.Sprintf(format, subnet[to.cloud]))
			out = append(out, &pair{tenant: tenant, from: from, to: to, addr: addr})
		}
	}
	for _, tenant := range []string{"red", "blue"} {
		for i, from := range chaosClouds {
			to := chaosClouds[(i+1)%len(chaosClouds)]
			one, other := at[from], at[to]
			one.name, other.name = from+"-"+tenant+"1", to+"-"+tenant+"1"
			add(tenant, one, other)
		}
	}
	to := at["b"]
	to.name = "b-red1"
	add("red", place{"a-red3", "a", "a3"}, to)
	return out
}

// round lets the events of a round happen, waits until all has settled, and
// looks at what was lost since the last one had.
func (c *chaos) round(quiet time.Time) time.Time {
	c.Helper()
	events := c.plan.round()
	begin := time.Now()
	name := fmt.Sprintf("round %d", len(c.history)+1)
	c.history = append(c.history, fmt.Sprintf("\n  %s, %s%s", name, begin.UTC().Format("15:04:05.000"), list(events)))
	c.blameless(quiet, begin, "before "+name, nil)
	var group errgroup.Group
	group.Go(func() error {
		for _, e := range events {
			if e.edit {
				if err := e.do(c.Context(), c.world); err != nil {
					return fmt.Errorf("%s: %w", e.text, err)
				}
			}
		}
		return nil
	})
	for _, e := range events {
		if !e.edit {
			group.Go(func() error {
				return sleepThen(c.Context(), e.after, func() error {
					if err := e.do(c.Context(), c.world); err != nil {
						return fmt.Errorf("%s: %w", e.text, err)
					}
					return nil
				})
			})
		}
	}
	if err := group.Wait(); err != nil {
		c.Fatalf("%s: %v", name, err)
	}
	done := time.Now()
	c.settle(done)
	now := time.Now()
	c.note(fmt.Sprintf("settled %d ms after the last", now.Sub(done).Milliseconds()))
	c.blameless(begin, now, name, events)
	return now
}

// settle waits until OVN has done what it was told, sluiced on every node has nothing
// more to do, and all pairs talk again.
func (c *chaos) settle(since time.Time) {
	c.Helper()
	for _, cloud := range chaosClouds {
		c.calm("OVN of cloud "+cloud+" has settled", func() error {
			c.reviveDatabases(cloud)
			return c.ovnSettled(cloud)
		})
	}
	for _, n := range c.chassis() {
		c.calm("sluiced on "+n+" has settled", func() error { return errors.Join(c.allReady(n), c.settled(n)) })
	}
	tries := 0
	c.calm("all pairs talk", func() error {
		tries++
		var errs []error
		for _, p := range c.traffic.pairs {
			errs = append(errs, p.works(since, 5))
		}
		err := errors.Join(errs...)
		if err != nil && tries%50 == 0 && c.masked.times(recomputed) <= chaosBounds(len(c.history)).each {
			c.renewOVN(err)
		}
		return err
	})
}

// reviveDatabases starts ovsdb-servers that have crashed, as their option --monitor would,
// which distributions run them with: 3.1.0 ends by SIGSEGV at times, some seconds after it
// was killed and started again, with the first change that it takes.
func (c *chaos) reviveDatabases(cloud string) {
	for _, db := range []string{"nb", "sb"} {
		p, err := c.Process(cloud+"-central", db)
		if err != nil || p.Running() {
			continue
		}
		what := db + " of cloud " + cloud + " has crashed, and is started again"
		c.note(what)
		c.masked.add(databaseDied, what, 0)
		if err := p.Start(); err != nil {
			c.Logf("starting %s of cloud %s: %v", db, cloud, err)
		}
	}
}

// allReady tells whether every component of a node is well: BGP has a session and all
// routes, too.
func (w *world) allReady(node string) error {
	s, err := w.status(node)
	if err != nil {
		return err
	}
	for _, c := range s.Conditions {
		if !c.Ready {
			return fmt.Errorf("%+v", c)
		}
	}
	if !s.Ready {
		return fmt.Errorf("not ready: %+v", s.Conditions)
	}
	return nil
}

// slow is how long a state may take to come before the history says what it waited for.
const slow = 10 * time.Second

// calm waits for a state.
func (c *chaos) calm(what string, cond func() error) {
	c.Helper()
	var last error
	begin := time.Now()
	noted := func() error {
		err := cond()
		if err != nil {
			last = err
		}
		return err
	}
	// Several things are to be made good at once.
	err := c.WaitFor(c.Context(), what, noted)
	for range 2 {
		if err != nil {
			err = c.WaitFor(c.Context(), what, noted)
		}
	}
	if err != nil {
		c.Fatal(err)
	}
	if took := time.Since(begin); took > slow {
		c.note(fmt.Sprintf("%s after %d ms; the last that was missing: %v", what, took.Milliseconds(), last))
	}
}

// note adds to what happened in the round, once there is one.
func (c *chaos) note(text string) {
	if len(c.history) > 0 {
		c.history[len(c.history)-1] += "\n    " + text
	}
}

// renewOVN has all ovn-controllers compute everything anew (renewed_test.go), which does not touch
// Sluice, which has settled by then. Only flows that OVN lacked show a fault of OVN's: it is
// counted, and bounded. Where it lacked none, the pairs go on being waited for.
func (c *chaos) renewOVN(missing error) {
	for _, n := range chaosNodes {
		lacked, err := c.recompute(n)
		if err != nil {
			c.note(fmt.Sprintf("ovn-controller of %s does not compute everything anew: %v", n, err))
		}
		if len(lacked) > 0 {
			what := fmt.Sprintf("%s lacked %d flows, as %s, for: %s", n, len(lacked), lacked[0], strings.ReplaceAll(missing.Error(), "\n", "; "))
			c.note("ovn-controller: " + what)
			c.masked.add(recomputed, what, 0)
		}
	}
}

func (c *chaos) ovnSettled(cloud string) error {
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	for _, n := range chassisOf(cloud) {
		if err := c.tunnelsUp(ctx, n); err != nil {
			return err
		}
	}
	if _, err := c.NB(ctx, cloud, "--timeout=15", "--wait=hv", "sync"); err != nil {
		return err
	}
	ports, err := c.SB(ctx, cloud, "--timeout=5", "--format=csv", "--no-headings", "--columns=logical_port,chassis", "find", "Port_Binding", "type=chassisredirect")
	if err != nil {
		return err
	}
	chassis, err := c.SB(ctx, cloud, "--timeout=5", "--format=csv", "--no-headings", "--columns=name,_uuid", "list", "Chassis")
	if err != nil {
		return err
	}
	ids := map[string]string{}
	for line := range strings.Lines(chassis) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), ",")
		ids[name] = id
	}
	for line := range strings.Lines(ports) {
		port, at, _ := strings.Cut(strings.TrimSpace(line), ",")
		want := cloud + "1"
		if tenant := strings.TrimSuffix(strings.TrimPrefix(port, "cr-lrp-"), "-gw"); cloud == "a" && c.plan.gateway[tenant] != "" {
			want = c.plan.gateway[tenant]
		}
		if at == "" || at != ids[want] {
			return fmt.Errorf("%s is at %q, not at %s (%s)", port, at, want, ids[want])
		}
	}
	return nil
}

// tunnelsUp tells whether BFD of a node's tunnels is up at both ends. A node sends to
// the first gateway it hears, and each pair of nodes hears one another at another
// time, seconds after Open vSwitch has come back.
func (w *world) tunnelsUp(ctx context.Context, node string) error {
	out, err := w.Exec(ctx, node, "ovs-vsctl", "--timeout=5", "--bare", "--columns=name,bfd_status", "find", "Interface", "bfd:enable=true")
	if err != nil {
		return err
	}
	for i := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		if i != "" && (!strings.Contains(i, " state=up") || !strings.Contains(i, "remote_state=up")) {
			return fmt.Errorf("BFD of a tunnel of %s: %s", node, strings.ReplaceAll(i, "\n", " "))
		}
	}
	return nil
}
