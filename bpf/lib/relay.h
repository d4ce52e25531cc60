/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * The relay: a packet from the fabric whose destination is behind another node is
 * sent on to it. The gateway has moved on, and not every sender knows yet.
 */
#include "forward.h"

/*
 * What relays send has fewer hops to go than anything that a sender of its own sends
 * (64 or 255): by that it is known. An underlay with a way of more than 31 hops would
 * lose the relay, and nothing else.
 */
#define RELAYED_TTL 32

/* outer_source is the tunnel endpoint that sent the packet. 0 or a drop reason. */
static __always_inline __u32 outer_source(struct __sk_buff *skb, struct vtep_key *from)
{
	struct bpf_tunnel_key key;

	if (!bpf_skb_get_tunnel_key(skb, &key, sizeof(key), 0))
		addr_map4(from->addr, bpf_htonl(key.remote_ipv4));
	else if (!bpf_skb_get_tunnel_key(skb, &key, sizeof(key), BPF_F_TUNINFO_IPV6))
		words_copy4(from->addr, key.remote_ipv6);
	else
		return DROP_NO_TUNNEL_KEY;
	return key.tunnel_ttl <= RELAYED_TTL ? DROP_RELAY_REFUSED : DROP_NONE;
}

static __always_inline int same_vtep(const struct nexthop *h, const struct vtep_key *v)
{
	const __u32 *a = (const __u32 *)h->vtep, *b = (const __u32 *)v->addr;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]));
}

/* leads_to tells whether a route leads to a tunnel endpoint, alone or beside others. */
static __noinline int leads_to(struct run *r, __u64 route, struct vtep_key *to)
{
	struct group *g = 0;
	__u32 row = route_ref(route), count = 1;

	if (route_kind(route) == ROUTE_GROUP) {
		g = bpf_map_lookup_elem(&groups_v1, &row);
		if (!g || g->owner != r->vni)
			return 0;
		count = g->count;
	} else if (route_kind(route) != ROUTE_REMOTE) {
		return 0;
	}
	for (__u32 i = 0; i < GROUP_MEMBERS && i < count; i++) {
		if (g)
			row = g->members[i];
		struct nexthop *h = bpf_map_lookup_elem(&nexthops_v1, &row);

		if (h && h->owner == r->vni && same_vtep(h, to))
			return 1;
	}
	return 0;
}

/*
 * relay sends the packet on; a verdict, or less than 0: a drop reason. Loops have
 * an end at once: one that was relayed is not relayed again, nor is a packet sent back
 * to the endpoint that it came from, and only from an endpoint behind which its own
 * source is.
 */
static __noinline int relay(struct run *r, struct packet *p, __u64 route)
{
	struct vtep_key from;

	__u32 reason = outer_source(r->skb, &from);

	if (reason)
		return -reason;
	struct nexthop *h = nexthop_of(r, route, p);

	if (!h)
		return -DROP_STALE_ROW;
	if (same_vtep(h, &from) || !leads_to(r, route_search(r, &p->src, p->family, 1), &from))
		return -DROP_RELAY_REFUSED;
	/*
	 * What does not fit is fragmented outside, where the kernel does so: not over IPv6. Nobody
	 * is told of an MTU that is gone in a moment.
	 */
	int fits = p->size <= nexthop_mtu(h, p->size);

	if (h->family == 6 && !fits)
		return -DROP_TOO_BIG;
	int df = fits && (node.df == DF_SET || (node.df == DF_AUTO && p->df));

	reason = hop(r->skb, p, node.router_mac, h->mac);
	if (!reason)
		reason = set_tunnel(r->skb, h, df, RELAYED_TTL);
	if (reason)
		return -reason;
	count_forwarded(r, p);
	return redirect(r, node.vxlan_ifindex);
}
