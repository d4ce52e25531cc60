/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Routes of a VRF: single addresses first, then the longest prefix. */
#include "parse.h"

/* host_slot decides the row of host_front; the daemon computes the same (front_hosts.go). */
static __always_inline __u32 host_slot(const struct host_key *k)
{
	const __u32 *w = (const __u32 *)k->addr;
	__u64 h = ((__u64)k->vni << 32 | w[3]) * 0x9e3779b97f4a7c15ULL;

	h ^= ((__u64)w[0] << 32 | w[1]) * 0xff51afd7ed558ccdULL;
	h = (h ^ h >> 32 ^ w[2]) * 0xc4ceb9fe1a85ec53ULL;
	return h >> 32;
}

static __always_inline int words_equal4(const void *a, const void *b)
{
	const __u32 *x = a, *y = b;

	return x[3] == y[3] && x[2] == y[2] && x[1] == y[1] && x[0] == y[0];
}

static __always_inline struct route *host_lookup(const struct host_key *k)
{
	__u32 row = host_slot(k) & node.host_front_mask;
	struct host_front *front = bpf_map_lookup_elem(&host_front_v1, &row);

	if (front && front->vni == k->vni && words_equal4(front->addr, k->addr))
		return &front->route;
	return front && front->complete ? 0 : bpf_map_lookup_elem(&hosts_v1, k);
}

static __always_inline struct route *prefix_search(const struct host_key *k, __u8 family)
{
	if (family == 4) {
		struct prefix4_key p = {.prefixlen = 64, .vni = k->vni, .addr = addr_last(k->addr)};

		return bpf_map_lookup_elem(&prefixes4_v1, &p);
	}
	struct prefix6_key p = {.prefixlen = 160, .vni = k->vni};

	words_copy4(p.addr, k->addr);
	return bpf_map_lookup_elem(&prefixes6_v1, &p);
}

/*
 * prefix_lookup is prefix_search with a memory. The generation is read before
 * the search and raised after a change, so that nothing old is kept as new.
 */
static __always_inline struct route *prefix_lookup(const struct run *r, const struct host_key *k, __u8 family)
{
	__u32 zero = 0, row = host_slot(k) % PREFIX_CACHE;
	const volatile __u32 *generation = bpf_map_lookup_elem(&prefix_gen_v1, &zero);
	struct prefix_cache *c = bpf_map_lookup_elem(&prefix_cache_v1, &row);

	if (!generation || !c)
		return 0;
	__u32 now = *generation;

	if (now && c->generation == now && c->vni == k->vni && words_equal4(c->addr, k->addr))
		return c->route.kind ? &c->route : 0;
	struct route *route = prefix_search(k, family);

	if (r->trace)
		return route;
	c->vni = k->vni;
	c->generation = now;
	c->route.kind = route ? route->kind : 0;
	c->route.ref = route ? route->ref : 0;
	words_copy4(c->addr, k->addr);
	return route;
}

static __always_inline struct route *route_lookup(struct run *r, struct host_key *k, __u8 family)
{
	k->vni = r->vni;
	struct route *route = host_lookup(k);

	if (route) {
		STEP(r, STEP_HOST, route->kind, k->addr);
		return route;
	}
	route = prefix_lookup(r, k, family);
	if (route)
		STEP(r, STEP_PREFIX, route->kind, k->addr);
	return route;
}

/* vrf_index is the index of a VRF, 0 when there is none. */
static __always_inline __u32 vrf_index(__u32 vni)
{
	__u32 row = vni % VRF_FRONT;
	struct vrf_front *front = bpf_map_lookup_elem(&vrf_front_v1, &row);

	if (front && front->vni == vni)
		return front->index;
	struct vrf *vrf = bpf_map_lookup_elem(&vrfs_v1, &vni);

	return vrf ? vrf->index : 0;
}

static __always_inline int known_vtep4(__be32 addr, __u8 *mapped)
{
	__u32 row = bpf_ntohl(addr) % VTEP_FRONT;
	__be32 *front = bpf_map_lookup_elem(&vtep_front_v1, &row);

	addr_map4(mapped, addr);
	return (front && *front == addr && addr) || bpf_map_lookup_elem(&vteps_v1, mapped);
}

/* entry_of is the gateway port of a row number, if it belongs to the VRF. */
static __always_inline struct entry *entry_of(const struct run *r, __u32 row)
{
	struct entry *e = bpf_map_lookup_elem(&entries_v1, &row);

	return e && e->vni == r->vni && e->ifindex ? e : 0;
}

/*
 * flow_hash is equal for all packets of a flow: addresses, protocol and ports,
 * addresses alone for fragments, since only the first one has the ports.
 */
static __always_inline __u32 flow_hash(struct __sk_buff *skb, const struct packet *p)
{
	const __u32 *s = (const __u32 *)p->src.addr;
	const __u32 *d = (const __u32 *)p->dst.addr;
	__u64 h = 0x9e3779b97f4a7c15ULL;

#define MIX(a, b)                                                 \
	do {                                                      \
		h = (h ^ ((__u64)(a) << 32 | (b))) * 0xff51afd7ed558ccdULL; \
		h ^= h >> 32;                                     \
	} while (0)
	MIX(s[0], s[1]);
	MIX(s[2], s[3]);
	MIX(d[0], d[1]);
	MIX(d[2], d[3]);
	if (p->fragment == WHOLE) {
		int has_ports = p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP || p->proto == IPPROTO_SCTP;
		__u32 ports = has_ports ? l4_ports(skb, p) : 0;

		MIX(p->proto, ports);
	}
#undef MIX
	return h >> 16;
}

/* nexthop_of picks the next hop of a remote route, if it belongs to the VRF. */
static __always_inline struct nexthop *nexthop_of(struct run *r, const struct route *route, const struct packet *p)
{
	__u32 row = route->ref;

	if (route->kind == ROUTE_GROUP) {
		struct group *g = bpf_map_lookup_elem(&groups_v1, &row);

		if (!g || g->owner != r->vni)
			return 0;
		__u32 slot = flow_hash(r->skb, p) % GROUP_SLOTS;

		STEP(r, STEP_SLOT, slot, 0);
		row = g->members[g->slots[slot] % GROUP_MEMBERS];
	}
	struct nexthop *h = bpf_map_lookup_elem(&nexthops_v1, &row);

	if (!h || h->owner != r->vni)
		return 0;
	STEP(r, STEP_NEXTHOP, h->vni, h->vtep);
	return h;
}
