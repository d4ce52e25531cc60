// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * fabric_in: ingress of sluice-vxlan. Packets of tenants that other nodes sent
 * over VXLAN enter OVN here, or follow a gateway that has moved on. It redirects
 * or drops and never passes a packet to the host.
 */
#include "lib/backend_route.h"
#include "lib/icmp_error.h"
#include "lib/relay.h"
#include "lib/vip_echo.h"
#include "lib/vip_error.h"

/* classify finds the VRF by outer source and VNI. 0 or a drop reason. */
static __always_inline __u32 classify(struct run *r)
{
	struct bpf_tunnel_key key;
	struct vtep_key from;

	/* The whole key: the kernel fills in a shorter one by way of a copy. */
	if (!bpf_skb_get_tunnel_key(r->skb, &key, sizeof(key), 0)) {
		if (!known_vtep4(bpf_htonl(key.remote_ipv4), from.addr))
			return DROP_UNKNOWN_VTEP;
	} else if (!bpf_skb_get_tunnel_key(r->skb, &key, sizeof(key), BPF_F_TUNINFO_IPV6)) {
		words_copy4(from.addr, key.remote_ipv6);
		if (!bpf_map_lookup_elem(&vteps_v1, &from))
			return DROP_UNKNOWN_VTEP;
	} else {
		return DROP_NO_TUNNEL_KEY;
	}
	STEP(r, STEP_VTEP, 0, from.addr);
	if (!vrf_find(r, key.tunnel_id))
		return DROP_UNKNOWN_VNI;
	STEP(r, STEP_VRF, r->vni, 0);
	return DROP_NONE;
}

/* read parses the inner frame. 0 or a drop reason. */
static __always_inline __u32 read(struct __sk_buff *skb, struct packet *p)
{
	void *data = frame(skb, ETH_HLEN);
	__u32 reason;

	if (!data)
		return DROP_SHORT_FRAME;
	struct ethhdr *eth = data;

	if (skb->vlan_present)
		return DROP_NESTED_VLAN;
	if (!mac_equal(eth->h_dest, node.router_mac))
		return DROP_FOREIGN_MAC;
	switch (eth->h_proto) {
	case bpf_htons(ETH_P_IP):
		return parse4(skb, p);
	case bpf_htons(ETH_P_IPV6):
		reason = parse6(skb, p);
		return reason ? reason : check6(p);
	case bpf_htons(ETH_P_8021Q):
	case bpf_htons(ETH_P_8021AD):
		return DROP_NESTED_VLAN;
	}
	return DROP_NOT_IP;
}

/* error_source is the address of the gateway port, or of any gateway port of the VRF. */
static __always_inline int error_source(struct run *r, struct entry *e, struct icmp_error *err)
{
	if (!e) {
		__u32 *row = bpf_map_lookup_elem(&speakers_v1, &r->vni);

		e = row ? entry_of(r, *row) : 0;
	}
	if (!e)
		return 0;
	if (err->family == 4) {
		addr_map4(err->src, e->addr4);
		return e->addr4 != 0;
	}
	words_copy4(err->src, e->addr6);
	return !martian6(err->src);
}

/* balance is backend_find, with the stack to itself. */
static __noinline __u32 balance(struct run *r, struct packet *p)
{
	return backend_find(r, p);
}

/* to_backend leads to the backend that was chosen; it has to be here. 0 or a drop reason. */
static __noinline __u32 to_backend(struct run *r, const struct packet *p, __u64 *route)
{
	*route = route_lookup(r, &r->to, p->family);
	if (!route_local(*route))
		*route = backend_route(r, &r->to);
	return route_local(*route) ? DROP_NONE : DROP_BACKEND_AWAY;
}

/* way_back leads to the packet's source: only one that the VRF reaches through the fabric can have sent it. */
static __always_inline struct nexthop *way_back(struct run *r, struct packet *p)
{
	__u64 route = route_search(r, &p->src, p->family, 1);

	if (route_kind(route) != ROUTE_REMOTE && route_kind(route) != ROUTE_GROUP)
		return 0;
	return nexthop_of(r, route, p);
}

