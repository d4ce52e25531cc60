// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * overlay_in: ingress of sluice<N>. Packets of tenants leave OVN here, towards
 * other nodes or another gateway of this node. It redirects or drops and never
 * passes a packet on.
 */
#define ANSWERS
#include "lib/arp_nd.h"
#include "lib/backend_route.h"
#include "lib/default.h"
#include "lib/vip_error.h"

#define BFD_CONTROL 3784  /* RFC 5881 */
#define BFD_ECHO 3785     /* RFC 5881 */
#define BFD_MULTIHOP 4784 /* RFC 5883 */

/* entry_is tells whether the entry is that of the gateway in the VRF. A free row is of none: its MAC is 0. */
static __always_inline int entry_is(const struct entry *e, const struct gateway_key *k, __u32 vni)
{
	return e && vni && e->vni == vni && e->ifindex == k->ifindex && e->vlan == k->vlan && mac_equal(k->mac, e->mac);
}

/* classify finds entry and VRF by where the frame came from. 0 or a drop reason. */
static __always_inline __u32 classify(struct run *r, const struct ethhdr *eth, __u32 *row)
{
	struct gateway_key k = {.ifindex = r->skb->ifindex, .vlan = vlan_of(r->skb)};

	/* A service tag (802.1ad) of the same number is another network. */
	if (r->skb->vlan_present && r->skb->vlan_proto != bpf_htons(ETH_P_8021Q))
		return DROP_NESTED_VLAN;
	mac_copy(k.mac, eth->h_source);
	__u32 slot = (((const __u16 *)k.mac)[2] ^ k.vlan ^ k.ifindex) % GATEWAY_FRONT;
	struct gateway *g = bpf_map_lookup_elem(&gate_front_v2, &slot);

	*row = g ? g->entry : 0;
	__u32 vni = g ? g->vni : 0;
	struct entry *e = bpf_map_lookup_elem(&entries_v1, row);

	if (!entry_is(e, &k, vni)) {
		g = bpf_map_lookup_elem(&gateways_v1, &k);
		if (!g)
			return DROP_UNKNOWN_GATEWAY;
		*row = g->entry;
		vni = g->vni;
		/*
		 * A row that is deleted under our hands may already hold another
		 * key's value; the entry says whose it is.
		 */
		e = bpf_map_lookup_elem(&entries_v1, row);
		if (!entry_is(e, &k, vni))
			return DROP_STALE_ROW;
	}
	return vrf_find(r, vni) ? DROP_NONE : DROP_STALE_ROW;
}

/* is_bfd tells whether the packet is BFD to a next hop that Sluice serves. */
static __always_inline int is_bfd(struct __sk_buff *skb, const struct packet *p, __u32 entry)
{
	if (p->proto != IPPROTO_UDP || p->fragment == LATER_FRAGMENT)
		return 0;
	__be16 port = l4_ports(skb, p) >> 16;

	if (port != bpf_htons(BFD_CONTROL) && port != bpf_htons(BFD_ECHO) && port != bpf_htons(BFD_MULTIHOP))
		return 0;
	return is_served(entry, p->family, p->dst.addr);
}

/* error_source is the next hop that the router asked for last, else the configured address. */
static __always_inline int error_source(struct icmp_error *err, __u32 row, const struct entry *e)
{
	struct asked *last = bpf_map_lookup_elem(&asked_v1, &row);

	if (err->family == 4) {
		addr_map4(err->src, last && last->addr4 ? last->addr4 : e->icmp4);
		return addr_last(err->src) != 0;
	}
	if (last) {
		words_copy4(err->src, last->addr6);
		/* A link-local next hop would not get past the router. */
		if (!martian6(err->src))
			return 1;
	}
	words_copy4(err->src, e->icmp6);
	return !martian6(err->src);
}

/* refuse drops the packet and tells its sender, behind the router, why. */
static __noinline int refuse(struct run *r, struct packet *p, __u32 row, __u32 reason, __u32 mtu)
{
	struct icmp_error err;

	drop_count(r, reason);
	struct entry *e = entry_beside(r, row);

	icmp_fill(&err, p, reason, mtu);
	if (!e || !error_source(&err, row, e))
		return icmp_refuse(r, REFUSED_NO_SOURCE);
	__u32 why = icmp_allowed(r, p);

	if (why)
		return icmp_refuse(r, why);
	/* The VLAN tag stays as it came. */
	if (icmp_build(r->skb, &err) || set_macs(r->skb, node.nexthop_mac, e->mac))
		return icmp_refuse(r, REFUSED_KERNEL);
	STEP(r, STEP_ICMP, err.type << 8 | err.code, err.dst);
	count_answer(r);
	return redirect(r, r->skb->ifindex);
}

