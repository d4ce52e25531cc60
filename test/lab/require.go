package lab

import (
	"fmt"
	"os/exec"
	"strings"
)

type requirement struct{ tool, pkg string }

var always = []requirement{
	{"ip", "iproute2"}, {"nsenter", "util-linux"}, {"ethtool", "ethtool"}, {"ping", "iputils-ping"}, {"tcpdump", "tcpdump"},
	{"unshare", "util-linux"}, {"bridge", "iproute2"}, {"socat", "socat"}, {"curl", "curl"},
}

var forClouds = []requirement{
	{"ovsdb-server", "openvswitch-common"}, {"ovsdb-tool", "openvswitch-common"}, {"ovs-vswitchd", "openvswitch-switch"},
	{"ovsdb-client", "openvswitch-common"}, {"ovs-appctl", "openvswitch-common"}, {"ovs-ofctl", "openvswitch-common"},
	{"ovs-vsctl", "openvswitch-switch"}, {"ovn-northd", "ovn-central"}, {"ovn-controller", "ovn-host"},
	{"ovn-nbctl", "ovn-common"}, {"ovn-sbctl", "ovn-common"}, {"ovn-appctl", "ovn-common"},
}

var forRouting = []requirement{{frrDir + "/bgpd", "frr"}, {frrDir + "/zebra", "frr"}, {"vtysh", "frr"}}

var forPeers = []requirement{{"gobgpd", "gobgpd"}, {"gobgp", "gobgpd"}}

// Require tells what the machine lacks for the scenario, and what to install.
func Require(s Scenario) error {
	if err := lacksRoot(); err != nil {
		return err
	}
	need := append([]requirement(nil), always...)
	if len(s.Clouds) > 0 {
		need = append(need, forClouds...)
	}
	gobgp, frr := false, len(s.Reflectors) > 0
	for _, p := range s.Peers {
		gobgp, frr = gobgp || !p.FRR, frr || p.FRR
	}
	if frr {
		need = append(need, forRouting...)
	}
	if gobgp {
		need = append(need, forPeers...)
	}
	var tools, pkgs []string
	for _, r := range need {
		if _, err := exec.LookPath(r.tool); err == nil {
			continue
		}
		tools = append(tools, r.tool)
		if !strings.Contains(" "+strings.Join(pkgs, " ")+" ", " "+r.pkg+" ") {
			pkgs = append(pkgs, r.pkg)
		}
	}
	if len(tools) > 0 {
		return fmt.Errorf("missing on this machine: %s; on Debian: apt-get install %s", strings.Join(tools, ", "), strings.Join(pkgs, " "))
	}
	return nil
}
