package report

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// balancer is a plane that balances, and its VIPs, as answers see it.
type balancer struct {
	vips  []loadbalancer.Balanced
	table *reconcile.Table[intent.VIPKey, intent.VIP]
	dp    *ebpf.Dataplane
}

// balancers are those of this node: of packets from the fabric, if it is a gateway node, and
// of VMs' taps.
func (r *Report) balancers() ([]balancer, error) {
	g, err := r.role.Present()
	if err != nil && r.balancing.Running() == nil {
		return nil, err
	}
	var out []balancer
	if g != nil {
		out = append(out, balancer{vips: r.steps.Balanced(), table: tables.Of(g.Tables(), intent.VIPs), dp: g.Dataplane()})
	}
	if t := r.balancing.Running(); t != nil {
		out = append(out, balancer{vips: r.balancing.Balanced(), table: tables.Of(t.Tables, intent.ClientVIPs), dp: t.Dataplane})
	}
	return out, nil
}

// balancersOf are balancers, if the VRF that is asked about is one of this node; 0 is none.
func (r *Report) balancersOf(vni intent.VNI) ([]balancer, error) {
	all, err := r.balancers()
	if vni == 0 || err != nil || slices.ContainsFunc(all, func(b balancer) bool { return len(b.list(vni)) > 0 }) {
		return all, err
	}
	g, err := r.role.Present()
	return all, cmp.Or(err, lacks(g, vni))
}

// ask joins what all balancers of the node answer about a VRF, or about all for 0.
func ask[T any](r *Report, vni intent.VNI, answer func(balancer) ([]T, error)) ([]T, error) {
	all, err := r.balancersOf(vni)
	out := []T{}
	for _, b := range all {
		some, failed := answer(b)
		out, err = append(out, some...), errors.Join(err, failed)
	}
	return out, err
}

// VIPs are those of one VRF or switch, or all for 0.
func (r *Report) VIPs(vni intent.VNI) ([]status.VIP, error) {
	return ask(r, vni, func(b balancer) ([]status.VIP, error) { return b.list(vni), nil })
}

// Backends are the VIPs with what is known of each backend.
func (r *Report) Backends(vni intent.VNI) ([]status.VIP, error) {
	return ask(r, vni, func(b balancer) ([]status.VIP, error) { return b.backends(vni) })
}

// list has the VIPs of one VRF or switch, or all for 0.
func (b balancer) list(vni intent.VNI) []status.VIP {
	out := []status.VIP{}
	for _, one := range b.vips {
		k := one.VIP.Key
		if vni != 0 && vni != k.VNI {
			continue
		}
		v := status.VIP{
			VNI: k.VNI, Switch: one.Switch, Address: k.Addr, Port: k.Port, Protocol: k.Protocol, LoadBalancer: one.Balancer, Path: string(one.Choice.Path),
			Reason: one.Choice.Reason, ReasonDetail: one.Choice.Detail, Standby: one.Standby, State: status.OK, Slots: one.VIP.Slots, Affinity: one.VIP.Affinity, Flush: one.VIP.Flush, Backends: backendsOf(one),
		}
		if one.Choice.Path == loadbalancer.PathEBPF {
			v.State, _, v.Error = tables.StateOf(b.table.State(k))
		}
		out = append(out, v)
	}
	return out
}

func backendsOf(b loadbalancer.Balanced) []status.VIPBackend {
	out := []status.VIPBackend{}
	for _, x := range b.Backends {
		state := status.BackendUp
		switch {
		case x.Down:
			state = status.BackendDown
		case x.Weight == 0 && b.Choice.Path == loadbalancer.PathEBPF:
			state = status.BackendDraining
		}
		out = append(out, status.VIPBackend{Addr: x.Address.Addr(), Port: x.Address.Port(), Weight: x.Weight, State: state})
	}
	return out
}