/*
 * outer_df decides about a packet against the MTU of its next hop: 1 or 0 for
 * the outer DF bit, -1 when it is too big. Over IPv6 there is no such bit, and the kernel
 * drops the packet of a tunnel that it would have to fragment.
 */
static __always_inline int outer_df(struct run *r, const struct packet *p, const struct nexthop *h, __u32 mtu)
{
	if (h->family == 6)
		return p->size <= mtu ? 0 : -1;
	if (node.df == DF_CLEAR)
		return 0;
	if (p->size <= mtu)
		return node.df == DF_SET || p->df;
	/* No sender of IPv6 goes below 1280 bytes (RFC 8200 section 5). */
	if (node.df == DF_SET || (p->df && !(p->family == 6 && p->size <= IPV6_MIN_MTU)))
		return -1;
	STEP(r, STEP_FRAGMENT, p->size, 0);
	return 0;
}

/* to_fabric sends the packet to another node. */
static __always_inline int to_fabric(struct run *r, const struct packet *p, const struct nexthop *h, int df)
{
	__u32 reason = set_vlan(r->skb, 0);

	if (!reason)
		reason = hop(r->skb, p, node.router_mac, h->mac);
	if (!reason)
		reason = set_tunnel(r->skb, h, df, OUTER_TTL);
	if (reason)
		return drop(r, reason);
	count_forwarded(r, p);
	return redirect(r, node.vxlan_ifindex);
}

int overlay_answer(struct __sk_buff *skb);

/*
 * What overlay_in calls. The array is of one load of the two programs: overlay_in runs with the overlay_answer that it
 * was built with, also while others take their place.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct __sk_buff *));
} overlay_calls SEC(".maps") = {.values = {[0] = (void *)&overlay_answer}};

/*
 * depart sends the packet to a next hop, or with none into OVN by a row of entries. What may be a backend's answer
 * goes by way of overlay_answer: the verifier would follow each path through that once for each path to here.
 */
static __always_inline int depart(struct run *r, struct packet *p, const struct nexthop *h, int df, const struct entry *e,
				  __u32 entry, int answers_only)
{
	if (!answer_may(r, p)) {
		if (answers_only)
			return drop(r, DROP_SOURCE_NOT_EXPOSED);
		return h ? to_fabric(r, p, h, df) : to_entry(r, p, e);
	}
	struct work *w = work_of();

	if (!w)
		return drop(r, DROP_NAT);
	struct departure *d = &w->departure;

	w->packet = *p;
	if (h)
		d->hop = *h;
	d->local = !h;
	d->entry = entry;
	d->vni = r->vni;
	d->index = r->index;
	d->unknown = r->unknown;
	d->df = df;
	d->answers_only = answers_only;
	bpf_tail_call(r->skb, &overlay_calls, 0);
	return drop(r, DROP_NAT);
}

static __always_inline int to_nexthop(struct run *r, struct packet *p, __u64 route, __u32 row, int answers_only)
{
	struct nexthop *h = nexthop_of(r, route, p);

	if (!h)
		return drop(r, DROP_STALE_ROW);
	__u32 mtu = nexthop_mtu(h, p->size);
	int df = outer_df(r, p, h, mtu);

	if (df < 0)
		return refuse(r, p, row, DROP_TOO_BIG, mtu);
	return depart(r, p, h, df, 0, 0, answers_only);
}

/* no_route leads out of the default VRF by the host's routes; a tenant's VRF has no other way. */
static __always_inline int no_route(struct run *r, struct packet *p, __u32 row)
{
	__u32 reason = DROP_NO_ROUTE, mtu = 0;

	if (r->vni == DEFAULT_VRF) {
		int verdict = -DROP_TTL_EXPIRED;

		if (p->ttl > 1)
			verdict = way_out(r, p);
		if (verdict >= 0)
			return verdict;
		reason = REFUSED_REASON(verdict);
		mtu = REFUSED_MTU(verdict);
	}
	return refuse(r, p, row, reason, mtu);
}

