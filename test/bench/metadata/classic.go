package metadata

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/haproxy"
)

// agentSocket is the name of the socket between haproxy and the agent.
const agentSocket = "metadata_proxy"

// classicSide is networks with a namespace and haproxy each.
type classicSide struct {
	*bench
	// agent starts what is in the place of neutron's, on a unix socket: haproxy tells it
	// which network asks.
	agent func(socket string) (stop func(), err error)

	count     int
	dir       string
	haproxies []*exec.Cmd
	stop      func() // the agent
	// used is the memory of namespaces, pairs and haproxies.
	used memory
}

func (c *classicSide) machine(i int) string { return fmt.Sprintf("slmd%d-v%d", os.Getpid(), i) }
func (c *classicSide) space(i int) string   { return fmt.Sprintf("slmd%d-m%d", os.Getpid(), i) }
func (c *classicSide) instance(i int) string {
	return fmt.Sprintf("inst-n%04d", i+1) // those of the lab
}

// up makes so many networks, and measures what they take beside their machines.
func (c *classicSide) up(ctx context.Context, count int) error {
	var err error
	if c.dir, err = os.MkdirTemp("", "sluice-classic-"); err != nil {
		return err
	}
	if c.stop, err = c.agent(filepath.Join(c.dir, agentSocket)); err != nil {
		return err
	}
	var machines, spaces strings.Builder
	c.count = count
	for i := range count {
		fmt.Fprintf(&machines, "netns add %s\n", c.machine(i))
		fmt.Fprintf(&spaces, "netns add %[2]s\nlink add eth0 netns %[1]s address fa:16:3e:00:00:05 type veth peer name md netns %[2]s\n", c.machine(i), c.space(i))
	}
	if err := ipBatch(ctx, machines.String()); err != nil {
		return err
	}
	before, err := c.settled(ctx, nil)
	if err != nil {
		return err
	}
	if err := ipBatch(ctx, spaces.String()); err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(4)
	c.haproxies = make([]*exec.Cmd, count)
	for i := range count {
		g.Go(func() error { return c.network(ctx, i) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, one := range c.clients(count) {
		if err := await(ctx, one); err != nil {
			return err
		}
	}
	var pids []int
	for _, h := range c.haproxies {
		pids = append(pids, h.Process.Pid)
	}
	after, err := c.settled(ctx, pids)
	c.used = after.minus(before)
	return err
}

// network configures one network's links and starts its haproxy.
func (c *classicSide) network(ctx context.Context, i int) error {
	for ns, batch := range map[string]string{
		c.machine(i): "link set eth0 up\naddr add 10.30.0.5/24 dev eth0\nroute add 169.254.169.254 via 10.30.0.2\n",
		c.space(i):   "link set lo up\nlink set md up\naddr add 10.30.0.2/24 dev md\naddr add 169.254.169.254/32 dev md\n",
	} {
		if err := ipBatch(ctx, batch, "-n", ns); err != nil {
			return err
		}
	}
	name := c.instance(i)
	file := filepath.Join(c.dir, name+".conf")
	if err := os.WriteFile(file, haproxy.Config(name, filepath.Join(c.dir, agentSocket), ""), 0o600); err != nil {
		return err
	}
	h := exec.Command("nsenter", "--net=/run/netns/"+c.space(i), "--", "haproxy", "-db", "-q", "-f", file)
	h.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := h.Start(); err != nil {
		return fmt.Errorf("haproxy: %w", err)
	}
	c.haproxies[i] = h
	return nil
}

func (c *classicSide) clients(n int) (out []client) {
	for i := range min(n, c.count) {
		out = append(out, client{space: netns.Named(c.machine(i)), to: "169.254.169.254:80", instance: c.instance(i)})
	}
	return out
}

// down removes all; it may be called twice.
func (c *classicSide) down() error {
	var errs []error
	for _, h := range c.haproxies {
		if h != nil {
			_ = h.Process.Kill()
			_ = h.Wait()
		}
	}
	var batch strings.Builder
	for i := range c.count {
		for _, ns := range []string{c.machine(i), c.space(i)} {
			if _, err := os.Stat("/run/netns/" + ns); err == nil {
				fmt.Fprintf(&batch, "netns del %s\n", ns)
			}
		}
	}
	if batch.Len() > 0 {
		errs = append(errs, ipBatch(context.Background(), batch.String()))
	}
	if c.stop != nil {
		c.stop()
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	c.haproxies, c.count, c.stop, c.dir = nil, 0, nil, ""
	return errors.Join(errs...)
}

// await asks until there is an answer.
func await(ctx context.Context, c client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := c.ask(ctx, time.Second)
		if err == nil {
			return nil
		}
		if sleep(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("no answer for %s: %w", c.instance, err)
		}
	}
}

func ipBatch(ctx context.Context, batch string, args ...string) error {
	cmd := exec.CommandContext(ctx, "ip", append(args, "-batch", "-")...)
	cmd.Stdin = strings.NewReader(batch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %.500s", strings.Join(args, " "), err, out)
	}
	return nil
}
