/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * VIPs: whose answer a packet of a backend is, and what is none. One of a flow that is
 * known comes from its VIP; of another one the tables tell, where there may be such.
 */
#include "balance.h"
#include "icmp.h"

/* backend_bit is the place of what a backend sends in backend_front; the daemon computes the same (backend_front.go). */
static __always_inline __u32 backend_bit(__u32 scope, __u32 proto, __be16 port, const struct address *a)
{
	const __u64 *half = (const __u64 *)a->addr;

	return front_slot((__u64)port << 48 | (__u64)proto << 32 | scope, half[0], half[1]) % BACKEND_FRONT;
}

static __always_inline int backend_is(__u32 scope, __u32 proto, __be16 port, const struct address *a)
{
	__u32 bit = backend_bit(scope, proto, port, a), row = bit / 64;
	__u64 *word = bpf_map_lookup_elem(&backend_front_v1, &row);

	return word && *word >> bit % 64 & 1;
}

/* backend_at tells whether a backend of the VRF may be at an address and port. */
static __always_inline int backend_at(const struct run *r, __u32 proto, __be16 port, const struct address *a)
{
	return backend_is(r->vni, proto, port, a) || backend_is(r->vni, proto, 0, a);
}

/*
 * answer_may tells whether a packet may be a backend's answer, or an error about one: all that most packets of a
 * VRF with VIPs are asked.
 */
static __always_inline int answer_may(const struct run *r, const struct packet *p)
{
	if (!r->unknown)
		return 0;
	if (p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6)
		return p->fragment == WHOLE && icmp_is_error(r->skb, p);
	if (!has_ports(p->proto))
		return 0;
	return p->fragment == LATER_FRAGMENT || backend_at(r, p->proto, l4_ports(r->skb, p), &p->src);
}

/* answer_at looks at one VIP of the backend that a packet may be an answer of. */
static long answer_at(__u32 i, void *unused __attribute__((unused)))
{
	struct work *w = work_of();

	if (!w)
		return 1;
	struct answer_search *s = &w->search;
	struct answers *a = bpf_map_lookup_elem(&answers_v2, &s->from);

	if (!a || i >= a->count || i >= ANSWER_VIPS)
		return 1;
	struct answer_vip *v = &a->vips[i];
	struct address vip;
	__be16 port = v->port ? v->port : (__be16)s->ports;
	__u32 ports = (__u32)port << 16 | s->ports >> 16; /* of the packet that this one answers */
	struct rate *rate = rate_of(v->vip.stats);

	if (!s->all && !(rate && rate->unrecorded > s->now))
		return 0;
	halves_copy(&vip, v->addr);
	if (member_of(&v->vip, vip_hash(&s->client, &vip, s->from.proto, ports, v->vip.flags)) != a->backend)
		return 0;
	s->found++;
	s->backend = a->backend;
	s->stats = v->vip.stats;
	s->port = port;
	halves_copy(&s->vip, v->addr);
	return 0;
}

/*
 * answer_of tells whether an answer without a known flow is of one to a VIP: some node
 * has chosen this backend for it, and all choose alike. A connection of the backend's
 * own looks so by chance, one in as many as the VIP has backends. It returns the row of
 * the backend; 0: it is of none, or of several.
 */
static __noinline __u32 answer_of(struct run *r, const struct packet *p, const struct l4 *l4, __u32 *stats)
{
	struct work *w = work_of();

	if (!w)
		return 0;
	struct answer_search *s = &w->search;

	s->from.scope = r->vni;
	s->from.port = l4->ports;
	s->from.proto = p->proto;
	s->from.pad = 0;
	words_copy4(s->from.addr, p->src.addr);
	words_copy4(s->client.addr, p->dst.addr);
	s->ports = l4->ports;
	s->now = l4->now;
	s->all = r->unknown > l4->now || rows_evicted(p->proto, l4->now);
	s->found = 0;
	struct answers *a = bpf_map_lookup_elem(&answers_v2, &s->from);

	if (!a) {
		s->from.port = 0;
		a = bpf_map_lookup_elem(&answers_v2, &s->from);
	}
	if (!a || a->count > ANSWER_VIPS)
		return 0;
	bpf_loop(ANSWER_VIPS, answer_at, 0, 0);
	if (s->found != 1)
		return 0;
	words_copy4(r->to.addr, s->vip.addr);
	r->port = s->port;
	*stats = s->stats;
	return s->backend;
}

/* answer_begin makes an answer's flow a known one. */
static __noinline void answer_begin(struct run *r, const struct flow_key *k, __u32 now, __u32 backend, __u32 stats)
{
	struct work *w = work_of();

	if (!w)
		return;
	w->flow = (struct flow){.tag = flow_tag(k), .seen = now, .kind = FLOW_TO_CLIENT, .state = FLOW_OPEN, .port = r->port, .backend = backend, .vip = stats};
	words_copy4(w->flow.addr, r->to.addr);
	flow_put(k, &w->flow, BPF_ANY);
}

