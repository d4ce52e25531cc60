package lab

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// Kind is what a node of the lab is.
type Kind string

// The kinds of node.
const (
	KindFabric    Kind = "fabric"
	KindCentral   Kind = "central"
	KindRelay     Kind = "relay"
	KindChassis   Kind = "chassis"
	KindReflector Kind = "reflector"
	KindGateway   Kind = "gateway"
	KindAPI       Kind = "api"
	KindPeer      Kind = "peer"
	KindVRF       Kind = "vrf"
	KindVM        Kind = "vm"
)

const (
	fabricNode = "fabric"
	apiNode    = "api"
)

// Node is one network namespace of the lab.
type Node struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Cloud string `json:"cloud,omitempty"`
	// Netns is the namespace's name below /run/netns.
	Netns string `json:"netns"`
	// Dir is the node's own directory: sockets, databases, configuration.
	Dir string `json:"dir"`
	// BPFFS is a directory in a bpffs of the lab.
	BPFFS string `json:"bpffs,omitempty"`
	// OwnMounts: it has a mount namespace of its own.
	OwnMounts bool `json:"ownMounts,omitempty"`
	// VTEP4 and VTEP6 are the addresses on lo; BGP and VXLAN use them.
	VTEP4 netip.Addr `json:"vtep4,omitzero"`
	VTEP6 netip.Addr `json:"vtep6,omitzero"`
	// Encap is the chassis' Geneve address, inside OVS.
	Encap netip.Addr `json:"encap,omitzero"`
	// Index is N of the package's address plan, 0 for nodes off the underlay.
	Index int `json:"index,omitempty"`
}

func (n Node) netnsPath() string { return "/run/netns/" + n.Netns }

// Socket is the path of sluiced's control socket on this node.
func (n Node) Socket() string { return filepath.Join(n.Dir, "sluiced.sock") }

// UnderlayLink is the interface that leads to the fabric.
const UnderlayLink = "underlay"

// nodesOf lays out the nodes of a scenario, VMs apart, in a fixed order.
func nodesOf(s Scenario, prefix, dir string) []Node {
	var out []Node
	add := func(name string, kind Kind, cloud string, underlay bool) {
		n := Node{Name: name, Kind: kind, Cloud: cloud, Netns: prefix + "-" + name, Dir: filepath.Join(dir, name)}
		if underlay {
			n.Index = len(out)
			n.VTEP4 = netip.AddrFrom4([4]byte{172, 30, 0, byte(n.Index)})
			n.VTEP6 = netip.MustParseAddr(fmt.Sprintf("fd30::%d", n.Index))
		}
		if kind == KindChassis {
			n.Encap = netip.AddrFrom4([4]byte{172, 31, 0, byte(n.Index)})
		}
		if kind == KindChassis || kind == KindPeer {
			n.BPFFS = filepath.Join(dir, "bpffs", name)
		}
		out = append(out, n)
	}
	add(fabricNode, KindFabric, "", false)
	for _, c := range s.Clouds {
		for _, m := range c.members() {
			add(m, KindCentral, c.Name, true)
		}
		for _, r := range c.relays() {
			add(r, KindRelay, c.Name, true)
		}
		for _, ch := range c.Chassis {
			add(ch.Name, KindChassis, c.Name, true)
			out[len(out)-1].OwnMounts = c.OwnNetns
		}
	}
	for _, r := range s.Reflectors {
		add(r, KindReflector, "", true)
	}
	for _, p := range s.Peers {
		add(p.Name, KindPeer, "", true)
	}
	for _, p := range s.Peers {
		for _, v := range p.VRFs {
			add(VRFNode(p.Name, v.VNI), KindVRF, "", false)
		}
	}
	for _, c := range s.Clouds {
		for _, p := range c.Providers {
			if p.Uplink == UplinkGateway {
				add(c.gatewayNode(p), KindGateway, c.Name, false)
			}
		}
		if c.API {
			add(apiNode, KindAPI, c.Name, false)
		}
	}
	return out
}

// env is what a command in the node sees: the ordinary tools find this node's
// databases and sockets without arguments.
func (l *Lab) env(n Node) []string {
	drop := func(kv string) bool {
		for _, p := range []string{"PATH=", "OVN_", "OVS_", "OS_", "SLUICE_"} {
			if strings.HasPrefix(kv, p) {
				return true
			}
		}
		return false
	}
	var env []string
	for _, kv := range os.Environ() {
		if !drop(kv) {
			env = append(env, kv)
		}
	}
	path := filepath.Join(n.Dir, "bin")
	if bin := repoBin(); bin != "" {
		path += ":" + bin
	}
	env = append(env,
		"PATH="+path+":"+os.Getenv("PATH")+":/usr/sbin:/sbin",
		"OVS_RUNDIR="+n.Dir, "OVN_RUNDIR="+n.Dir, "OVS_LOGDIR="+l.logDir(), "OVN_LOGDIR="+l.logDir(),
		"OVS_DBDIR="+n.Dir, "OVN_DBDIR="+n.Dir, "OVS_SYSCONFDIR="+n.Dir, "OVN_SYSCONFDIR="+n.Dir,
		"SLUICE_LAB="+l.prefix, "SLUICE_LAB_NODE="+n.Name,
	)
	if n.Cloud != "" {
		env = append(env, "OVN_NB_DB="+l.sockets(n.Cloud, "nb"), "OVN_SB_DB="+l.sockets(n.Cloud, "sb"))
	}
	if n.BPFFS != "" {
		env = append(env, "SLUICE_SOCKET="+n.Socket(), "SLUICE_BPFFS="+n.BPFFS, "SLUICE_METADATA_SOCKET="+filepath.Join(n.Dir, "metadata.sock"))
	}
	if n.Kind == KindAPI {
		env = append(env, "OS_AUTH_TYPE=none", "OS_ENDPOINT=http://"+Replicas[0])
	}
	return env
}

// sockets are the unix sockets of all members of a database, as OVN's programs
// take them.
func (l *Lab) sockets(cloud, db string) string {
	c, err := l.cloud(cloud)
	if err != nil {
		return ""
	}
	var all []string
	for _, m := range c.members() {
		all = append(all, "unix:"+filepath.Join(l.dir, m, db+".sock"))
	}
	return strings.Join(all, ",")
}

// repoBin is the bin directory of the repository that the command was started
// in, when it has one.
func repoBin() string {
	if exe, err := os.Executable(); err == nil {
		if d := filepath.Dir(exe); filepath.Base(d) == "bin" {
			return d
		}
	}
	d, err := os.Getwd()
	for ; err == nil && d != "/"; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return filepath.Join(d, "bin")
		}
	}
	return ""
}
