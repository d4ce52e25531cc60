package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/lab"
)

const (
	cloudName     = "a"
	daemonNode    = "a1"
	neighbourNode = "a2"
)

// cloud is a lab with one sluiced and its neighbour.
type cloud struct {
	Config
	lab       *lab.Lab
	neighbour *neighbour
	daemon    *lab.Process
}

// withCloud brings a cloud up, has do measure in it, and takes it down.
func (cfg Config) withCloud(ctx context.Context, p lab.EVPNParams, do func(*cloud) error) (err error) {
	c := &cloud{Config: cfg}
	begin := time.Now()
	if c.lab, err = lab.Up(ctx, lab.EVPN(p), lab.Options{Name: cfg.LabName}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.lab.Down()) }()
	if err := c.settle(ctx); err != nil {
		return err
	}
	node, err := c.lab.Node(neighbourNode)
	if err != nil {
		return err
	}
	if c.neighbour, err = listenAt(netns.Named(node.Netns), node.VTEP4, lab.FabricAS); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.neighbour.stop()) }()
	fmt.Fprintf(cfg.Out, "lab with %d VRFs is up after %.1f s\n", len(c.keysByVNI()), time.Since(begin).Seconds())
	return do(c)
}

// settle waits until OVN has done its work, and pauses ovn-northd.
func (c *cloud) settle(ctx context.Context) error {
	if _, err := c.lab.NB(ctx, cloudName, "--wait=hv", "sync"); err != nil {
		return err
	}
	central, err := c.lab.Node(cloudName + "-central")
	if err != nil {
		return err
	}
	if _, err := c.lab.Exec(ctx, central.Name, "ovs-appctl", "-t", filepath.Join(central.Dir, "northd.ctl"), "pause"); err != nil {
		return err
	}
	return c.quiet(ctx)
}

// quiet waits until no process of the lab has much to do.
func (c *cloud) quiet(ctx context.Context) error {
	all, err := c.lab.Processes()
	if err != nil {
		return err
	}
	return daemons.Settle(ctx, all)
}

// keysByVNI are the host routes that sluiced is to announce.
func (c *cloud) keysByVNI() map[intent.VNI][]intent.RouteKey {
	out := map[intent.VNI][]intent.RouteKey{}
	for _, one := range c.lab.Scenario().Clouds {
		if one.Name != cloudName {
			continue
		}
		vnis := map[string]intent.VNI{}
		for _, t := range one.Tenants {
			vnis[t.Name] = intent.VNI(t.VNI)
		}
		for _, vm := range one.VMs {
			vni := vnis[vm.Tenant]
			out[vni] = append(out[vni], intent.NewHostKey(vni, vm.Addr4), intent.NewHostKey(vni, vm.Addr6))
		}
	}
	return out
}

func (c *cloud) keys() (out []intent.RouteKey) {
	for _, list := range c.keysByVNI() {
		out = append(out, list...)
	}
	return out
}

// start starts sluiced with more in its configuration, and tells when it did.
func (c *cloud) start(ctx context.Context, more string) (time.Time, error) {
	node, err := c.lab.Node(neighbourNode)
	if err != nil {
		return time.Time{}, err
	}
	binary, err := filepath.Abs(c.Sluiced)
	if err != nil {
		return time.Time{}, err
	}
	begin := time.Now()
	c.daemon, err = c.lab.StartSluiced(ctx, daemonNode, lab.Sluiced{Binary: binary, Config: fmt.Sprintf(lab.Config, node.VTEP4) + more})
	return begin, err
}

// stop ends sluiced, and waits until its neighbour has noticed.
func (c *cloud) stop(ctx context.Context) error {
	if err := c.daemon.Stop(); err != nil {
		return err
	}
	return c.neighbour.awaitEnd(ctx)
}

// cleanUp removes all that sluiced has left behind.
func (c *cloud) cleanUp(ctx context.Context) error {
	node, err := c.lab.Node(daemonNode)
	if err != nil {
		return err
	}
	sluicectl, err := daemons.Beside(c.Sluiced, "sluicectl")
	if err != nil {
		return err
	}
	_, err = c.lab.Exec(ctx, daemonNode, sluicectl, "cleanup", "--config", filepath.Join(node.Dir, "sluiced.yaml"))
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
