/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * Routes of a VRF: the longest prefix that matches. A route is a word here, as it
 * is in memory: its kind, and above it what it refers to. 0: there is none.
 */
#include "parse.h"

static __always_inline __u32 route_kind(__u64 route)
{
	return route;
}

/* route_local tells whether the route leads into OVN. */
static __always_inline int route_local(__u64 route)
{
	return (route & 0xf) == ROUTE_LOCAL;
}

static __always_inline __u32 route_ref(__u64 route)
{
	return route >> 32;
}

static __always_inline __u64 route_word(const struct route *r)
{
	return r ? (__u64)r->ref << 32 | r->kind : 0;
}

#define HOST_LENGTH 128

/*
 * front_slot decides the row of route_front; the daemon computes the same
 * (front_routes.go). head is the VNI, and above it the length.
 */
static __always_inline __u32 front_slot(__u64 head, __u64 high, __u64 low)
{
	__u64 h = head * 0x9e3779b97f4a7c15ULL ^ high * 0xff51afd7ed558ccdULL ^ low * 0xd6e8feb86659fd93ULL;

	return (h ^ h >> 32) * 0xc4ceb9fe1a85ec53ULL >> 32;
}

static __always_inline struct route *prefix_search(const struct run *r, const struct address *a, __u8 family)
{
	if (family == 4) {
		struct prefix4_key p = {.prefixlen = 64, .vni = r->vni, .addr = addr_last(a->addr)};

		return bpf_map_lookup_elem(&prefixes4_v1, &p);
	}
	struct prefix6_key p = {.prefixlen = 160, .vni = r->vni};

	words_copy4(p.addr, a->addr);
	return bpf_map_lookup_elem(&prefixes6_v1, &p);
}

/*
 * prefix_lookup is prefix_search with a memory. The generation is read before
 * the search and raised after a change, so that nothing old is kept as new.
 */
static __always_inline __u64 prefix_lookup(const struct run *r, const struct address *a, __u8 family)
{
	const __u64 *half = (const __u64 *)a->addr;
	__u32 zero = 0, row = front_slot(r->vni, half[0], half[1]) % PREFIX_CACHE;
	const volatile __u32 *generation = bpf_map_lookup_elem(&prefix_gen_v1, &zero);
	struct prefix_cache *c = bpf_map_lookup_elem(&prefix_cache_v1, &row);

	if (!generation || !c)
		return 0;
	__u32 now = *generation;
	__u64 *cached = (__u64 *)c->addr;

	if (now && c->generation == now && c->vni == r->vni && cached[0] == half[0] && cached[1] == half[1])
		return route_word(&c->route);
	__u64 route = route_word(prefix_search(r, a, family));

	if (r->trace)
		return route;
	c->vni = r->vni;
	c->generation = now;
	c->route.kind = route_kind(route);
	c->route.ref = route_ref(route);
	cached[0] = half[0];
	cached[1] = half[1];
	return route;
}

/* route_search asks the maps that route_front stands before: hosts, if it may be one, and the tries. */
static __noinline __u64 route_search(struct run *r, const struct address *a, __u32 family, int host)
{
	struct host_key k = {.vni = r->vni};
	__u64 route = 0;

	words_copy4(k.addr, a->addr);
	if (host)
		route = route_word(bpf_map_lookup_elem(&hosts_v1, &k));
	if (route) {
		STEP(r, STEP_HOST, route_kind(route), a->addr);
		return route;
	}
	route = prefix_lookup(r, a, family);
	if (route)
		STEP(r, STEP_PREFIX, route_kind(route), a->addr);
	return route;
}

/*
 * The masks of all prefix lengths, in wire order. To compute them takes branches,
 * which are paths that the verifier follows. 256 rows, since that is what it knows of an index.
 */
#define MASK_HIGH(n) __builtin_bswap64((n) >= 64 ? ~0ULL : ~(~0ULL >> ((n) & 63)))
#define MASK_LOW(n) __builtin_bswap64((n) <= 64 ? 0 : (n) == 128 ? ~0ULL : ~(~0ULL >> ((n) & 63)))
#define MASK(n) {MASK_HIGH(n), MASK_LOW(n)}
#define MASKS4(n) MASK(n), MASK((n) + 1), MASK((n) + 2), MASK((n) + 3)
#define MASKS16(n) MASKS4(n), MASKS4((n) + 4), MASKS4((n) + 8), MASKS4((n) + 12)
#define MASKS64(n) MASKS16(n), MASKS16((n) + 16), MASKS16((n) + 32), MASKS16((n) + 48)
static const __u64 masks[256][2] = {MASKS64(0), MASKS64(64), MASK(128)};

#define NO_ROUTE (~0ULL)

/* front_probe asks route_front for one prefix: the route, NO_ROUTE, or 0: only the maps know. */
static __always_inline __u64 front_probe(__u32 vni, __u64 length, __u64 high, __u64 low)
{
	__u64 head = length << 32 | vni;
	__u32 row = front_slot(head, high, low) & node.route_front_mask;
	struct route_front *front = bpf_map_lookup_elem(&route_front_v1, &row);

	if (!front)
		return 0;
	__u64 here = *(__u64 *)front;
	const __u64 *addr = (const __u64 *)front->addr;

	if (!(((here ^ head) & 0xffffffffff) | (addr[0] ^ high) | (addr[1] ^ low)))
		return *(__u64 *)&front->route;
	return here >> 40 & 1 ? NO_ROUTE : 0;
}

