/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * One run of a program over one packet: what is known so far, the steps of a
 * trace, the counters, and the only two ways out: redirect() and drop().
 *
 * Trace mode: the wrapper program (trace.bpf.c) writes a magic number and the
 * nonce of the scratch map into skb->cb. Something that came from a wire may
 * leave anything in cb, but it cannot know the nonce, which is random, new for
 * each trace and 0 between traces. In trace mode nothing but the scratch map is
 * written.
 */
#include "frame.h"
#include "maps.h"
#include "node.h"

#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

/* Which end of a packet a load balancer changes. */
enum nat_side {
	NAT_NONE = 0,
	NAT_DESTINATION = 1,
	NAT_SOURCE = 2,
};

#define TRACE_MAGIC 0x53f1ce01

struct run {
	struct __sk_buff *skb;
	struct trace *trace; /* NULL: not in trace mode */
	__u32 vni;	     /* 0: not known yet */
	__u32 index;	     /* the VRF's, 0: not known yet */
	__u32 direction;
	__u32 device;	/* the VRF's, see struct vrf */
	__u64 lengths4; /* of the VRF's routes: see struct vrf_front */
	__u64 lengths6;
#ifndef WITHOUT_VIPS
	__u32 unknown;	/* the VRF's, see struct vrf_front */
	__u32 side;	/* enum nat_side: which end of the packet becomes to and port on its way out */
	struct address to;
	__be16 port; /* 0: it stays */
#endif
#ifdef CLIENT /* of a machine's tap: see client.h */
	__u8 mac[6] WORDS; /* with side: the destination's */
	struct client_key tap;
	struct client *client; /* of the tap */
#endif
};

static __always_inline void run_start(struct run *r, struct __sk_buff *skb, __u32 direction)
{
	__u32 zero = 0;

	*r = (struct run){.skb = skb, .direction = direction};
	if (skb->cb[0] != TRACE_MAGIC)
		return;
	struct trace *t = bpf_map_lookup_elem(&trace_v1, &zero);
	__u64 nonce = (__u64)skb->cb[2] << 32 | skb->cb[1];

	if (t && nonce && t->nonce == nonce)
		r->trace = t;
}

static __noinline void trace_append(struct trace *t, __u32 what, __u32 value, const __u8 *addr)
{
	__u32 n = t->count;

	if (n >= TRACE_STEPS)
		return;
	t->steps[n].what = what;
	t->steps[n].value = value;
	if (addr)
		__builtin_memcpy(t->steps[n].addr, addr, 16);
	t->count = n + 1;
}

/* addr is 16 bytes on the stack or in a map, or NULL. */
#define STEP(r, what, value, addr)                                      \
	do {                                                            \
		if ((r)->trace)                                         \
			trace_append((r)->trace, what, value, addr);    \
	} while (0)

/*
 * A token bucket in one word: the time at which the bucket would be empty.
 * reserve is the part of burst that is left for others. 1: it was taken; 0: there is
 * none; -1: another CPU was quicker, and there may be one more.
 */
static __always_inline int token_try(__u64 *due, __u64 interval, __u64 burst, __u64 reserve)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 old = *(volatile __u64 *)due;
	__u64 base = old + burst < now ? now - burst : old;

	if (base + interval + reserve > now)
		return 0;
	return __sync_val_compare_and_swap(due, old, base + interval) == old ? 1 : -1;
}

/* Two CPUs that race for the last token cost one answer, never one too many. */
static __always_inline int take_token(__u32 row, __u64 interval, __u64 burst)
{
	__u64 *due = bpf_map_lookup_elem(&buckets_v1, &row);

	return due && token_try(due, interval, burst, 0) > 0;
}

static __always_inline struct counter *counter_of(const struct run *r)
{
	__u32 row = r->index * 2 + r->direction;

	return bpf_map_lookup_elem(&counters_v1, &row);
}

static __noinline void sample_packet(struct __sk_buff *skb, __u32 reason, __u32 vni, __u32 direction)
{
	if (!take_token(0, node.sample_interval, node.sample_burst))
		return;
	struct sample *s = bpf_ringbuf_reserve(&samples_v1, sizeof(*s), 0);

	if (!s)
		return;
	__u32 caplen = skb->len;

	if (caplen > SAMPLE_BYTES)
		caplen = SAMPLE_BYTES;
	s->time = bpf_ktime_get_ns();
	s->reason = reason;
	s->vni = vni;
	s->ifindex = skb->ifindex;
	s->len = skb->len;
	s->direction = direction;
	s->pad = 0;
	__builtin_memset(s->data, 0, sizeof(s->data));
	/* Kernel 6.1 wants the lower bound on the very register, and learns none from a test for 0. */
	barrier_var(caplen);
	if (caplen < ETH_HLEN || bpf_skb_load_bytes(skb, 0, s->data, caplen))
		caplen = 0;
	s->caplen = caplen;
	bpf_ringbuf_submit(s, 0);
}

/* drop_count makes a packet a dropped one; the caller returns TC_ACT_SHOT or sends an answer. */
static __noinline void drop_count(struct run *r, __u32 reason)
{
	if (r->trace) {
		trace_append(r->trace, STEP_DROP, reason, 0);
		return;
	}
	__u64 *n = bpf_map_lookup_elem(&drops_v1, &reason);

	if (n)
		(*n)++;
	struct counter *c = counter_of(r);

	if (c)
		c->drops++;
	sample_packet(r->skb, reason, r->vni, r->direction);
}

static __always_inline int drop(struct run *r, __u32 reason)
{
	drop_count(r, reason);
	return TC_ACT_SHOT;
}

/* redirect sends the packet out of a device. */
static __always_inline int redirect(struct run *r, __u32 ifindex)
{
	STEP(r, STEP_REDIRECT, ifindex, 0);
	return bpf_redirect(ifindex, 0);
}

static __always_inline void count_answer(struct run *r)
{
	struct counter *c = r->trace ? 0 : counter_of(r);

	if (c)
		c->answers++;
}
