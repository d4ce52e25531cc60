/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Flows to VIPs that are known: their keys, how long they live, and how a row of flows is read. */
#include "nat.h"
#include "room.h"
#include "stats.h"

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16
#define TCP_FLAGS 13 /* offset */

#define SCTP_INIT 1
#define SCTP_INIT_ACK 2
#define SCTP_ABORT 6
#define SCTP_SHUTDOWN_COMPLETE 14
#define SCTP_CHUNK 12 /* offset of the first chunk's type */

/* l4 is what the upper layer's header says. */
struct l4 {
	__u32 ports;
	__u32 flags; /* of TCP, and of SCTP in the same words; else 0 */
	__u32 now;   /* s */
};

/* answer_search looks for the VIP of which an answer is. */
struct answer_search {
	struct vip_key from; /* row of answers */
	struct address client;
	struct address vip; /* the result, with port */
	__u32 ports;
	__u32 now; /* s */
	__u32 all; /* whether flows of any VIP may have no row, and not only those of VIPs that say so */
	__u32 found;   /* VIPs */
	__u32 backend; /* row of backends */
	__u32 stats;   /* row of vip_stats */
	__be16 port;
};

/* departure is what overlay_in has decided of a packet that may be an answer, for overlay_answer to do. */
struct departure {
	struct nexthop hop; /* to another node */
	__u32 entry;	    /* row of entries: into OVN */
	__u32 vni;	    /* as in struct run, and those after it */
	__u32 index;
	__u32 unknown;
	__u8 local;	   /* into OVN */
	__u8 df;	   /* of the outer header */
	__u8 answers_only; /* what is no answer of a VIP is not accepted from the source */
};

/*
 * work is what of a packet is not on the stack, which is 512 bytes for all calls. No
 * other packet comes to the processor meanwhile, but to one of trace mode.
 */
struct work {
	struct flow_key own; /* of the packet itself, in flow_find() */
	struct l4 own_l4;
	struct flow_key key;
	struct l4 l4;
	struct flow flow;
	struct session_key client; /* of the packet's client, in flow_find() and answer_known() */
	struct session session;
	struct packet quoted;
	struct answer_search search;
	struct packet packet; /* of programs whose own stack has no room for it, and of overlay_answer */
	struct departure departure;
};
_Static_assert(sizeof(struct work) <= sizeof(struct scratch), "struct work has no room");

static __always_inline struct work *work_of(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratch_v2, &zero);
}

static __always_inline __u32 now_seconds(void)
{
	return bpf_ktime_get_coarse_ns() / 1000000000;
}

/* age is for how long, in s, a row was not seen. Another processor may have seen it a second later than now. */
static __always_inline __u32 age(__u32 now, __u32 seen)
{
	__s32 s = now - seen;

	return s > 0 ? s : 0;
}

/* l4_byte reads in place, as l4_ports does. */
static __always_inline __u32 l4_byte(struct __sk_buff *skb, const struct packet *p, __u32 offset)
{
	__u8 byte = 0, *at = l4_at(skb, p, offset + 1);

	if (at)
		return at[offset];
	bpf_skb_load_bytes(skb, p->l4 + offset, &byte, 1);
	return byte;
}

/* l4_flags are those of TCP, and what the first chunk of SCTP (RFC 9260 section 3.2) is in its words. */
static __always_inline __u32 l4_flags(struct __sk_buff *skb, const struct packet *p)
{
	if (p->proto == IPPROTO_TCP)
		return l4_byte(skb, p, TCP_FLAGS);
	if (p->proto != IPPROTO_SCTP)
		return 0;
	switch (l4_byte(skb, p, SCTP_CHUNK)) {
	case SCTP_INIT:
		return TCP_SYN;
	case SCTP_INIT_ACK:
		return TCP_SYN | TCP_ACK;
	case SCTP_ABORT:
	case SCTP_SHUTDOWN_COMPLETE:
		return TCP_RST;
	}
	return TCP_ACK;
}

static __always_inline void l4_read(struct __sk_buff *skb, const struct packet *p, struct l4 *l4)
{
	l4->ports = l4_ports(skb, p);
	l4->flags = l4_flags(skb, p);
	l4->now = now_seconds();
}

/* TAP_OF gives a key its tap; 0 in the programs of the fabric's side. */
#ifdef CLIENT
#define TAP_OF(k, r) ((k)->ifindex = (r)->tap.ifindex, (k)->vlan = (r)->tap.vlan)
#else
#define TAP_OF(k, r) ((k)->ifindex = 0, (k)->vlan = 0)
#endif

static __always_inline void flow_key_of(struct flow_key *k, const struct run *r, const struct packet *p, __u32 ports)
{
	words_copy4(k->src, p->src.addr);
	words_copy4(k->dst, p->dst.addr);
	k->scope = r->vni;
	k->ports = ports;
	k->proto = p->proto;
	TAP_OF(k, r);
}

/* flow_tag is what a row has of its key: never 0. */
static __always_inline __u32 flow_tag(const struct flow_key *k)
{
	const __u32 *s = (const __u32 *)k->src, *d = (const __u32 *)k->dst;

	return ((s[1] ^ s[2] ^ s[3]) * 0x9e3779b1 ^ (d[1] ^ d[2] ^ d[3]) ^ k->ports * 0x85ebca6b ^ k->scope << 8 ^ k->ifindex * 0xc2b2ae35 ^
		(__u32)k->vlan << 16 ^ k->proto) |
	       1;
}

