package lab

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Outside is the host on the provider network of the scenario EVPNMoves: it talks,
// by a static route through a gateway port, to a network that Sluice does not
// expose.
const Outside = "a-public-gw"

var (
	plain4 = netip.MustParsePrefix("10.30.0.0/24")
	plain6 = netip.MustParsePrefix("fd00:30::/64")
)

// EVPNMoves is the evpn scenario with a way to see what a move of gateway ports
// costs without Sluice.
func EVPNMoves() Scenario {
	s := EVPN(EVPNParams{Uplink: UplinkGateway})
	a := &s.Clouds[0]
	red := &a.Tenants[0]
	red.Networks = append(red.Networks, Network{Name: "plain", Unexposed: true, Subnet4: plain4, Subnet6: plain6})
	vm := evpnVM("a-red9", "a2", "red", 30, 9)
	vm.Network = "plain"
	a.VMs = append(a.VMs, vm)
	return s
}

// PrepareMoves gives the host outside its routes.
func (l *Lab) PrepareMoves(ctx context.Context) error {
	for prefix, via := range map[netip.Prefix]string{plain4: "172.24.0.11", plain6: "2001:db8:24::b"} {
		if _, err := l.Exec(ctx, Outside, "ip", "route", "replace", prefix.String(), "via", via); err != nil {
			return err
		}
	}
	return nil
}

// Move is for how long there was no answer while the gateway ports of red and blue
// moved: through Sluice, and from the host outside, which OVN alone serves.
type Move struct{ Sluice, OVN []ProbeOutage }

// Worst are the longest outages of both.
func (m Move) Worst() (sluice, ovn time.Duration) {
	for _, p := range m.Sluice {
		sluice = max(sluice, p.Outage)
	}
	for _, p := range m.OVN {
		ovn = max(ovn, p.Outage)
	}
	return sluice, ovn
}

// MoveGateways gives the gateway ports of both tenants of cloud A to a chassis, in
// one transaction.
func (l *Lab) MoveGateways(ctx context.Context, to string) error {
	other := map[string]string{"a1": "a2", "a2": "a1"}[to]
	var args []string
	for _, tenant := range []string{"red", "blue"} {
		port := GatewayPort(tenant)
		args = append(args, "--", "lrp-set-gateway-chassis", port, to, "20", "--", "lrp-set-gateway-chassis", port, other, "10")
	}
	_, err := l.NB(ctx, "a", args[1:]...)
	return err
}

// movePause is before and after a move.
const movePause = 500 * time.Millisecond

// MeasureMove moves the gateway ports of EVPNMoves to a1 or a2.
func (l *Lab) MeasureMove(ctx context.Context, to string) (Move, error) {
	var m Move
	var probes []*probe
	defer func() {
		for _, p := range probes {
			p.kill()
		}
	}()
	for _, ends := range [][2]string{
		{"b-red1", "10.10.0.11"}, {"b-red1", "fd00:10::11"}, {"a-red1", "10.20.0.11"}, {"a-red1", "fd00:20::11"},
		{Outside, "10.30.0.9"}, {Outside, "fd00:30::9"},
	} {
		p, err := l.startProbe(ctx, ends[0], ends[1], moveInterval)
		if err != nil {
			return m, err
		}
		probes = append(probes, p)
	}
	if err := awaitAnswers(ctx, probes); err != nil {
		return m, err
	}
	time.Sleep(movePause)
	if err := l.MoveGateways(ctx, to); err != nil {
		return m, err
	}
	after := time.Now().Add(movePause)
	for _, p := range probes {
		o, err := p.stop(ctx, after)
		if err != nil {
			return m, err
		}
		if p.from == Outside {
			m.OVN = append(m.OVN, o)
		} else {
			m.Sluice = append(m.Sluice, o)
		}
	}
	return m, nil
}

// moveInterval is the time between two packets of a probe that measures a move.
const moveInterval = 5 * time.Millisecond

// Medians are those of the longest outages of several moves.
func Medians(moves []Move) (sluice, ovn time.Duration) {
	var ours, theirs []time.Duration
	for _, m := range moves {
		s, o := m.Worst()
		ours, theirs = append(ours, s), append(theirs, o)
	}
	return median(ours), median(theirs)
}

func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