/* refuse drops the packet and tells its sender, out in the fabric, why. */
static __noinline int refuse(struct run *r, struct packet *p, struct entry *e, __u32 reason, __u32 mtu)
{
	struct icmp_error err;

	drop_count(r, reason);
	icmp_fill(&err, p, reason, mtu);
	if (!error_source(r, e, &err))
		return icmp_refuse(r, REFUSED_NO_SOURCE);

	struct nexthop *h = way_back(r, p);

	if (!h)
		return icmp_refuse(r, REFUSED_BOGUS_SOURCE);
	__u32 why = icmp_allowed(r, p);

	if (why)
		return icmp_refuse(r, why);
	if (icmp_build(r->skb, &err) || set_macs(r->skb, node.router_mac, h->mac) || set_tunnel(r->skb, h, 1, OUTER_TTL))
		return icmp_refuse(r, REFUSED_KERNEL);
	STEP(r, STEP_ICMP, err.type << 8 | err.code, err.dst);
	count_answer(r);
	return redirect(r, node.vxlan_ifindex);
}

/* echo answers an echo request to a VIP. */
static __noinline int echo(struct run *r, struct packet *p)
{
	struct nexthop *h = way_back(r, p);

	if (!h)
		return drop(r, DROP_NO_ROUTE);
	int fits = p->size <= nexthop_mtu(h, p->size);

	/* Over IPv6 the kernel fragments no packet of a tunnel. */
	if (h->family == 6 && !fits)
		return drop(r, DROP_TOO_BIG);
	STEP(r, STEP_ECHO, 0, p->dst.addr);
	if (echo_reply(r->skb, p) || set_macs(r->skb, node.router_mac, h->mac))
		return drop(r, DROP_NAT);
	__u32 reason = set_tunnel(r->skb, h, p->df && fits, OUTER_TTL);

	if (reason)
		return drop(r, reason);
	count_answer(r);
	return redirect(r, node.vxlan_ifindex);
}

/*
 * hand_over gives a packet of a VRF on the kernel path to the VRF's devices,
 * undecided: the outer source is known, and that is all. The redirect itself
 * would lose it without a word, so the device is asked for first.
 */
static __always_inline int hand_over(struct run *r)
{
	__u32 mtu = 0;
	long fits = bpf_check_mtu(r->skb, r->device, &mtu, 0, 0);

	STEP(r, STEP_KERNEL, r->device, 0);
	if (fits < 0)
		return drop(r, DROP_NO_KERNEL_DEVICE);
	if (fits)
		return drop(r, DROP_TOO_BIG);
	struct counter *c = r->trace ? 0 : counter_of(r);

	if (c) {
		c->packets += r->skb->gso_segs ? r->skb->gso_segs : 1;
		c->bytes += r->skb->len - ETH_HLEN;
	}
	return redirect(r, r->device);
}

SEC("tc")
int fabric_in(struct __sk_buff *skb)
{
	struct run r;
	struct packet p;
	__u32 reason;

	run_start(&r, skb, FROM_FABRIC);
	reason = classify(&r);
	if (reason)
		return drop(&r, reason);
	if (r.device)
		return hand_over(&r);
	reason = read(skb, &p);
	if (reason)
		return drop(&r, reason);

	__u64 route = route_lookup(&r, &p.dst, p.family);

	if (!route)
		return refuse(&r, &p, 0, DROP_NO_ROUTE, 0);
	if (route_kind(route) == ROUTE_BLOCK)
		return drop(&r, DROP_BLOCKED);
	if (!route_local(route)) {
		if (p.ttl <= 1)
			return refuse(&r, &p, 0, DROP_TTL_EXPIRED, 0);
		int verdict = relay(&r, &p, route);

		return verdict < 0 ? drop(&r, -verdict) : verdict;
	}

	if (route_kind(route) == ROUTE_VIP) {
		if (icmp_is_echo(skb, &p))
			return echo(&r, &p);
		/* What is of no VIP goes where the address is. */
		reason = icmp_is_error(skb, &p) ? error_to_backend(&r, &p) : balance(&r, &p);
		if (!reason && r.side)
			reason = to_backend(&r, &p, &route);
		if (reason)
			return drop(&r, reason);
	} else if (r.unknown) {
		direct_note(&r, &p);
	}
	struct entry *e = entry_of(&r, route_ref(route));

	if (!e)
		return drop(&r, DROP_STALE_ROW);
	STEP(&r, STEP_ENTRY, route_ref(route), 0);
	if (p.ttl <= 1)
		return refuse(&r, &p, e, DROP_TTL_EXPIRED, 0);
	__u32 mtu = entry_mtu(e);

	if (p.size > mtu)
		return mtu ? refuse(&r, &p, e, DROP_TOO_BIG, mtu) : drop(&r, DROP_STALE_ROW);
	reason = r.side ? nat_write(&r, &p) : DROP_NONE;
	return reason ? drop(&r, reason) : to_entry(&r, &p, e);
}

char _license[] SEC("license") = "Dual BSD/GPL";
