package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

const frrDir = "/usr/lib/frr"

// startReflector runs FRR as an EVPN route reflector for every chassis and peer,
// over both families.
func (l *Lab) startReflector(ctx context.Context, name string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	var conf strings.Builder
	as := l.Scenario().AS
	fmt.Fprintf(&conf, "hostname %s\nlog stdout informational\n", name)
	fmt.Fprintf(&conf, "router bgp %d\n bgp router-id %s\n no bgp default ipv4-unicast\n bgp cluster-id %s\n", as, n.VTEP4, n.VTEP4)
	fmt.Fprintf(&conf, " neighbor nodes peer-group\n neighbor nodes remote-as %d\n neighbor nodes timers 3 9\n", as)
	var members []string
	for _, m := range l.Nodes() {
		if m.Kind == KindChassis || m.Kind == KindPeer {
			members = append(members, m.VTEP4.String(), m.VTEP6.String())
		}
	}
	for _, m := range members {
		// The nodes call: Sluice listens on no port unless asked to.
		fmt.Fprintf(&conf, " neighbor %s peer-group nodes\n neighbor %s passive\n", m, m)
	}
	conf.WriteString(" address-family l2vpn evpn\n  neighbor nodes activate\n  neighbor nodes route-reflector-client\n exit-address-family\n")
	return l.startFRR(ctx, n, conf.String())
}

// ReflectorBFD makes a reflector do BFD with one neighbour, or no longer: every 200 ms,
// lost after ten times without a packet. Not with all of them, since FRR 10.2 and 10.3
// let no BGP session come up of a neighbour whose BFD is down, also of one that has none
// (FRR's da4a7b0356).
func (l *Lab) ReflectorBFD(ctx context.Context, reflector string, neighbor netip.Addr, on bool) error {
	line := fmt.Sprintf("no neighbor %s bfd", neighbor)
	if on {
		line = fmt.Sprintf("neighbor %s bfd 10 200 200", neighbor)
	}
	_, err := l.Exec(ctx, reflector, "vtysh", "-c", "configure terminal", "-c", fmt.Sprintf("router bgp %d", l.Scenario().AS), "-c", line)
	return err
}

// StartFRR runs zebra and bgpd, the latter with a configuration, on a node that has
// none: one whose routes an FRR beside ovn-bgp-agent announces.
func (l *Lab) StartFRR(ctx context.Context, node, conf string) error {
	n, err := l.Node(node)
	if err != nil {
		return err
	}
	return l.startFRR(ctx, n, conf)
}

// startFRR runs zebra and bgpd, the latter with a configuration, and bfdd where the
// scenario has BFD, and makes `vtysh` on the node talk to them.
func (l *Lab) startFRR(ctx context.Context, n Node, conf string) error {
	// The daemons drop to their own user, who makes sockets in the node's directory.
	if err := chownTo(n.Dir, "frr"); err != nil {
		return err
	}
	file := filepath.Join(n.Dir, "bgpd.conf")
	empty := filepath.Join(n.Dir, "zebra.conf")
	for f, text := range map[string]string{file: conf, empty: "log stdout informational\n", filepath.Join(n.Dir, "vtysh.conf"): "no service integrated-vtysh-config\n"} {
		if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := writeWrapper(n, "vtysh", fmt.Sprintf("exec /usr/bin/vtysh --vty_socket %s --config_dir %s \"$@\"", n.Dir, n.Dir)); err != nil {
		return err
	}
	managed, err := hasMgmtd()
	if err != nil {
		return err
	}
	start := func(name string, more ...string) error {
		argv := append([]string{
			filepath.Join(frrDir, name), "--vty_socket", n.Dir, "-P", "0",
			"-i", filepath.Join(n.Dir, name+".pid"), "--log", "stdout",
		}, more...)
		if managed {
			// The daemons meet mgmtd in a place that nothing but a mount can change.
			argv = append([]string{"unshare", "--mount", "sh", "-c", "mount --bind \"$0\" " + frrRunDir + ` && exec "$@"`, n.Dir}, argv...)
		}
		_, err := l.spawn(ctx, n, spec{name: name, argv: argv, ready: listening(filepath.Join(n.Dir, name+".vty"))})
		return err
	}
	if managed {
		if err := start("mgmtd"); err != nil {
			return err
		}
	}
	zserv := filepath.Join(n.Dir, "zserv.api")
	if err := start("zebra", "-f", empty, "-z", zserv); err != nil {
		return err
	}
	if l.Scenario().BFD {
		more := []string{"-f", empty, "-z", zserv}
		if !managed { // Those of 10 have no such socket.
			more = append(more, "--bfdctl", filepath.Join(n.Dir, "bfdd.sock"))
		}
		if err := start("bfdd", more...); err != nil {
			return err
		}
	}
	return start("bgpd", "-f", file, "-z", zserv, "-p", "179")
}

// frrRunDir is where FRR's daemons have their sockets, unless told otherwise.
const frrRunDir = "/var/run/frr"

// hasMgmtd tells whether FRR is one of those, from 10 on, that configure zebra by
// way of mgmtd.
func hasMgmtd() (bool, error) {
	if _, err := os.Stat(filepath.Join(frrDir, "mgmtd")); err != nil {
		return false, nil
	}
	return true, os.MkdirAll(frrRunDir, 0o755)
}

func chownTo(path, name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("%w: is the package frr installed?", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}