/*
 * route_lookup tries each prefix length that the VRF has, the longest first. That
 * of hosts stands apart: the processor need not wait for the list of lengths
 * to begin with it.
 */
static __always_inline __u64 route_lookup(struct run *r, const struct address *a, __u32 family)
{
	const __u64 *half = (const __u64 *)a->addr;
	__u64 lengths = family == 4 ? r->lengths4 : r->lengths6;
	__u32 length = lengths & 0xff;
	__u64 route = NO_ROUTE;
	int host = length == LENGTH_ASK;

	if (length == HOST_LENGTH) {
		route = front_probe(r->vni, HOST_LENGTH, half[0], half[1]);
		if (route && route != NO_ROUTE) {
			STEP(r, STEP_HOST, route_kind(route), a->addr);
			return route;
		}
		host = !route;
		lengths = lengths >> 8 | (__u64)LENGTH_NONE << 56;
	}
	for (int i = 0; i < 8 && route == NO_ROUTE; i++, lengths >>= 8) {
		length = lengths & 0xff;
		if (length > HOST_LENGTH) {
			route = length == LENGTH_NONE ? NO_ROUTE : 0;
			break;
		}
		route = front_probe(r->vni, length, half[0] & masks[length][0], half[1] & masks[length][1]);
	}
	if (!route)
		return route_search(r, a, family, host);
	if (route == NO_ROUTE)
		return 0;
	STEP(r, STEP_PREFIX, route_kind(route), a->addr);
	return route;
}

/* vrf_find makes the packet one of the VRF. 0: there is none. */
static __always_inline int vrf_find(struct run *r, __u32 vni)
{
	__u32 row = vni % VRF_FRONT;
	struct vrf_front *front = bpf_map_lookup_elem(&vrf_front_v2, &row);

	/* VNI 0 is none, and what a row says that says nothing. */
	if (front && vni && front->vni == vni) {
		r->index = front->index;
		r->device = front->device;
#ifndef WITHOUT_VIPS
		r->unknown = front->unknown;
#endif
		r->lengths4 = *(__u64 *)front->four;
		r->lengths6 = *(__u64 *)front->six;
	} else {
		struct vrf *vrf = bpf_map_lookup_elem(&vrfs_v2, &vni);

		if (!vrf)
			return 0;
		r->index = vrf->index;
		r->device = vrf->device;
#ifndef WITHOUT_VIPS
		/* The row says it for all VRFs whose row it might be. */
		r->unknown = front && front->unknown ? front->unknown : 1;
#endif
		r->lengths4 = r->lengths6 = LENGTH_ASK;
	}
	r->vni = vni;
	return 1;
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

/* entry_beside is entry_of, where the default VRF may also refer to the gateway port of a tenant's VRF. */
static __always_inline struct entry *entry_beside(const struct run *r, __u32 row)
{
	struct entry *e = bpf_map_lookup_elem(&entries_v1, &row);

	return e && e->ifindex && (e->vni == r->vni || r->vni == DEFAULT_VRF) ? e : 0;
}

/* entry_mtu is to be read once: the row is cleared when its gateway port goes, and 0 is no MTU. */
static __always_inline __u32 entry_mtu(const struct entry *e)
{
	return *(const volatile __u16 *)&e->mtu;
}

static __always_inline __u64 hash_mix(__u64 h, __u64 word)
{
	h = (h ^ word) * 0xff51afd7ed558ccdULL;
	return h ^ h >> 32;
}

/* hash_ends is the hash of a flow by its addresses, and with upper, unless that is 0, by protocol << 32 | ports. */
static __always_inline __u32 hash_ends(const struct address *src, const struct address *dst, __u64 upper)
{
	const __u64 *s = (const __u64 *)src->addr;
	const __u64 *d = (const __u64 *)dst->addr;
	__u64 h = hash_mix(hash_mix(hash_mix(hash_mix(0x9e3779b97f4a7c15ULL, s[0]), s[1]), d[0]), d[1]);

	if (upper)
		h = hash_mix(h, upper);
	return h >> 16;
}

/*
 * flow_hash is equal for all packets of a flow: addresses, protocol and ports,
 * addresses alone for fragments, since only the first one has the ports.
 */
static __always_inline __u32 flow_hash(struct __sk_buff *skb, const struct packet *p)
{
	__u64 upper = 0;

	if (p->fragment == WHOLE)
		upper = (__u64)p->proto << 32 | (has_ports(p->proto) ? l4_ports(skb, p) : 0);
	return hash_ends(&p->src, &p->dst, upper);
}

/* nexthop_of picks the next hop of a remote route, if it belongs to the VRF. */
static __always_inline struct nexthop *nexthop_of(struct run *r, __u64 route, const struct packet *p)
{
	__u32 row = route_ref(route);

	if (route_kind(route) == ROUTE_GROUP) {
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