// backends is list with what is known of each backend: its slots and sessions.
func (b balancer) backends(vni intent.VNI) ([]status.VIP, error) {
	all := b.list(vni)
	counts, err := b.dp.Reader().FlowCounts()
	if err != nil {
		return nil, err
	}
	for i := range all {
		v := &all[i]
		row, served := b.table.Wanted(keyOf(*v))
		if served && !row.OVN {
			hash, slots, err := ebpf.TableOf(row)
			if err != nil {
				v.State, v.Error = status.Error, err.Error()
				continue
			}
			v.TableHash = fmt.Sprintf("%016x", hash)
			for j, b := range v.Backends {
				v.Backends[j].Slots = slots[netip.AddrPortFrom(b.Addr, b.Port)]
			}
		}
	}
	countSessions(all, counts)
	vips, backends := b.dp.VIPs().Stats()
	for i := range all {
		v := &all[i]
		if t, ok := vips[keyOf(*v)]; ok {
			v.Traffic = status.Known(trafficOf(t))
		}
		for j, b := range v.Backends {
			if t, ok := backends[ebpf.BackendKey{VNI: v.VNI, Protocol: v.Protocol, Addr: netip.AddrPortFrom(b.Addr, b.Port)}]; ok {
				v.Backends[j].Traffic = status.Known(trafficOf(t))
			}
		}
	}
	return all, nil
}

func trafficOf(b ebpf.Balanced) status.VIPTraffic {
	return status.VIPTraffic{
		ToBackends: status.PacketCount(b.ToBackends), ToClients: status.PacketCount(b.ToClients),
		Sessions: b.Flows, Unrecorded: b.Unrecorded, Drops: b.Drops,
	}
}

// metrics reads what the data plane has counted.
func (b balancer) metrics(perBackend bool) (out nodemetrics.LoadBalancing, err error) {
	evictions, err := b.dp.Reader().Evictions()
	if err != nil {
		return out, err
	}
	out.Evictions = []nodemetrics.Evictions{{Table: b.table.Name(), Evicting: evictions.Evicting, Translated: evictions.Translated}}
	vips, backends := b.dp.VIPs().Stats()
	if len(vips) == 0 {
		return out, nil
	}
	counts, err := b.dp.Reader().FlowCounts()
	if err != nil {
		return out, err
	}
	open, hashes := map[intent.VIPKey]uint32{}, b.dp.VIPs().Hashes()
	for target, n := range counts {
		if _, ok := vips[target.VIP]; !ok {
			target.VIP.Port = 0
		}
		open[target.VIP] += n
	}
	for k, b := range vips {
		out.VIPs = append(out.VIPs, nodemetrics.VIP{Balanced: nodemetrics.Balanced{VNI: k.VNI, Of: intent.FormatEndpoint(k.Addr, k.Port), Protocol: k.Protocol.String(),
			VIPTraffic: trafficOf(b)}, Open: open[k], TableHash: hashes[k]})
	}
	if !perBackend {
		return out, nil
	}
	for k, b := range backends {
		out.Backends = append(out.Backends, nodemetrics.Balanced{VNI: k.VNI, Of: intent.FormatEndpoint(k.Addr.Addr(), k.Addr.Port()), Protocol: k.Protocol.String(),
			VIPTraffic: trafficOf(b)})
	}
	return out, nil
}

// countSessions adds sessions to the backends of their VIPs: by the VIP's port, else to that of
// all ports.
func countSessions(vips []status.VIP, counts map[ebpf.FlowTarget]uint32) {
	at := map[intent.VIPKey]int{}
	for i, v := range vips {
		at[keyOf(v)] = i
	}
	for target, n := range counts {
		i, ok := at[target.VIP]
		port := target.Backend.Port()
		if !ok {
			target.VIP.Port, port = 0, 0
			i, ok = at[target.VIP]
		}
		if !ok {
			continue
		}
		for j, b := range vips[i].Backends {
			if b.Addr == target.Backend.Addr() && b.Port == port {
				vips[i].Backends[j].Sessions += n
			}
		}
	}
}

