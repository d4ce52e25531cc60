/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * How full the maps sessions and flows are. A full one makes room for a new row by evicting the
 * row that was not seen for the longest time, which may be of a flow that goes on, of whichever
 * VRF. No program sees an eviction, so each one that writes a row counts it.
 */
#include "run.h"

/*
 * How long a session without a packet lasts, in seconds: RFC 5382 (REQ-5) and RFC 4787
 * (REQ-5) for translators of addresses.
 */
#define TCP_IDLE 7440
#define TCP_TRANSITORY 240
#define UDP_IDLE 120

#define NEAR_IDLE 120 /* s for which a map counts as nearly full after the last row that made it so */

static __always_inline __u32 flow_idle(__u32 proto, __u32 state)
{
	if (proto == IPPROTO_UDP)
		return UDP_IDLE;
	return state == FLOW_OPEN ? TCP_IDLE : TCP_TRANSITORY;
}

/* Keys that are not on the stack: who begins a flow has used all of it, and has no frame left to call. */
static const __u32 room_rows[FLOW_MAPS] = {MAP_SESSIONS, MAP_FLOWS};

static __always_inline struct evictions *evictions_of(void)
{
	return bpf_map_lookup_elem(&evictions_v1, &room_rows[0]);
}

/*
 * room_take counts a row that is about to be written: before it is, so that an answer whose
 * session it evicts finds it counted. Half way to the limit connections of backends themselves
 * begin to be noted: by the time at which unknown answers are no longer passed on, those that
 * go on are known.
 */
static __always_inline void room_take(enum flow_map map, __u32 now)
{
	struct room *m = bpf_map_lookup_elem(&rooms_v1, &room_rows[map]);

	if (!m)
		return;
	__u64 limit = m->limit, rows = __sync_fetch_and_add(&m->rows, 1);
	struct evictions *e = limit && rows >= limit / 2 ? evictions_of() : 0;

	if (!e)
		return;
	if (e->near != now + NEAR_IDLE)
		e->near = now + NEAR_IDLE;
	if (rows >= limit && e->until != now + TCP_IDLE)
		e->until = now + TCP_IDLE;
}

/* rows_near tells whether a map is nearly full, or may have evicted flows that go on. */
static __always_inline int rows_near(__u32 now)
{
	struct evictions *e = evictions_of();

	return e && (e->near > now || e->until > now);
}

/* rows_evicted tells whether there may be flows of a protocol that go on, and whose row was evicted. */
static __always_inline int rows_evicted(__u32 proto, __u32 now)
{
	struct evictions *e = evictions_of();

	return e && e->until > now + TCP_IDLE - flow_idle(proto, FLOW_OPEN);
}