/*
 * flow_read copies where a known flow goes into the run. The kernel gives the row of a
 * flow that was not seen for long to another one, at any moment: the tag, which it
 * writes first and this reads last, tells.
 */
static __always_inline int flow_read(struct run *r, const struct flow *f, __u32 tag)
{
	const volatile __u64 *from = (const volatile __u64 *)f->addr;
	__u64 *to = (__u64 *)r->to.addr;

	to[0] = from[0];
	to[1] = from[1];
	r->port = *(const volatile __be16 *)&f->port;
#ifdef CLIENT
	mac_copy(r->mac, f->mac);
#endif
	return *(const volatile __u32 *)&f->tag == tag;
}

/* slot_words is how many words of a table its slots take: where its members begin. */
static __always_inline __u32 slot_words(__u32 slots)
{
	return (slots + 3) / 4;
}

/* state_after is the state of what a packet is of. */
static __always_inline __u8 state_after(__u8 state, __u32 flags)
{
	return state | (flags & TCP_SYN ? 0 : FLOW_OPEN) | (flags & (TCP_FIN | TCP_RST) ? FLOW_ENDING : 0);
}

/* flow_seen takes note of a packet. A row that is right is not written: other processors read it. */
static __always_inline void flow_seen(struct flow *f, const struct l4 *l4)
{
	__u8 state = state_after(f->state, l4->flags);

	if (f->seen != l4->now)
		f->seen = l4->now;
	if (f->state != state)
		f->state = state;
}

/* connects tells whether a packet begins a connection, of TCP or SCTP. */
static __always_inline int connects(__u32 flags)
{
	return (flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

/* opens tells whether a packet begins a flow. Of UDP none is known to be a later one. */
static __always_inline int opens(__u32 proto, const struct l4 *l4)
{
	return proto == IPPROTO_UDP || connects(l4->flags);
}

/* flow_bit is the place of a client's end in flow_front; the daemon computes the same (flow_front.go). */
static __always_inline __u32 flow_bit(const __u8 *client, __be16 port)
{
	const __u32 *w = (const __u32 *)client;

	return front_slot(port, (__u64)w[1] << 32 | w[0], (__u64)w[3] << 32 | w[2]) % FLOW_FRONT;
}

/* flow_may tells whether a client's end may have rows in flows. */
static __always_inline int flow_may(const struct address *client, __be16 port)
{
	__u32 bit = flow_bit(client->addr, port), at = FLOW_FRONT_STATE, row = bit / 64, second = row + FLOW_FRONT / 64;
	__u64 *state = bpf_map_lookup_elem(&flow_front_v1, &at);
	__u64 *a = bpf_map_lookup_elem(&flow_front_v1, &row), *b = bpf_map_lookup_elem(&flow_front_v1, &second);

	return !state || !a || !b || !(*(volatile __u64 *)state & FLOW_FRONT_WHOLE) || (*a | *b) >> bit % 64 & 1;
}

/* asked_for tells whether a flow is one to a VIP. */
static __always_inline int asked_for(__u32 kind)
{
	return kind == FLOW_TO_BACKEND || kind == FLOW_OVN;
}

/* flow_put writes a row of flows, after its bit of flow_front. k is that of its packets. 0, or what was wrong. */
static __always_inline long flow_put(const struct flow_key *k, const struct flow *f, __u64 flags)
{
	int asks = asked_for(f->kind);
	__u32 bit = flow_bit(asks ? k->src : k->dst, asks ? k->ports : k->ports >> 16), at = FLOW_FRONT_STATE;
	__u64 *state = bpf_map_lookup_elem(&flow_front_v1, &at), mask = 1ULL << bit % 64;
	__u32 row = bit / 64 + (state && *(volatile __u64 *)state & FLOW_FRONT_SECOND ? FLOW_FRONT / 64 : 0);
	__u64 *word = bpf_map_lookup_elem(&flow_front_v1, &row);

	if (word && !(*(volatile __u64 *)word & mask))
		__sync_fetch_and_or(word, mask);
	room_take(MAP_FLOWS, f->seen);
	return bpf_map_update_elem(&flows_v4, k, f, flags);
}

/* flow_note writes a flow of which nothing is changed. k is that of its packets. */
static __noinline void flow_note(const struct flow_key *k, const struct l4 *l4, __u32 kind, __u32 state)
{
	struct work *w = work_of();

	if (!w)
		return;
	w->flow = (struct flow){.tag = flow_tag(k), .seen = l4->now, .kind = kind, .state = state};
	flow_put(k, &w->flow, BPF_ANY);
}

/* goes_on tells whether what was seen last then, and is in a state, goes on with this packet. */
static __always_inline int goes_on(__u32 seen, __u32 state, __u32 proto, const struct l4 *l4)
{
	if (age(l4->now, seen) > flow_idle(proto, state))
		return 0;
	/* A connection that begins anew is another one. */
	return !(l4->flags & TCP_SYN) || l4->flags & TCP_ACK || state == FLOW_OPEN;
}

static __always_inline int flow_lives(const struct flow *f, __u32 proto, const struct l4 *l4)
{
	return goes_on(f->seen, f->state, proto, l4);
}