// ExplainVIP tells which backend a session gets here, and on a node without its entry.
func (r *Report) ExplainVIP(q status.VIPQuery) (status.VIPExplanation, error) {
	if err := checkVIPQuery(q); err != nil {
		return status.VIPExplanation{}, fmt.Errorf("%w: %w", admin.ErrBadRequest, err)
	}
	all, err := r.balancers()
	if err != nil {
		return status.VIPExplanation{}, err
	}
	for _, b := range all {
		out, err := b.explain(q)
		if errors.Is(err, admin.ErrNotFound) {
			continue
		}
		if err == nil && q.Switch != "" && out.VIP.Path == string(loadbalancer.PathEBPF) && out.LeftToOVN == "" {
			out.LeftToOVN = r.leaves(q)
		}
		return out, err
	}
	where := "VRF " + q.VNI.String()
	if q.Switch != "" {
		where = "switch " + q.Switch + ", which needs a VM on this node"
	}
	return status.VIPExplanation{}, fmt.Errorf("VIP %s/%s in %s: %w; 'sluicectl lb list' shows the VIPs of this node", q.VIP, q.Protocol, where, admin.ErrNotFound)
}

// checkVIPQuery finds what is no question about a packet.
func checkVIPQuery(q status.VIPQuery) error {
	switch client, vip := q.Client.Addr().Unmap(), q.VIP.Addr().Unmap(); {
	case (q.VNI == 0) == (q.Switch == ""):
		return errors.New("either vni or switch is needed")
	case !client.IsValid() || !vip.IsValid():
		return errors.New("client and vip are needed, each with its port")
	case client.Is4() != vip.Is4():
		return fmt.Errorf("client %s and VIP %s have different address families", client, vip)
	case q.Protocol == 0:
		return errors.New("a protocol is needed")
	case intent.Martian(netip.PrefixFrom(client, client.BitLen())):
		return fmt.Errorf("packets from %s are dropped: no VM has such an address", client)
	}
	return nil
}

func (b balancer) explain(q status.VIPQuery) (status.VIPExplanation, error) {
	all := slices.DeleteFunc(b.list(q.VNI), func(v status.VIP) bool { return v.Switch != q.Switch })
	if q.Switch != "" && len(all) > 0 {
		q.VNI = all[0].VNI
	}
	out := status.VIPExplanation{Query: q}
	key := intent.VIPKey{VNI: q.VNI, Protocol: q.Protocol, Addr: q.VIP.Addr().Unmap(), Port: q.VIP.Port()}
	at := slices.IndexFunc(all, func(v status.VIP) bool { return keyOf(v) == key })
	if at < 0 {
		key.Port = 0
		at = slices.IndexFunc(all, func(v status.VIP) bool { return keyOf(v) == key })
	}
	if at < 0 {
		return out, admin.ErrNotFound
	}
	out.VIP = all[at]
	row, served := b.table.Wanted(key)
	if !served {
		return out, nil
	}
	flow := ebpf.FlowKey{VNI: q.VNI, Protocol: q.Protocol, Src: q.Client, Dst: q.VIP}
	f, known, err := b.dp.Reader().Flow(flow)
	switch {
	case !known:
	case f.ToVIP:
		out.Session = &f.Becomes
	case f.OVN && !row.OVN:
		out.LeftToOVN = "OVN has balanced it from its start"
	}
	if err != nil || row.OVN {
		return out, err // OVN chooses for all others
	}
	choice, ok, err := ebpf.Choose(row, q.Client, q.VIP)
	if err != nil {
		return out, err
	}
	out.Slot = choice.Slot
	if ok {
		out.Backend = &choice.Backend
	}
	if q.Switch != "" && out.Session == nil && ok && choice.Backend.Addr == q.Client.Addr() {
		out.LeftToOVN = "the client is the backend itself"
	}
	if err != nil || row.Affinity == 0 {
		return out, err
	}
	kept, since, err := b.dp.Reader().Kept(flow)
	if since <= time.Duration(row.Affinity)*time.Second && takesSessions(row, kept) {
		out.Affinity = &kept
	}
	return out, err
}

// takesSessions tells whether a backend of a VIP gets new sessions.
func takesSessions(v intent.VIP, at netip.AddrPort) bool {
	return slices.ContainsFunc(v.Backends.All(), func(b intent.Backend) bool {
		return b.Weight > 0 && b.Addr == at.Addr() && b.Port == at.Port()
	})
}

func keyOf(v status.VIP) intent.VIPKey {
	return intent.VIPKey{VNI: v.VNI, Protocol: v.Protocol, Addr: v.Address, Port: v.Port}
}
