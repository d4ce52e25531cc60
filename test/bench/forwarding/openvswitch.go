package forwarding

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// openVSwitch puts a bridge with the userspace datapath behind sluice0-ovs and a
// host behind the bridge. Its two flows stand for those of a provider bridge and
// of OVN.
func (s *site) openVSwitch(ctx context.Context) error {
	s.device = "eth0"
	dir, err := os.MkdirTemp("", "sluice-ovs-")
	if err != nil {
		return err
	}
	s.undo = append(s.undo, func() error { return os.RemoveAll(dir) })
	if err := s.ovn.ip(ctx, fmt.Sprintf("link add tap type veth peer name eth0 netns %s\nlink set tap up\nlink set sluice0-ovs up", s.host.name)); err != nil {
		return err
	}
	if err := s.host.run(ctx, "ethtool -K eth0 tx off tso off gso off >/dev/null"); err != nil {
		return err
	}
	conf, socket := filepath.Join(dir, "conf.db"), filepath.Join(dir, "db.sock")
	if out, err := exec.CommandContext(ctx, "ovsdb-tool", "create", conf, "/usr/share/openvswitch/vswitch.ovsschema").CombinedOutput(); err != nil {
		return fmt.Errorf("ovsdb-tool: %w: %s", err, out)
	}
	if err := s.daemon(ctx, dir, "ovsdb-server", conf, "--remote=punix:"+socket, "--unixctl="+filepath.Join(dir, "db.ctl"), "-vconsole:off"); err != nil {
		return err
	}
	if err := await(ctx, socket); err != nil {
		return err
	}
	vsctl := "ovs-vsctl --db=unix:" + socket
	if err := s.ovn.run(ctx, vsctl+" --no-wait init"); err != nil {
		return err
	}
	if err := s.daemon(ctx, dir, "ovs-vswitchd", "unix:"+socket, "--unixctl="+filepath.Join(dir, "vs.ctl"), "-vconsole:off"); err != nil {
		return err
	}
	// ovs-vsctl waits until ovs-vswitchd has done it.
	return s.ovn.run(ctx, fmt.Sprintf(`%[1]s --timeout=20 add-br %[2]s -- set bridge %[2]s datapath_type=netdev fail_mode=secure \
		-- add-port %[2]s sluice0-ovs -- set interface sluice0-ovs ofport_request=1 -- add-port %[2]s tap -- set interface tap ofport_request=2
		for f in in_port=1,actions=output:2 in_port=2,actions=mod_dl_dst:%[3]s,output:1; do ovs-ofctl add-flow unix:%[4]s $f; done`,
		vsctl, bridge, nextHopMAC, filepath.Join(dir, string(bridge)+".mgmt")))
}

// daemon starts a process of Open vSwitch that ends with the site.
func (s *site) daemon(ctx context.Context, dir string, argv ...string) error {
	cmd := s.ovn.command(ctx, argv...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir)
	cmd.Dir = dir
	// The sender and the receiver would take all time from an ordinary process.
	if err := first(cmd.Start); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	s.undo = append(s.undo, func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil
	})
	return nil
}

func await(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", file, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
