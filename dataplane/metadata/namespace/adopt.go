package namespace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Process is one whose own network namespace is that of a network.
type Process struct {
	PID  int
	Name string
}

// Adoptable is a network's namespace that neutron-ovn-metadata-agent made, or what of it
// has no mark of Sluice's yet.
type Adoptable struct {
	Network string
	// Unmarked are the namespace, device and port without the mark.
	Unmarked []string
	// Pair: a pair leads to it. Without one it has nothing but lo.
	Pair bool
	// Listening: something answers on port 80 in there. The proxy can listen beside it
	// (proxy.ListenBeside) if both are of one user.
	Listening bool
	// Processes are those in there: haproxy, which its operator ends when the proxy listens.
	Processes []Process
}

// Stranger is a namespace with such a name that is somebody else's.
type Stranger struct {
	Network string
	// Why tells what it lacks.
	Why string
}

func (s Stranger) String() string {
	return fmt.Sprintf("metadata namespace of network %s: %s", s.Network, s.Why)
}

// Adoptable lists what the agent left, by network. strangers are namespaces with such
// names that it does not show to have made: nothing is done to them. It reads only.
func (d *Networks) Adoptable(ctx context.Context) (adoptable []Adoptable, strangers []Stranger, err error) {
	spaces, err := d.named()
	if err != nil {
		return nil, nil, err
	}
	processes, err := processes()
	if err != nil {
		return nil, nil, err
	}
	err = d.config.Node.Netlink(func(h *netlink.Handle) error {
		for network, path := range spaces {
			if err := ctx.Err(); err != nil {
				return err
			}
			a, why, err := d.adoptable(h, network)
			switch {
			case err != nil:
				return fmt.Errorf("namespace of network %s: %w", network, err)
			case why != "":
				strangers = append(strangers, Stranger{network, why})
			case len(a.Unmarked) > 0:
				a.Processes = processes[inode(path)]
				adoptable = append(adoptable, a)
			}
		}
		return nil
	})
	slices.SortFunc(adoptable, func(a, b Adoptable) int { return cmp.Compare(a.Network, b.Network) })
	slices.SortFunc(strangers, func(a, b Stranger) int { return cmp.Compare(a.Network, b.Network) })
	return adoptable, strangers, err
}

// adoptable looks at one; why is not empty if it is not of the agent's form: a pair
// between the node and the namespace with the names that it gives, or, where it ended
// half way, a namespace with nothing in it.
func (d *Networks) adoptable(h *netlink.Handle, network string) (a Adoptable, why string, err error) {
	a = Adoptable{Network: network}
	if err := nameable(network); err != nil {
		return a, err.Error(), nil
	}
	p := d.pair(network, intent.MAC{})
	outer, err := kernel.Find(h, p.outside)
	if err != nil {
		return a, "", err
	}
	joined := false
	if outer != nil {
		if joined, err = p.joined(h, outer); err != nil {
			return a, "", err
		}
	}
	a.Pair = joined
	devices, err := a.look(p)
	switch {
	case err != nil:
		return a, "", err
	case !joined && devices > 1:
		return a, fmt.Sprintf("%s on the node and %s in it are no pair, and it has devices", p.outside, p.inside), nil
	case !joined:
		return a, "", nil
	case !p.marked(outer):
		a.Unmarked = append(a.Unmarked, "device "+p.outside)
	}
	port, there, err := d.config.Ports.FindPort(p.outside)
	if err != nil {
		return a, "", err
	}
	if there && port.Network != network {
		if port.Network != "" {
			return a, fmt.Sprintf("port %s is that of network %s", p.outside, port.Network), nil
		}
		a.Unmarked = append(a.Unmarked, fmt.Sprintf("port %s of bridge %s", p.outside, port.Bridge))
	}
	return a, "", nil
}

// look is what the namespace itself has, and how many devices, lo included.
func (a *Adoptable) look(p pair) (devices int, err error) {
	err = p.space.namespace().Netlink(func(h *netlink.Handle) error {
		links, err := link.Dump(h.LinkList)
		if err != nil {
			return fmt.Errorf("listing links: %w", err)
		}
		devices = len(links)
		for _, l := range links {
			if l.Attrs().Name == "lo" && !p.marked(l) {
				a.Unmarked = append(a.Unmarked, p.space.String())
			}
		}
		a.Listening, err = listening()
		return err
	})
	return devices, err
}

// listening tells whether a socket of the thread's namespace listens on port 80 of IPv4
// (proc_pid_net(5): state 0A).
func listening() (bool, error) {
	text, err := os.ReadFile("/proc/thread-self/net/tcp")
	if err != nil {
		return false, fmt.Errorf("listing sockets: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], ":0050") && f[3] == "0A" {
			return true, nil
		}
	}
	return false, nil
}

// Adopt puts Sluice's mark on what a network has without: the port first, and the
// namespace last, so that it can be called again after an error. Addresses and packets
// stay as they are; Apply mends in place what is not as wanted.
func (d *Networks) Adopt(ctx context.Context, network string) error {
	p := d.pair(network, intent.MAC{})
	err := d.config.Node.Netlink(func(h *netlink.Handle) error {
		there, err := netns.Exists(p.space.path)
		if err != nil || !there {
			return errors.Join(err, fmt.Errorf("there is no %s", p.space))
		}
		a, why, err := d.adoptable(h, network)
		if why != "" {
			return fmt.Errorf("%s: %w", why, reconcile.ErrForeign)
		}
		if err != nil || len(a.Unmarked) == 0 {
			return err
		}
		outer, err := kernel.Find(h, p.outside)
		if err != nil {
			return err
		}
		if outer != nil {
			if err := d.adoptDevice(ctx, h, p, outer, network); err != nil {
				return err
			}
		}
		_, ours, err := p.space.ours()
		if err != nil || ours {
			return err
		}
		return p.space.namespace().Do(p.space.claim)
	})
	if err != nil {
		return fmt.Errorf("adopting the metadata namespace of network %s: %w", network, err)
	}
	return nil
}

func (d *Networks) adoptDevice(ctx context.Context, h *netlink.Handle, p pair, outer netlink.Link, network string) error {
	if joined, err := p.joined(h, outer); err != nil || !joined {
		return err
	}
	if err := d.config.Ports.AdoptMetadataPort(ctx, network, p.outside); err != nil {
		return err
	}
	if p.marked(outer) {
		return nil
	}
	if err := h.LinkAddAltName(outer, p.space.mark); err != nil {
		return fmt.Errorf("marking %s: %w", p.outside, err)
	}
	return nil
}

// inode is the number of a namespace, which its file and processes' have in common.
func inode(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return s.Ino
}

// processes are those that can be seen, by the number of their network namespace.
func processes() (map[uint64][]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	out := map[uint64][]Process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if ns := inode(filepath.Join("/proc", e.Name(), "ns/net")); ns != 0 {
			name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm")) // it may have gone
			out[ns] = append(out[ns], Process{pid, strings.TrimSpace(string(name))})
		}
	}
	return out, nil
}
