/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* What was balanced, counted for each VIP and each backend. */
#include "gso.h"
#include "room.h"

#define UNRECORDED_IDLE 120 /* s after which what began without a row has ended, or has one */

/* STATS_ROW is a row of vip_stats or backend_stats: of a number, and of a processor. 0: it is not there. */
#define STATS_ROW(map, number, processor)                                                     \
	({                                                                                    \
		__u32 at = (number) * node.processors + (processor), page = at / STATS_PAGE; \
		void *rows = bpf_map_lookup_elem(&(map), &page);                              \
		at %= STATS_PAGE;                                                             \
		(struct balanced *)(rows ? bpf_map_lookup_elem(rows, &at) : 0);               \
	})

/* stats_count counts a packet of a flow to a VIP or of its answers. began: it is the first one. */
static __noinline void stats_count(const struct run *r, __u32 size, __u32 vip, __u32 backend, __u32 began)
{
	__u32 me = bpf_get_smp_processor_id(), way = r->direction & 1, packets = 1, bytes = r->skb->len - ETH_HLEN;

	if (r->skb->gso_size)
		packets = gso_packets(r->skb, size, &bytes);
	struct balanced *s = STATS_ROW(vip_stats_v1, vip, me);

	if (s) {
		s->packets[way] += packets;
		s->bytes[way] += bytes;
		s->flows += began;
	}
	s = STATS_ROW(backend_stats_v1, backend, me);
	if (s) {
		s->packets[way] += packets;
		s->bytes[way] += bytes;
		s->flows += began;
	}
}

/* stats_drop counts a packet to a VIP without a backend. */
static __noinline void stats_drop(const struct vip *v)
{
	struct balanced *s = STATS_ROW(vip_stats_v1, v->stats, bpf_get_smp_processor_id());

	if (s)
		s->drops++;
}

/* unrecorded_until is until when (s) there may be flows that began and have no row; 0: there were none. */
static __always_inline __u32 *unrecorded_until(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&unrecorded_v1, &zero);
}

/* uncertain tells whether a flow without a row may be one to a VIP all the same: to which ones, their rates tell. */
static __always_inline int uncertain(const struct run *r, __u32 now)
{
	__u32 *until = unrecorded_until();
	struct evictions *e = evictions_of();

	return r->unknown > now || (until && *until > now) || (e && e->until > now);
}

static __always_inline struct rate *rate_of(__u32 stats)
{
	return bpf_map_lookup_elem(&rates_v1, &stats);
}

#define TOKEN_TRIES 4

/* token_take takes a token of a bucket. Of processors that try at once all but one try again. */
static __always_inline int token_take(__u64 *due, int opens)
{
	int taken = -1;

	for (int i = 0; i < TOKEN_TRIES && taken < 0; i++)
		taken = token_try(due, node.flow_interval, node.flow_burst, opens ? node.flow_burst / 2 : 0);
	return taken > 0;
}

/*
 * flow_token takes what rows of a new flow cost: a token of the VIP, and of the machine on
 * whose tap it is. Half of the tokens are for packets that open no connection.
 */
static __noinline int flow_token(struct run *r, __u32 stats, int opens)
{
	struct rate *rate = rate_of(stats);

	if (!rate || !node.flow_interval)
		return 1;
#ifdef CLIENT
	if (!r->client || !token_take(&r->client->due, opens))
		return 0;
#else
	(void)r;
#endif
	return token_take(&rate->due, opens);
}

/* rate_without tells whether flows that began in OVN, or here, may be without a row. */
static __always_inline int rate_without(const struct vip *v, int ovn, __u32 now)
{
	struct rate *rate = rate_of(v->stats);

	return rate && (ovn ? rate->left : rate->unrecorded) > now;
}

/*
 * flow_allowed tells whether a new flow to a VIP gets rows. Above a rate it gets none, so
 * that a flood of packets that begin connections takes the rows of no others: its packets
 * go where its hash leads all the same.
 */
static __noinline int flow_allowed(struct run *r, const struct vip *v, int opens, __u32 now)
{
	if (flow_token(r, v->stats, opens))
		return 1;
	__u32 *until = unrecorded_until(), to = now + UNRECORDED_IDLE;
	struct rate *rate = rate_of(v->stats);

	if (rate && rate->unrecorded != to)
		rate->unrecorded = to;
	if (until && *until != to)
		*until = to;
	struct balanced *s = STATS_ROW(vip_stats_v1, v->stats, bpf_get_smp_processor_id());

	if (s)
		s->unrecorded++;
	return 0;
}
