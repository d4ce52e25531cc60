package kernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// GuardedDevice is a device of the kernel path whose packets go to the kernel's routing:
// vrf_guard has to be on it before it is up.
type GuardedDevice struct {
	Name    string
	IfIndex int
	VNI     intent.VNI
	// FromOVN: it is the VRF's end of a pair to a provider bridge. Otherwise it
	// is br-<vni>.
	FromOVN bool
	// ICMPSource6 is the source of packet-too-big towards OVN, which the kernel
	// cannot send itself where the route leaves the VRF. Invalid: none is sent.
	ICMPSource6 netip.Addr
}

// PathConfig is what the drivers of the kernel path are told.
type PathConfig struct {
	Namespace netns.Namespace
	Ports     VRFPorts
	// Guard puts vrf_guard on a device, and is called again for one that has it:
	// it then leaves traffic running. Required.
	Guard func(context.Context, GuardedDevice) error
	// Guarding, when set, tells whether what Guard did is still so.
	Guarding func(GuardedDevice) (bool, error)
	// Unguard, when set, forgets what Guard did for a device that is about to be
	// removed, or was, by its ifindex.
	Unguard func(ifindex int) error
	// KeepOut, when set, keeps packets of outer sources that are no VTEPs away from the
	// VXLAN devices of VRFs; it is called before one comes up. See Whole.
	KeepOut func() error
	// Port is the UDP port of VXLAN; 0 means DefaultPort.
	Port uint16
	// MTU of the pairs to provider bridges in bytes; 0 means 1500.
	MTU int
	// Whole: every VRF of the node is on the kernel path, and each has a VXLAN
	// device of its own. Otherwise sluice-vxlan serves them all. While a device of the
	// other form has the UDP port, this one's are prepared and carry nothing: see
	// ChangeOver, and Fabric.Prepare.
	Whole bool
	// Dummy: each VRF has lo-<vni> with its exposed addresses, for a routing
	// daemon that redistributes them (kernel.dummy).
	Dummy bool
	// ZeroChecksum leaves the outer UDP checksum out.
	ZeroChecksum bool
}

// PathNode is what may change while the drivers run: see Path.SetNode.
type PathNode struct {
	RouterMAC, NextHopMAC intent.MAC
	// VTEP4 and VTEP6 are the local tunnel endpoints. One of them may be invalid.
	VTEP4, VTEP6 netip.Addr
	// UnderlayMTU is the largest outer IP packet in bytes.
	UnderlayMTU int
}

// Path is what the drivers of the kernel path share: VRFs, Gateways, Routes.
type Path struct {
	config PathConfig

	mu   sync.Mutex // of what follows
	node PathNode
	// inward is what IfIndex tells.
	inward map[intent.VNI]int
	// guarded are the devices, by ifindex, that Guard succeeded for.
	guarded map[int]GuardedDevice
	// routes are those that were listed or applied, users what they lead through,
	// and unused what they led through.
	routes map[intent.RouteKey]intent.Route
	users  map[reach]int
	unused map[reach]bool
	// listed: the counts of users are complete.
	listed bool
}

// NewPath does no I/O.
func NewPath(config PathConfig, node PathNode) *Path {
	if config.Port == 0 {
		config.Port = DefaultPort
	}
	if config.MTU == 0 {
		config.MTU = 1500
	}
	return &Path{config: config, node: node, inward: map[intent.VNI]int{}, guarded: map[int]GuardedDevice{},
		routes: map[intent.RouteKey]intent.Route{},
		users:  map[reach]int{}, unused: map[reach]bool{}}
}

// look reads the devices, and with take the routes that are needed, for do. Without these
// nothing is done.
func (p *Path) look(take func(*netlink.Handle) (*fib, error), do func(*snapshot, *fib) error) error {
	return look(p.config.Namespace, take, do)
}

func look(ns netns.Namespace, take func(*netlink.Handle) (*fib, error), do func(*snapshot, *fib) error) error {
	return ns.Netlink(func(h *netlink.Handle) error {
		s, err := takeSnapshot(h)
		if err != nil {
			return reconcile.Unchanged(err)
		}
		f, err := take(h)
		if err != nil {
			return reconcile.Unchanged(err)
		}
		return do(s, f)
	})
}

// SetNode changes the constants of the node. What was made with others differs
// from then on when it is listed.
func (p *Path) SetNode(n PathNode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.node = n
}

func (p *Path) constants() PathNode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.node
}

// IfIndex is the device by which the packets of a VRF on the kernel path come in, as
// last listed or applied: the outer end of vx-<vni>, into which fabric_in redirects
// them, or vxlan-<vni>, which takes them from the fabric itself.
func (p *Path) IfIndex(vni intent.VNI) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.inward[vni]
	return i, ok
}

func (p *Path) setInward(vni intent.VNI, ifindex int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ifindex == 0 {
		delete(p.inward, vni)
		return
	}
	p.inward[vni] = ifindex
}

// forgetInward forgets the devices of VRFs that are not there.
func (p *Path) forgetInward(there map[intent.VNI]intent.KernelVRF) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.inward, func(vni intent.VNI, _ int) bool { _, ok := there[vni]; return !ok })
}

// ErrForwarding6 is wrapped where the node does not forward IPv6 at all. Sluice
// does not change what holds for the whole node.
var ErrForwarding6 = errors.New("the node does not forward IPv6: set net.ipv6.conf.all.forwarding to 1 " +
	"(and accept_ra to 2 on devices where it has to follow router advertisements)")

// Forwarding6 is nil if the kernel of the namespace forwards IPv6. For IPv4 the
// setting of a device is enough.
func Forwarding6(ns netns.Namespace) error {
	return ns.Do(forwarding6)
}

func forwarding6() error {
	b, err := os.ReadFile("/proc/sys/net/ipv6/conf/all/forwarding")
	if err == nil && strings.TrimSpace(string(b)) == "0" {
		return ErrForwarding6
	}
	if err != nil {
		return fmt.Errorf("reading sysctl net.ipv6.conf.all.forwarding: %w", err)
	}
	return nil
}