/* held tells why what cannot be told from an answer is held back: since unknown was set; flows of UDP end sooner. 0: it is not. */
static __always_inline __u32 held(const struct run *r, __u32 proto, __u32 now)
{
	if (r->unknown > now + TCP_IDLE - flow_idle(proto, FLOW_OPEN))
		return DROP_ANSWER_UNKNOWN;
	return rows_evicted(proto, now) ? DROP_SESSION_EVICTED : DROP_NONE;
}

/* answer_translated counts a packet whose VIP the tables have told, since its session may have been evicted. */
static __always_inline void answer_translated(void)
{
	struct evictions *e = evictions_of();

	if (e)
		__sync_fetch_and_add(&e->translated, 1);
}

/*
 * answer_unknown is answer_find of what may be a backend's and is of no known flow.
 * After a VIP has come to this node, and when sessions are evicted, there are flows that it
 * does not know, and their answers must not get to clients as they are: those would reset
 * their connections. What cannot be told from such an answer is held back until the other
 * side was seen. Of flows that are not recorded for their number nothing is held back.
 */
static __always_inline __u32 answer_unknown(struct run *r, struct packet *p, struct flow_key *k, struct l4 *l4)
{
	__u32 hold = held(r, p->proto, l4->now);

	if (!uncertain(r, l4->now))
		return DROP_NONE;
	__u32 stats = 0, backend = answer_of(r, p, l4, &stats);

	if (connects(l4->flags)) {
		/* What a backend begins goes on as it is. */
		if ((backend || hold) && !r->trace && flow_token(r, stats, 1))
			flow_note(k, l4, FLOW_DIRECT, FLOW_OPEN);
		return DROP_NONE;
	}
	if (!backend)
		return hold;
	r->side = NAT_SOURCE;
	if (r->trace)
		return DROP_NONE;
	if (hold == DROP_SESSION_EVICTED)
		answer_translated();
	if (hold && flow_token(r, stats, 0))
		answer_begin(r, k, l4->now, backend, stats);
	stats_count(r, p->size, stats, backend, 0);
	return DROP_NONE;
}

/*
 * request_follow has a flow's own row be known for as long as that of its answers, and end
 * with it when the backend has reset it: see answers_follow().
 */
static __noinline void request_follow(const struct run *r, const struct packet *p, const struct l4 *l4)
{
	struct work *w = work_of();

	if (!w)
		return;
	flow_key_of(&w->key, r, p, l4->ports);
	words_copy4(w->key.src, p->dst.addr);
	words_copy4(w->key.dst, r->to.addr);
	w->key.ports = (__u32)r->port << 16 | l4->ports >> 16;
	struct flow *f = bpf_map_lookup_elem(&flows_v4, &w->key);

	if (!f || f->kind != FLOW_TO_BACKEND || !halves_equal((const struct address *)f->addr, &p->src))
		return;
	f->seen = l4->now;
	if (l4->flags & TCP_RST)
		f->state |= FLOW_ENDING;
}

/* session_of finds the session that a backend's packet is an answer of, and has its VIP in the run; 0: there is none. */
static __always_inline struct session *session_of(struct run *r, const struct packet *p, const struct l4 *l4, struct session_key *k)
{
	session_key_of(k, r, &p->dst, l4->ports >> 16, p->proto);
	struct session *s = bpf_map_lookup_elem(&sessions_v1, k);

	return s && session_answers(s, p, l4) && session_read(r, s, 0, session_tag(k)) ? s : 0;
}

/* answer_said is answer_known of what the session of its client says. */
static __noinline int answer_said(struct run *r, const struct packet *p, const struct l4 *l4)
{
	struct work *w = work_of();
	struct session *s = w ? session_of(r, p, l4, &w->client) : 0;

	if (!s)
		return 0;
	STEP(r, STEP_FLOW, FLOW_TO_CLIENT, 0);
	r->side = NAT_SOURCE;
	if (r->trace)
		return 1;
	session_seen(s, l4, BACKEND_END);
	stats_count(r, p->size, s->stats, s->row, 0);
	return 1;
}

/* answer_known is answer_find of what may be a backend's. */
static __always_inline __u32 answer_known(struct run *r, struct packet *p)
{
	struct flow_key k;
	struct l4 l4;

	l4_read(r->skb, p, &l4);
	if (answer_said(r, p, &l4))
		return DROP_NONE;
	flow_key_of(&k, r, p, l4.ports);
	struct flow *f = flow_may(&p->dst, l4.ports >> 16) ? bpf_map_lookup_elem(&flows_v4, &k) : 0;

	__u32 kind = f ? *(const volatile __u8 *)&f->kind : 0; /* before the tag: see flow_read() */

	if (!f || asked_for(kind) || !flow_lives(f, p->proto, &l4) || !flow_read(r, f, flow_tag(&k))) {
		return answer_unknown(r, p, &k, &l4);
	}
	STEP(r, STEP_FLOW, kind, 0);
	if (kind == FLOW_TO_CLIENT)
		r->side = NAT_SOURCE;
	if (!r->trace && r->side && (f->seen != l4.now || l4.flags & TCP_RST))
		request_follow(r, p, &l4);
	if (!r->trace)
		flow_seen(f, &l4);
	if (!r->trace && r->side)
		stats_count(r, p->size, f->vip, f->backend, 0);
	return DROP_NONE;
}

