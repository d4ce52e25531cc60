/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Sessions: flows to VIPs that are known, each by the client's end. */
#include "flow.h"

/* How long the row of a connection is kept that both ends have ended, in seconds: for what of it is on its way still. */
#define CLOSED_REST 60

static __always_inline void session_key_of(struct session_key *k, const struct run *r, const struct address *client, __be16 port, __u32 proto)
{
	words_copy4(k->client, client->addr);
	k->scope = r->vni;
	k->port = port;
	k->proto = proto;
	TAP_OF(k, r);
	k->pad = 0;
}

/* session_tag is what a row has of its key: never 0. */
static __always_inline __u32 session_tag(const struct session_key *k)
{
	const __u32 *c = (const __u32 *)k->client;

	return ((c[1] ^ c[2] ^ c[3]) * 0x9e3779b1 ^ ((__u32)k->port << 16 | k->proto) * 0x85ebca6b ^ k->scope << 8 ^ k->ifindex * 0xc2b2ae35 ^
		(__u32)k->vlan << 16) |
	       1;
}

/* session_own is a session if it is that of the client, by w->client: the kernel may have given its row to another one. */
static __always_inline struct session *session_own(const struct work *w, struct session *s)
{
	return s && *(const volatile __u32 *)&s->tag == session_tag(&w->client) ? s : 0;
}

/* session_at is where a session has its backend: an address and port. */
static __always_inline int session_at(const struct session *s, const struct address *a, __be16 port)
{
	return (s->port ? s->port : s->vip_port) == port && halves_equal(a, s->backend);
}

/* session_is tells whether a session is a client's with the VIP that a packet of the same client is for. */
static __always_inline int session_is(const struct session *s, const struct packet *p, const struct l4 *l4)
{
	return s->vip_port == (__be16)(l4->ports >> 16) && halves_equal(&p->dst, s->vip);
}

/* session_asks tells whether a client's packet is one of its session. */
static __always_inline int session_asks(const struct session *s, const struct packet *p, const struct l4 *l4)
{
	return session_is(s, p, l4) && goes_on(s->seen, s->state[CLIENT_END], p->proto, l4);
}

/* session_answers tells whether a backend's packet is an answer of the session of the client that it is for. */
static __always_inline int session_answers(const struct session *s, const struct packet *p, const struct l4 *l4)
{
	return session_at(s, &p->src, l4->ports) && goes_on(s->seen, s->state[BACKEND_END], p->proto, l4);
}

/*
 * session_read copies one of a session's ends into the run. The kernel gives the row of a
 * session that was not seen for long to another one, at any moment: the tag, which it
 * writes first and this reads last, tells.
 */
static __always_inline int session_read(struct run *r, const struct session *s, int backend, __u32 tag)
{
	halves_copy(&r->to, backend ? s->backend : s->vip);
	r->port = backend ? s->port : s->vip_port;
#ifdef CLIENT
	if (backend)
		mac_copy(r->mac, s->mac);
#endif
	barrier();
	return *(const volatile __u32 *)&s->tag == tag;
}

/*
 * session_seen takes note of a packet of one end. The other one is known for as long: open
 * when the client is, though the server has not spoken yet, ended by a reset, and not ended by
 * the connection before where the client begins one. A row that is right is not written: other
 * processors read it.
 */
static __always_inline void session_seen(struct session *s, const struct l4 *l4, enum session_end end)
{
	__u8 was = s->state[end], now = state_after(was, l4->flags);
	__u8 other_was = s->state[!end], other = other_was | (l4->flags & TCP_RST ? FLOW_ENDING : 0);

	if (end == CLIENT_END)
		other = (connects(l4->flags) ? other & ~FLOW_ENDING : other) | (now & FLOW_OPEN);
	if (s->seen != l4->now)
		s->seen = l4->now;
	if (was != now)
		s->state[end] = now;
	if (other_was != other)
		s->state[!end] = other;
}

/* session_over tells whether no program takes a packet for one of a session any more, but for late ones of a connection. */
static __always_inline int session_over(const struct session *s, __u32 proto, __u32 now)
{
	__u32 idle = age(now, s->seen), c = s->state[CLIENT_END], b = s->state[BACKEND_END];

	if (c & b & FLOW_ENDING && idle > CLOSED_REST)
		return 1;
	return idle > flow_idle(proto, c) && idle > flow_idle(proto, b);
}

/*
 * session_moves gives the client's packets of a session that is to make room a row of flows:
 * they stay known. p is a packet of the client, and client its port, in the low half. It writes
 * w->key and w->flow.
 */
static __noinline void session_moves(const struct run *r, const struct packet *p, __u32 client, const struct session *s)
{
	struct work *w = work_of();

	if (!w)
		return;
	struct flow *f = &w->flow;

	flow_key_of(&w->key, r, p, (__u32)s->vip_port << 16 | (client & 0xffff));
	words_copy4(w->key.dst, s->vip);
	*f = (struct flow){.tag = flow_tag(&w->key), .seen = s->seen, .kind = FLOW_TO_BACKEND, .state = s->state[CLIENT_END],
			   .port = s->port, .backend = s->row, .vip = s->stats};
	words_copy4(f->addr, s->backend);
	mac_copy(f->mac, s->mac);
	flow_put(&w->key, f, BPF_ANY);
}