/* forward takes a parsed packet whose addresses may be routed. */
static __always_inline int forward(struct run *r, struct packet *p, __u32 row)
{
	__u64 route = route_lookup(r, &p->src, p->family);

	if ((!route_local(route) || route_ref(route) != row) && !default_source(r, p, row)) {
		route = backend_route(r, &p->src);
		if (!route_local(route) || route_ref(route) != row)
			return drop(r, DROP_SOURCE_NOT_EXPOSED);
	}
	int answers_only = route_kind(route) >> ROUTE_BACKEND_BIT & 1;

	STEP(r, STEP_SOURCE, row, p->src.addr);
	/* The place of BFD answers. */
	if (is_bfd(r->skb, p, row))
		return drop(r, DROP_BFD);

	route = route_lookup(r, &p->dst, p->family);
	if (!route)
		return no_route(r, p, row);
	if (route_kind(route) == ROUTE_BLOCK)
		return drop(r, DROP_BLOCKED);
	if (route_local(route) && route_ref(route) == row)
		return drop(r, DROP_HAIRPIN);
	if (p->ttl <= 1)
		return refuse(r, p, row, DROP_TTL_EXPIRED, 0);
	if (!route_local(route))
		return to_nexthop(r, p, route, row, answers_only);

	/* Another gateway port of the same VRF on this node. */
	struct entry *e = entry_beside(r, route_ref(route));

	if (!e)
		return drop(r, DROP_STALE_ROW);
	STEP(r, STEP_ENTRY, route_ref(route), 0);
	__u32 mtu = entry_mtu(e);

	if (p->size > mtu)
		return mtu ? refuse(r, p, row, DROP_TOO_BIG, mtu) : drop(r, DROP_STALE_ROW);
	return depart(r, p, 0, 0, e, route_ref(route), answers_only);
}

/*
 * overlay_answer is the rest of overlay_in for what may be a backend's answer: it comes from its VIP. What the other
 * one has decided is in the row of scratch.
 */
SEC("tc")
int overlay_answer(struct __sk_buff *skb)
{
	struct run r;
	struct work *w = work_of();

	run_start(&r, skb, TO_FABRIC);
	if (!w)
		return drop(&r, DROP_NAT);
	const struct departure *d = &w->departure;
	struct packet *p = &w->packet;

	r.vni = d->vni;
	r.index = d->index;
	r.unknown = d->unknown;
	__u32 reason = answer_apply(&r, p);

	if (!reason && d->answers_only && r.side != NAT_SOURCE)
		reason = DROP_SOURCE_NOT_EXPOSED;
	if (reason)
		return drop(&r, reason);
	if (!d->local)
		return to_fabric(&r, p, &d->hop, d->df);
	struct entry *e = entry_beside(&r, d->entry);

	return e ? to_entry(&r, p, e) : drop(&r, DROP_STALE_ROW);
}

SEC("tc")
int overlay_in(struct __sk_buff *skb)
{
	struct run r;
	struct packet p;
	__u32 reason;

	run_start(&r, skb, TO_FABRIC);
	void *data = frame(skb, ETH_HLEN);

	if (!data)
		return drop(&r, DROP_SHORT_FRAME);
	struct ethhdr *eth = data;
	__u32 row;

	reason = classify(&r, eth, &row);
	if (reason)
		return drop(&r, reason);
	STEP(&r, STEP_GATEWAY, row, 0);
	STEP(&r, STEP_VRF, r.vni, 0);

	int for_us = mac_equal(eth->h_dest, node.nexthop_mac);

	switch (eth->h_proto) {
	case bpf_htons(ETH_P_ARP):
		return arp_in(&r, row);
	case bpf_htons(ETH_P_IP):
		reason = parse4(skb, &p);
		break;
	case bpf_htons(ETH_P_IPV6):
		reason = parse6(skb, &p);
		if (!reason && p.proto == IPPROTO_ICMPV6 && p.fragment == WHOLE) {
			__u8 type;

			if (!bpf_skb_load_bytes(skb, p.l4, &type, 1) && type >= ND_FIRST && type <= ND_LAST)
				return nd_in(&r, &p, row);
		}
		if (!reason)
			reason = check6(&p);
		break;
	case bpf_htons(ETH_P_8021Q):
	case bpf_htons(ETH_P_8021AD):
		reason = DROP_NESTED_VLAN;
		break;
	default:
		reason = DROP_NOT_IP;
	}
	if (reason)
		return drop(&r, reason);
	if (!for_us)
		return drop(&r, DROP_FOREIGN_MAC);
	return forward(&r, &p, row);
}

char _license[] SEC("license") = "Dual BSD/GPL";
