package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Outage is what the death of a gateway chassis did to the traffic through it.
type Outage struct {
	Chassis string
	// OVN is how long after the death the other chassis had taken the gateway
	// ports, as the Southbound database shows.
	OVN time.Duration
	// Last is how long after the death the last packet was on its way to the dead
	// chassis' tunnel endpoint.
	Last time.Duration
	// Probes are pings through the gateway ports.
	Probes []ProbeOutage
}

// ProbeOutage is the longest time without an answer.
type ProbeOutage struct {
	From, To string
	Outage   time.Duration
	Answered int
}

// Worst is the longest outage of a probe.
func (o Outage) Worst() (worst time.Duration) {
	for _, p := range o.Probes {
		worst = max(worst, p.Outage)
	}
	return worst
}

const probeInterval = 10 * time.Millisecond

// Kill ends a chassis as a loss of power does: all of its processes at once, and
// its links.
func (l *Lab) Kill(ctx context.Context, chassis string) error {
	n, err := l.Node(chassis)
	if err != nil {
		return err
	}
	// The links go first: a process that ends may still say something.
	if err := ipBatch(ctx, n.Netns, fmt.Sprintf("link set %s down\nlink set %s down\n", UnderlayLink, geneveLink)); err != nil {
		return err
	}
	processes, err := l.Processes()
	if err != nil {
		return err
	}
	var g errgroup.Group
	for _, p := range processes {
		if p.Node == chassis {
			g.Go(p.Kill)
		}
	}
	return g.Wait()
}

// MeasureOutage kills a chassis that has gateway ports while virtual machines
// talk through them, and waits until they do again.
func (l *Lab) MeasureOutage(ctx context.Context, chassis string) (Outage, error) {
	out := Outage{Chassis: chassis}
	cloud, ports, err := l.gatewaysOn(ctx, chassis)
	if err != nil {
		return out, err
	}
	dead, err := l.Node(chassis)
	if err != nil {
		return out, err
	}
	toDead, err := l.Capture(ctx, fabricNode, "any",
		fmt.Sprintf("udp dst port 4789 and (dst host %s or dst host %s)", dead.VTEP4, dead.VTEP6))
	if err != nil {
		return out, err
	}
	probes, err := l.startProbes(ctx, cloud, chassis)
	defer func() {
		for _, p := range probes {
			p.kill()
		}
	}()
	if err != nil {
		return out, err
	}
	moved := make(chan error, 1)
	at := time.Now()
	go func() { moved <- l.awaitMove(ctx, cloud, ports) }()
	if err := l.Kill(ctx, chassis); err != nil {
		return out, err
	}
	if err := <-moved; err != nil {
		return out, err
	}
	out.OVN = time.Since(at)
	for _, p := range probes {
		o, err := p.stop(ctx, time.Now())
		if err != nil {
			return out, err
		}
		out.Probes = append(out.Probes, o)
	}
	packets, err := toDead.Stop()
	for _, p := range packets {
		out.Last = max(out.Last, p.Time.Sub(at))
	}
	return out, err
}

// gatewaysOn are the gateway ports that are bound to a chassis, and its cloud.
func (l *Lab) gatewaysOn(ctx context.Context, chassis string) (Cloud, []string, error) {
	for _, c := range l.Scenario().Clouds {
		if !slices.ContainsFunc(c.Chassis, func(ch Chassis) bool { return ch.Name == chassis }) {
			continue
		}
		id, err := l.SB(ctx, c.Name, "--bare", "--columns=_uuid", "find", "Chassis", "name="+chassis)
		if err != nil {
			return c, nil, err
		}
		list, err := l.SB(ctx, c.Name, "--bare", "--columns=logical_port", "find", "Port_Binding", "type=chassisredirect", "chassis="+strings.TrimSpace(id))
		if err != nil {
			return c, nil, err
		}
		ports := strings.Fields(list)
		if len(ports) == 0 {
			return c, nil, fmt.Errorf("no gateway port is on %s: an outage before left it dead, or the port is elsewhere; down and up make the lab anew", chassis)
		}
		if len(c.Chassis) < 3 {
			return c, nil, fmt.Errorf("cloud %s has no third chassis: OVN follows the death of one of two by nothing (up --compute)", c.Name)
		}
		for i, p := range ports {
			ports[i] = p + " chassis!=" + strings.TrimSpace(id)
		}
		return c, ports, nil
	}
	return Cloud{}, nil, fmt.Errorf("%s is no chassis of the lab", chassis)
}

