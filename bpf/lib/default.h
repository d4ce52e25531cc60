/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* The way out of the default VRF: by the host's routes, into the underlay. */
#include "fib.h"
#include "forward.h"

/* REFUSED is what way_out returns of a packet that its sender has to be told about. */
#define REFUSED(reason, mtu) (-(int)((reason) | (__u32)(mtu) << 8))
#define REFUSED_REASON(verdict) (-(verdict) & 0xff)
#define REFUSED_MTU(verdict) ((__u32)-(verdict) >> 8)

/*
 * default_source makes the packet one of the default VRF, if its source is exposed
 * there through the gateway port that it came from: a floating IP behind the gateway
 * port of a tenant.
 */
static __noinline int default_source(struct run *r, struct packet *p, __u32 row)
{
	__u32 vni = r->vni;

	if (vni == DEFAULT_VRF)
		return 0;
	r->vni = DEFAULT_VRF;
	__u64 route = route_search(r, &p->src, p->family, 1);

	if (route_local(route) && route_ref(route) == row && vrf_find(r, DEFAULT_VRF)) {
		STEP(r, STEP_VRF, DEFAULT_VRF, 0);
		return 1;
	}
	r->vni = vni;
	return 0;
}

/*
 * way_out sends a packet of the default VRF where the kernel would, out of a device
 * of the underlay; a verdict, or less than 0: see REFUSED. The kernel finds the
 * neighbour, since one that it is not asked for is never looked after.
 */
static __noinline int way_out(struct run *r, struct packet *p)
{
	struct bpf_fib_lookup fib __attribute__((aligned(8)));
	struct bpf_redir_neigh next = {};
	__u32 size = p->size, reason;

	fib_fill(r, p, &fib, size > 0xffff ? 0xffff : size);
	fib_ports(r, p, &fib);
	switch (bpf_fib_lookup(r->skb, &fib, sizeof(fib), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		break;
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return REFUSED(DROP_TOO_BIG, fib.mtu_result);
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
	case BPF_FIB_LKUP_RET_NOT_FWDED: /* no route, an address of the host's own, or a broadcast: it tells no more */
		return REFUSED(DROP_NO_ROUTE, 0);
	case BPF_FIB_LKUP_RET_FWD_DISABLED:
		return drop(r, DROP_FORWARDING_OFF);
	default: /* UNSUPP_LWT among them: a route with an encapsulation */
		return drop(r, DROP_NOT_UNDERLAY);
	}
	__u32 ifindex = fib.ifindex;

	if (!bpf_map_lookup_elem(&underlay_v1, &ifindex))
		return drop(r, DROP_NOT_UNDERLAY);
	next.nh_family = fib.family;
	if (fib.family == AF_INET)
		next.ipv4_nh = fib.ipv4_dst;
	else
		words_copy4(next.ipv6_nh, fib.ipv6_dst);
	if (r->trace) {
		__u8 via[16] WORDS;

		if (fib.family == AF_INET)
			addr_map4(via, fib.ipv4_dst);
		else
			words_copy4(via, fib.ipv6_dst);
		trace_append(r->trace, STEP_FIB, ifindex, via);
		trace_append(r->trace, STEP_REDIRECT, ifindex, 0);
	}
	/* No VIP is of the default VRF. */
	reason = set_vlan(r->skb, 0);
	/* The MAC addresses are written with the neighbour's. */
	if (!reason)
		reason = hop(r->skb, p, node.nexthop_mac, node.nexthop_mac);
	if (reason)
		return drop(r, reason);
	count_forwarded(r, p);
	return bpf_redirect_neigh(ifindex, &next, sizeof(next), 0);
}