/*
 * answer_find has what answer_may() tells of come from the VIP. What belongs to no flow is the
 * backend's own. 0 or a drop reason.
 */
static __always_inline __u32 answer_find(struct run *r, struct packet *p)
{
	if (p->fragment == LATER_FRAGMENT) {
		fragment_follow(r, p);
		return DROP_NONE;
	}
	__u32 reason = answer_known(r, p);

	if (reason)
		return reason;
	if (r->side)
		STEP(r, STEP_ANSWER, bpf_ntohs(r->port), r->to.addr);
	/* Without a row the rest of the packet would go on as the backend's own. */
	return r->side && p->fragment == FIRST_FRAGMENT ? fragment_lead(r, p) : DROP_NONE;
}

/*
 * requested tells whether the client of answers, which are of no session, has asked the VIP that
 * they are taken for.
 * l4 and f are of the answers, p of a packet to their backend.
 */
static __noinline int requested(const struct run *r, const struct packet *p, const struct l4 *l4, const struct flow *f)
{
	struct work *w = work_of();

	if (!w)
		return 1;
	flow_key_of(&w->own, r, p, (__u32)f->port << 16 | l4->ports >> 16);
	words_copy4(w->own.dst, f->addr);
	struct flow *own = bpf_map_lookup_elem(&flows_v4, &w->own);

	return own && own->kind == FLOW_TO_BACKEND;
}

/* direct_known is direct_note of what may need a row. */
static __noinline void direct_known(struct run *r, const struct packet *p)
{
	struct work *w = work_of();

	if (!w)
		return;
	struct packet *answer = &w->quoted;
	struct l4 *l4 = &w->l4;

	l4_read(r->skb, p, l4);
	if (!backend_at(r, p->proto, l4->ports >> 16, &p->dst))
		return;
	words_copy4(answer->src.addr, p->dst.addr);
	words_copy4(answer->dst.addr, p->src.addr);
	answer->proto = p->proto;
	l4->ports = l4->ports << 16 | l4->ports >> 16;
	flow_key_of(&w->key, r, answer, l4->ports);
	struct flow *f = bpf_map_lookup_elem(&flows_v4, &w->key);
	__u32 stats = 0;
	int begins = connects(l4->flags);

	session_key_of(&w->client, r, &p->src, l4->ports >> 16, p->proto);
	struct session *s = bpf_map_lookup_elem(&sessions_v1, &w->client);

	if (s && session_at(s, &p->dst, l4->ports) && age(l4->now, s->seen) <= flow_idle(p->proto, s->state[BACKEND_END])) {
		/* It would take the answers of this connection, and its backend has ended it; the client may go on. */
		if (begins && s->state[BACKEND_END] & FLOW_ENDING) {
			session_moves(r, p, l4->ports >> 16, s);
			bpf_map_delete_elem(&sessions_v1, &w->client);
			flow_key_of(&w->key, r, answer, l4->ports);
			flow_note(&w->key, l4, FLOW_DIRECT, FLOW_OPEN);
		}
		return;
	}
	if (f && age(l4->now, f->seen) <= flow_idle(p->proto, f->state) && !(begins && f->state & FLOW_ENDING)) {
		/* Answers that only looked like those of a VIP, by their hash, are of this connection. */
		if (f->kind == FLOW_TO_CLIENT && !(l4->flags & TCP_RST) && !requested(r, p, l4, f))
			flow_note(&w->key, l4, FLOW_DIRECT, FLOW_OPEN);
		else if (f->kind == FLOW_DIRECT)
			flow_seen(f, l4);
		return;
	}
	/* The row of a connection to a VIP that has ended would take the answers of this one. */
	if (!(f && begins) &&
	    (!(rows_near(l4->now) || (uncertain(r, l4->now) && (answer_of(r, answer, l4, &stats) || held(r, p->proto, l4->now)))) ||
	     !flow_token(r, stats, 0)))
		return;
	flow_note(&w->key, l4, FLOW_DIRECT, FLOW_OPEN);
}

/* direct_may tells whether what answers a backend's own client may be taken for something else, or will be soon. */
static __always_inline int direct_may(const struct run *r, __u32 now)
{
	return uncertain(r, now) || rows_near(now);
}

/*
 * direct_note has the answers to a packet for a backend itself pass as they are, where
 * they would be taken for those of a flow to a VIP: of one that has ended, or of one that
 * may be without a row.
 */
static __always_inline void direct_note(struct run *r, struct packet *p)
{
	if (!has_ports(p->proto) || p->fragment == LATER_FRAGMENT || r->trace)
		return;
	/* Most VRFs have no flows that are not known, and need not ask for the time; in others that has mostly ended. */
	if ((direct_may(r, 1) && direct_may(r, now_seconds())) || connects(l4_flags(r->skb, p)))
		direct_known(r, p);
}
