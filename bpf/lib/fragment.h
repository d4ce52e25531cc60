/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * Fragments of packets to VIPs and of their answers (RFC 791, RFC 8200 section 4.5).
 * Only the first one has the ports; what is done with it is kept for the others, which
 * it has to come before: nothing is put together here.
 */
#include "flow.h"

#define FRAGMENT_IDLE 30 /* s in which all fragments of a packet come: what Linux waits for them */

/* What becomes of a later fragment whose first one was not seen. On a tap it may be OVN's. */
#ifdef CLIENT
#define FRAGMENT_ALONE DROP_NONE
#else
#define FRAGMENT_ALONE DROP_VIP_FRAGMENT
#endif

/* fragment_key_of is the key of all fragments of a packet. 0: it cannot be told. */
static __always_inline int fragment_key_of(struct flow_key *k, const struct run *r, const struct packet *p)
{
	struct {
		__u8 next, reserved;
		__be16 offset;
		__be32 id;
	} h = {};

	if (p->family == 4) {
		__be16 id;

		if (bpf_skb_load_bytes(r->skb, ETH_HLEN + __builtin_offsetof(struct iphdr, id), &id, sizeof(id)))
			return 0;
		h.id = id;
	} else {
		if (bpf_skb_load_bytes(r->skb, p->l4 - sizeof(h), &h, sizeof(h)))
			return 0;
		/* With another header between this one and the ports it is not here. Nobody sends such. */
		if (p->fragment == FIRST_FRAGMENT && (h.next != p->proto || h.offset != bpf_htons(1)))
			return 0;
	}
	flow_key_of(k, r, p, h.id);
	return 1;
}

/* fragment_lead keeps what is done with the first fragment. 0 or a drop reason. */
static __noinline __u32 fragment_lead(struct run *r, const struct packet *p)
{
	struct flow_key k;

	if (!fragment_key_of(&k, r, p))
		return DROP_VIP_FRAGMENT;
	if (r->trace)
		return DROP_NONE;
	struct first_fragment f = {.tag = flow_tag(&k), .seen = now_seconds(), .side = r->side};

	words_copy4(f.addr, r->to.addr);
#ifdef CLIENT
	mac_copy(f.mac, r->mac);
#endif
	return bpf_map_update_elem(&fragments_v3, &k, &f, BPF_ANY) ? DROP_VIP_FRAGMENT : DROP_NONE;
}

/* fragment_follow does with a later fragment what was done with the first one. 0 or a drop reason. */
static __noinline __u32 fragment_follow(struct run *r, const struct packet *p)
{
	struct flow_key k;

	if (!fragment_key_of(&k, r, p))
		return DROP_VIP_FRAGMENT;
	struct first_fragment *f = bpf_map_lookup_elem(&fragments_v3, &k);

	if (!f || age(now_seconds(), f->seen) > FRAGMENT_IDLE)
		return FRAGMENT_ALONE;
	const volatile __u64 *from = (const volatile __u64 *)f->addr;
	__u64 *to = (__u64 *)r->to.addr;
	__u32 side = *(const volatile __u16 *)&f->side;

	to[0] = from[0];
	to[1] = from[1];
#ifdef CLIENT
	mac_copy(r->mac, f->mac);
#endif
	/* The row may be another packet's by now: see flow_read(). */
	if (*(const volatile __u32 *)&f->tag != flow_tag(&k))
		return DROP_VIP_FRAGMENT;
	r->side = side;
	return DROP_NONE;
}