// awaitMove waits until all of the ports are on another chassis.
func (l *Lab) awaitMove(ctx context.Context, c Cloud, ports []string) error {
	var g errgroup.Group
	for _, p := range ports {
		port, condition, _ := strings.Cut(p, " ")
		g.Go(func() error {
			_, err := l.SB(ctx, c.Name, fmt.Sprintf("--timeout=%d", int(Patience().Seconds())), "wait-until", "Port_Binding", port, condition)
			return err
		})
	}
	return g.Wait()
}

// probe is a ping whose answers are noted with their time.
type probe struct {
	from, to string
	cmd      *exec.Cmd
	interval time.Duration
	answers  chan time.Time
	last     time.Time // the last answer that was read
}

// kill ends a probe that may have been stopped already.
func (p *probe) kill() {
	_ = p.cmd.Process.Kill()
	for range p.answers {
	}
	_ = p.cmd.Wait()
}

// talk is a machine and an address that it can reach through a gateway.
type talk struct{ from, to string }

// talks are those of machines of other clouds with machines of the cloud that are on
// exposed networks and not on the chassis, tenant by tenant, in both families.
func (s Scenario) talks(c Cloud, dead string) []talk {
	var out []talk
	for _, other := range s.Clouds {
		if other.Name == c.Name {
			continue
		}
		for _, from := range other.VMs {
			for _, to := range c.VMs {
				if from.Phantom || to.Phantom || to.Chassis == dead || from.Tenant != to.Tenant || !other.exposes(from) || !c.exposes(to) {
					continue
				}
				out = append(out, talk{from.Name, to.Addr4.String()}, talk{from.Name, to.Addr6.String()})
			}
		}
	}
	return out
}

// exposes tells whether a machine's network is exposed.
func (c Cloud) exposes(vm VM) bool {
	n, err := c.network(vm.Tenant, vm.Network)
	return err == nil && !n.Unexposed
}

// startProbes pings through the gateways of a cloud, and waits for the first answers.
func (l *Lab) startProbes(ctx context.Context, c Cloud, dead string) ([]*probe, error) {
	var out []*probe
	for _, t := range l.Scenario().talks(c, dead) {
		p, err := l.startProbe(ctx, t.from, t.to, probeInterval)
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no virtual machine of another cloud has one to talk to behind %s", dead)
	}
	return out, awaitAnswers(ctx, out)
}

// awaitAnswers waits until each probe is answered.
func awaitAnswers(ctx context.Context, probes []*probe) error {
	for _, p := range probes {
		var ok bool
		if p.last, ok = p.next(ctx, Patience()); !ok {
			return fmt.Errorf("no answer from %s to %s before anything was done", p.to, p.from)
		}
	}
	return nil
}

var answeredAt = regexp.MustCompile(`^\[(\d+)\.(\d{6})\] \d+ bytes from `)

func (l *Lab) startProbe(ctx context.Context, from, to string, interval time.Duration) (*probe, error) {
	cmd, err := l.Command(ctx, from, "ping", "-n", "-D", "-i", fmt.Sprint(interval.Seconds()), to)
	if err != nil {
		return nil, err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("ping %s from %s: %w", to, from, err)
	}
	p := &probe{from: from, to: to, cmd: cmd, interval: interval, answers: make(chan time.Time, 1<<16)}
	go p.read(pipe)
	return p, nil
}

func (p *probe) read(r io.Reader) {
	defer close(p.answers)
	for s := bufio.NewScanner(r); s.Scan(); {
		if m := answeredAt.FindStringSubmatch(s.Text()); m != nil {
			seconds, _ := strconv.ParseInt(m[1], 10, 64)
			micros, _ := strconv.ParseInt(m[2], 10, 64)
			p.answers <- time.Unix(seconds, micros*1000)
		}
	}
}

func (p *probe) next(ctx context.Context, within time.Duration) (time.Time, bool) {
	select {
	case at, ok := <-p.answers:
		return at, ok
	case <-ctx.Done():
	case <-time.After(within):
	}
	return time.Time{}, false
}

// stop waits for answers after a time, and says what was without before.
func (p *probe) stop(ctx context.Context, after time.Time) (ProbeOutage, error) {
	out := ProbeOutage{From: p.from, To: p.to}
	for p.last.Before(after.Add(time.Second)) {
		at, ok := p.next(ctx, Patience())
		if !ok {
			return out, errors.Join(fmt.Errorf("%s no longer answers %s", p.to, p.from), p.cmd.Process.Kill())
		}
		out.Outage = max(out.Outage, at.Sub(p.last)-p.interval)
		p.last = at
		out.Answered++
	}
	err := p.cmd.Process.Signal(syscall.SIGINT)
	for range p.answers {
	}
	_ = p.cmd.Wait() // its exit code says that packets were lost
	return out, err
}
