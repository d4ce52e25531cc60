package balancing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/bench/daemons"
)

// The paths that sluicectl shows.
const (
	pathEBPF = "ebpf"
	pathOVN  = "ovn"
)

// show asks a node for a VIP, or for its machines, with sluicectl.
func show[T any](ctx context.Context, b *bench, node string, words ...string) (out []T, err error) {
	ctl, err := daemons.Beside(b.Sluiced, "sluicectl")
	if err != nil {
		return nil, err
	}
	text, err := b.lab.Exec(ctx, node, append([]string{ctl, "-o", "json", "lb"}, words...)...)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("sluicectl lb %v on %s: %w", words, node, err)
	}
	return out, nil
}

// vipOn is a VIP as its node has it.
func (b *bench) vipOn(ctx context.Context, node string, at netip.AddrPort) (status.VIP, error) {
	list, err := show[status.VIP](ctx, b, node, "show", at.String())
	if err != nil {
		return status.VIP{}, err
	}
	if len(list) != 1 {
		return status.VIP{}, fmt.Errorf("%s is %d VIPs on %s", at, len(list), node)
	}
	return list[0], nil
}

// ready says what keeps a VIP from being balanced by its path, or is nil.
func (b *bench) ready(ctx context.Context, from asking, path string, at netip.AddrPort) error {
	v, err := b.vipOn(ctx, from.node, at)
	if err != nil {
		return err
	}
	if v.Path != path || v.State != status.OK {
		return fmt.Errorf("%s on %s: %s, path %s (%s %s), want path %s", at, from.node, v.State, v.Path, v.Reason, v.ReasonDetail, path)
	}
	if from.name != machine.name {
		return nil
	}
	vms, err := show[status.VM](ctx, b, from.node, "vms")
	if err != nil {
		return err
	}
	for _, m := range vms {
		if m.Port == from.name {
			if m.Path != pathEBPF || m.State != status.OK {
				err = fmt.Errorf("%s on %s: %s, path %s (%s)", m.Port, from.node, m.State, m.Path, m.Reason)
			}
			return err
		}
	}
	return fmt.Errorf("%s has no machine %s", from.node, from.name)
}

// sessions is how many sessions of a VIP eBPF has begun.
func (b *bench) sessions(ctx context.Context, node string, at netip.AddrPort) (uint64, error) {
	v, err := b.vipOn(ctx, node, at)
	if err != nil || v.Traffic == nil {
		return 0, err
	}
	return v.Traffic.Sessions, nil
}

// tracked is what Open vSwitch's conntrack has of some connections.
type tracked struct {
	all int
	// vip is those that have a VIP for their destination: conntrack alone knows that they
	// go elsewhere.
	vip int
}

var trackedLine = regexp.MustCompile(`(?m)orig=\(src=([^,]+),dst=([^,]+),sport=(\d+),dport=(\d+)`)

// readTracked looks in a dump of conntrack for the connections of a client from some ports,
// first and the n-1 that follow, each of which may be in several zones, and from both
// sides.
func readTracked(dump string, client, vip netip.Addr, first, n int) (tracked, error) {
	all, balanced := map[int]bool{}, map[int]bool{}
	for _, m := range trackedLine.FindAllStringSubmatch(dump, -1) {
		src, srcErr := netip.ParseAddr(m[1])
		dst, dstErr := netip.ParseAddr(m[2])
		sport, sportErr := strconv.Atoi(m[3])
		dport, dportErr := strconv.Atoi(m[4])
		if err := errors.Join(srcErr, dstErr, sportErr, dportErr); err != nil {
			return tracked{}, fmt.Errorf("%q of conntrack: %w", m[0], err)
		}
		in := func(port int) bool { return port >= first && port < first+n }
		switch {
		case src == client && in(sport):
			all[sport] = true
			if dst == vip {
				balanced[sport] = true
			}
		case dst == client && in(dport):
			all[dport] = true
		}
	}
	return tracked{len(all), len(balanced)}, nil
}

// trackedBy looks for the last n connections of a target on the chassis that balances.
func (b *bench) trackedBy(ctx context.Context, node string, t *target, n int) (tracked, error) {
	dump, err := b.lab.Exec(ctx, node, "ovs-appctl", "dpctl/dump-conntrack")
	if err != nil {
		return tracked{}, err
	}
	return readTracked(dump, t.from, t.to[0].Addr(), int(t.next)-n, n)
}

// prove says whether the connections to a target went the way that it is measured for: all of
// them by the sessions that eBPF has counted, and the last ones by what conntrack has.
func prove(t *target, counted uint64, last int, has tracked) error {
	var err error
	switch {
	case t.path == pathEBPF && counted != uint64(t.made):
		err = errors.New("eBPF has not begun a session for each")
	case t.path == pathEBPF && has.vip != 0:
		err = errors.New("OVN has balanced some")
	case t.path == pathOVN && has.vip < last*9/10: // what ends early goes early
		err = errors.New("OVN has not balanced them all")
	case t.path == pathOVN && counted != 0:
		err = errors.New("eBPF has begun sessions")
	case t.bare && has.all != 0:
		err = errors.New("conntrack has some of a network without load balancers")
	}
	if err != nil {
		err = fmt.Errorf("%s: %d connections, %d sessions of eBPF; of the last %d conntrack has %d, of the VIP %d: %w", t.name, t.made, counted, last, has.all, has.vip, err)
	}
	return err
}
