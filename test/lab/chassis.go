package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// startChassis brings up one node: its switch database, ovs-vswitchd with the
// bridges, and ovn-controller.
func (l *Lab) startChassis(ctx context.Context, c Cloud, ch Chassis) error {
	n, err := l.Node(ch.Name)
	if err != nil {
		return err
	}
	db := database{process: "ovsdb", stem: "db", listen: []string{"db:Open_vSwitch,Open_vSwitch,manager_options"}}
	if err := l.createDatabase(ctx, n, db, "create", c.schema("vswitch")); err != nil {
		return err
	}
	if err := l.serveDatabase(ctx, n, db); err != nil {
		return err
	}
	// Everything is in the database before the daemons read it first.
	version, err := run(l.command(ctx, n, "ovs-vswitchd", "--version"), "the version of Open vSwitch")
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(version, "\n")
	args := append([]string{"ovs-vsctl", "--no-wait"}, l.switchConfig(c, ch, n)...)
	args = append(args, "--", "set", "Open_vSwitch", ".", "ovs_version="+line[strings.LastIndexByte(line, ' ')+1:]) // as ovs-ctl does
	if _, err := run(l.command(ctx, n, args...), "configuring "+ch.Name); err != nil {
		return err
	}
	conf := "unix:" + filepath.Join(n.Dir, "db.sock")
	vswitchd := spec{
		name: "vswitchd",
		argv: []string{
			"ovs-vswitchd", conf,
			"--pidfile=" + filepath.Join(n.Dir, "ovs-vswitchd.pid"), "--overwrite-pidfile", "-vconsole:info",
		},
		ready: listening(filepath.Join(n.Dir, "br-int.mgmt")),
	}
	if !c.KernelDatapath {
		// br-phy goes with the process, and OVS routes tunnels by its address. It
		// is set up when ovs-vswitchd has done what its database says (ovs-vsctl
		// waits for that after a change): ovs-vswitchd gives it a MAC address, sets
		// it down for that, and does not set it up when it was down before.
		vswitchd.after = fmt.Sprintf("ovs-vsctl --timeout=25 set Bridge br-phy external_ids:started=$(date +%%s%%N) && "+
			"ip addr replace %s/24 dev br-phy && ip link set br-phy up", n.Encap)
	} else if err := processorsCount(ctx); err != nil {
		return err
	}
	if _, err = l.spawn(ctx, n, vswitchd); err != nil {
		return err
	}
	_, err = l.spawn(ctx, n, spec{
		name: "controller",
		argv: []string{
			"ovn-controller", conf, "--pidfile=" + filepath.Join(n.Dir, "ovn-controller.pid"), "--overwrite-pidfile", "-vconsole:info",
		},
		ready: func() error {
			_, err := run(l.command(ctx, n, "ovn-appctl", "-t", "ovn-controller", "connection-status"), "ovn-controller")
			return err
		},
	})
	return err
}

// processorsCount waits until an ovs-vswitchd that starts counts the processors. That of Open
// vSwitch 3.1.0 takes them for none in the first ten seconds of a machine: where there are
// one or two it has no handler for packets of the kernel's datapath then, and never gets
// one. They are all lost (dpctl/show).
func processorsCount(ctx context.Context) error {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &up); err != nil {
		return fmt.Errorf("since when this machine is up: %w", err)
	}
	select {
	case <-time.After(10*time.Second - time.Duration(up.Nano())):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// switchConfig is the ovs-vsctl arguments that describe the node.
func (l *Lab) switchConfig(c Cloud, ch Chassis, n Node) []string {
	args := []string{
		"init", "--", "set", "Open_vSwitch", ".",
		"external_ids:system-id=" + ch.Name, "external_ids:hostname=" + ch.Name,
		"external_ids:ovn-remote=\"" + l.endpoints(c, "sb") + "\"",
		"external_ids:ovn-encap-type=geneve", "external_ids:ovn-encap-ip=" + n.Encap.String(),
		"external_ids:ovn-bridge-datapath-type=" + c.datapath(),
		`external_ids:ovn-bridge-mappings="` + strings.Join(c.mappings(), ",") + `"`,
	}
	if ch.Gateway {
		args = append(args, "external_ids:ovn-cms-options=enable-chassis-as-gw")
	}
	if c.Central.TLS {
		files := l.Certificate(ch.Name)
		args = append(args, "--", "set-ssl", files.Key, files.Cert, files.CA)
	}
	bridge := func(name string, more ...string) {
		args = append(args, "--", "add-br", name, "--", "set", "Bridge", name, "datapath_type="+c.datapath())
		args = append(args, more...)
	}
	bridge("br-int", "fail_mode=secure", "other_config:disable-in-band=true")
	if !c.KernelDatapath {
		bridge("br-phy")
		args = append(args, "--", "add-port", "br-phy", geneveLink)
	}
	made := map[string]bool{}
	for _, p := range c.Providers {
		if !made[p.Bridge] {
			bridge(p.Bridge)
			made[p.Bridge] = true
		}
		if p.Uplink != UplinkNone {
			args = append(args, "--", "add-port", p.Bridge, p.PhysicalPort())
			if p.VLAN != 0 {
				args = append(args, fmt.Sprintf("tag=%d", p.VLAN))
			}
		}
	}
	return args
}

func (c Cloud) datapath() string {
	if c.KernelDatapath {
		return "system"
	}
	return "netdev"
}

// wholePackets is a command that makes links send complete checksums and no large
// segments: the userspace datapath reads frames as they are.
func (c Cloud) wholePackets(links ...string) string {
	if c.KernelDatapath {
		return ""
	}
	var b strings.Builder
	for _, link := range links {
		fmt.Fprintf(&b, "ethtool -K %s tx off tso off gso off >/dev/null; ", link)
	}
	return b.String()
}

func (c Cloud) mappings() []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range c.Providers {
		if m := p.Physnet + ":" + p.Bridge; !seen[m] {
			out = append(out, m)
			seen[m] = true
		}
	}
	return out
}
