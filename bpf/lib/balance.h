/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * VIPs: which backend a packet goes to. A flow that is known goes on as it went; another
 * one goes where its hash leads in the table of the VIP, which is the same on all nodes.
 */
#include "affinity.h"
#include "client.h"
#include "fragment.h"

/* vip_find is the VIP of a packet: by its port, or that of all ports. */
static __noinline struct vip *vip_find(const struct run *r, const struct packet *p, __u32 ports)
{
	struct vip_key k = {.scope = r->vni, .port = ports >> 16, .proto = p->proto};

	words_copy4(k.addr, p->dst.addr);
	struct vip *v = bpf_map_lookup_elem(&vips_v2, &k);

	if (v)
		return v;
	k.port = 0;
	return bpf_map_lookup_elem(&vips_v2, &k);
}

/* vip_hash is the place of a flow from a client to a VIP in tables; the daemon computes the same (flows.go). */
static __always_inline __u32 vip_hash(const struct address *client, const struct address *vip, __u32 proto, __u32 ports,
				      __u32 flags)
{
	return hash_ends(client, vip, flags & VIP_BY_ADDRESS ? 0 : (__u64)proto << 32 | ports);
}

/* hash_of is vip_hash of a packet, which is told. */
static __always_inline __u32 hash_of(struct run *r, const struct packet *p, const struct l4 *l4, const struct vip *v)
{
	__u32 hash = vip_hash(&p->src, &p->dst, p->proto, l4->ports, v->flags), slots = v->slots;

	if (slots)
		STEP(r, STEP_MEMBER, hash % slots, 0);
	return hash;
}

/* member_of is the row of backends that a hash leads to; 0: there is none. */
static __noinline __u32 member_of(const struct vip *v, __u32 hash)
{
	__u32 slots = v->slots, table = v->table, page = table / TABLE_PAGE;
	void *words = bpf_map_lookup_elem(&maglev_v2, &page);

	if (!words || !slots)
		return 0;
	__u32 slot = hash % slots;

	table %= TABLE_PAGE;
	__u32 word = table + slot / 4;
	__u64 *four = bpf_map_lookup_elem(words, &word);

	if (!four)
		return 0;
	__u32 number = *four >> slot % 4 * 16 & 0xffff;

	if (number == NO_MEMBER)
		return 0;
	word = table + slot_words(slots) + number;
	__u64 *member = bpf_map_lookup_elem(words, &word);

	return member ? *member : 0;
}

/*
 * answers_taken tells whether the answers to a packet would be those of another flow that goes
 * on: a client has one port for two VIPs that share a backend, or for it itself and for a VIP.
 * k is their key.
 */
static __noinline int answers_taken(const struct flow_key *k, const struct packet *p, const struct l4 *l4)
{
	struct flow *f = flow_may(&p->src, l4->ports) ? bpf_map_lookup_elem(&flows_v4, k) : 0;

	if (!f || f->state & FLOW_ENDING || age(l4->now, f->seen) > flow_idle(k->proto, f->state))
		return 0;
	if (f->kind == FLOW_TO_CLIENT)
		return f->port != (__be16)(l4->ports >> 16) || !halves_equal(&p->dst, f->addr);
	return f->kind == FLOW_DIRECT;
}

/* answers_key_of is the key of a packet's answers: they come from the backend, to where the packet is from. */
static __always_inline void answers_key_of(struct flow_key *k, const struct run *r, const struct packet *p, __u32 ports)
{
	flow_key_of(k, r, p, ports);
	words_copy4(k->src, r->to.addr);
	words_copy4(k->dst, p->src.addr);
	k->ports = k->ports << 16 | (r->port ? r->port : k->ports >> 16);
}

/*
 * answers_follow has the answers' row of a flow be known for as long as the flow's own: open
 * as it is, though the server has not spoken yet, and ended when the client has reset it. A
 * row that has made room for another one is written anew: what the backend sends would get
 * to the client as it is.
 */
static __noinline void answers_follow(const struct run *r, const struct packet *p, const struct l4 *l4, const struct flow *of)
{
	struct work *w = work_of();

	if (!w)
		return;
	answers_key_of(&w->key, r, p, l4->ports);
	struct flow *f = bpf_map_lookup_elem(&flows_v4, &w->key);
	__be16 port = l4->ports >> 16;
	__u8 open = l4->flags & TCP_SYN ? of->state & FLOW_OPEN : FLOW_OPEN, ended = connects(l4->flags) ? FLOW_ENDING : 0;

	if (!f) {
		if (l4->flags & TCP_RST)
			return;
		w->flow = (struct flow){.tag = flow_tag(&w->key), .seen = l4->now, .kind = FLOW_TO_CLIENT, .state = open,
					.port = port, .backend = of->backend, .vip = of->vip};
		words_copy4(w->flow.addr, p->dst.addr);
		flow_put(&w->key, &w->flow, BPF_NOEXIST);
	} else if (f->kind == FLOW_TO_CLIENT && f->port == port && halves_equal((const struct address *)f->addr, &p->dst)) {
		f->seen = l4->now;
		f->state = (f->state & ~ended) | open | (l4->flags & TCP_RST ? FLOW_ENDING : 0); /* a connection that begins has not ended */
	}
}

/*
 * pair_begin writes both directions of a flow, of which w->flow is the client's, and w->own its
 * key. That of the answers first, by w->key: a packet that the other one lets through may
 * have one at once. alone: see flow_begin().
 */
static __noinline int pair_begin(const struct run *r, const struct packet *p, const struct l4 *l4, int alone)
{
	struct work *w = work_of();

	if (!w)
		return 1;
	struct flow *f = &w->flow;

	f->tag = flow_tag(&w->key);
	f->kind = FLOW_TO_CLIENT;
	f->port = l4->ports >> 16;
	words_copy4(f->addr, p->dst.addr);
	if (flow_put(&w->key, f, BPF_NOEXIST)) {
		if (alone && answers_taken(&w->key, p, l4))
			return 0;
		flow_put(&w->key, f, BPF_ANY);
	}

	f->tag = flow_tag(&w->own);
	f->kind = FLOW_TO_BACKEND;
	f->port = r->port;
	words_copy4(f->addr, r->to.addr);
	flow_put(&w->own, f, BPF_ANY);
	return 1;
}

/* row_end forgets the row of a flow, by w->own. */
static __always_inline void row_end(struct work *w, const struct packet *p, const struct l4 *l4)
{
	struct flow *f = flow_may(&p->src, l4->ports) ? bpf_map_lookup_elem(&flows_v4, &w->own) : 0;

	if (f && asked_for(f->kind))
		bpf_map_delete_elem(&flows_v4, &w->own);
}

/* rows_end forgets the rows of a flow and of its answers, by w->own and w->key, that its session has taken the place of. */
static __always_inline void rows_end(struct work *w, const struct packet *p, const struct l4 *l4)
{
	row_end(w, p, l4);
	struct flow *f = flow_may(&p->src, l4->ports) ? bpf_map_lookup_elem(&flows_v4, &w->key) : 0;

	if (f && f->kind == FLOW_TO_CLIENT && f->port == (__be16)(l4->ports >> 16) && halves_equal(&p->dst, f->addr))
		bpf_map_delete_elem(&flows_v4, &w->key);
}

/*
 * session_begin makes w->flow the session of its client, in the place of was: of processors
 * that do so at once with several VIPs, one. 0: another one was quicker.
 */
static __always_inline int session_begin(struct work *w, const struct packet *p, const struct l4 *l4, struct session *was)
{
	struct session *s = &w->session;
	const struct flow *f = &w->flow;

	*s = (struct session){.tag = session_tag(&w->client), .seen = f->seen, .vip_port = l4->ports >> 16, .port = f->port,
			      .state = {f->state, f->state}, .row = f->backend, .stats = f->vip};
	words_copy4(s->vip, p->dst.addr);
	words_copy4(s->backend, f->addr);
	mac_copy(s->mac, f->mac);
	/* Without its tag it is nobody's session. */
	if (was && __sync_val_compare_and_swap(&was->tag, s->tag, 0) != s->tag)
		return 0;
	return !bpf_map_update_elem(&sessions_v1, &w->client, s, was ? BPF_ANY : BPF_NOEXIST);
}

/*
 * How often a session is looked up that another processor is about to write. That takes it a few lookups, and
 * more where it has to make room or is interrupted: in a map that had been full of rows before, 1024 lookups were
 * too few twice in a thousand times. All of them take less than half a millisecond, of the one packet that waits.
 */
#define SETTLES 16384

static long session_settles(__u32 i __attribute__((unused)), void *unused __attribute__((unused)))
{
	struct work *w = work_of();

	return !w || session_own(w, bpf_map_lookup_elem(&sessions_v1, &w->client));
}

/* session_settled is the client's session, by w->client, that another processor was quicker to begin; 0: there is none yet. */
static __always_inline struct session *session_settled(const struct work *w)
{
	bpf_loop(SETTLES, session_settles, 0, 0);
	return session_own(w, bpf_map_lookup_elem(&sessions_v1, &w->client));
}

/* flow_first is flow_begin but for rows in flows, which it leaves to pair_begin(): BESIDE. */
#define BESIDE 2

static __noinline int flow_first(struct run *r, const struct packet *p, const struct l4 *l4, struct session *s, int alone)
{
	struct work *w = work_of();

	if (!w)
		return 1;
	struct flow *f = &w->flow;
	int other = s && !session_is(s, p, l4) && !session_over(s, p->proto, l4->now);
	__u32 backend = f->backend, stats = f->vip;
	__be16 port = r->port ? r->port : (__be16)(l4->ports >> 16);

	int moves = other && session_at(s, &r->to, port); /* answers would be taken for its own */

	if (moves && alone && !(s->state[CLIENT_END] & s->state[BACKEND_END] & FLOW_ENDING))
		return 0;
	other &= !moves;
	answers_key_of(&w->key, r, p, l4->ports);
	if (alone && !other && answers_taken(&w->key, p, l4))
		return 0;
	if (moves) {
		session_moves(r, p, l4->ports, s);
		answers_key_of(&w->key, r, p, l4->ports);
	}
	*f = (struct flow){.seen = l4->now, .backend = backend, .vip = stats, .kind = FLOW_TO_BACKEND, .port = r->port};
	f->state = l4->flags & TCP_SYN || p->proto == IPPROTO_UDP ? 0 : FLOW_OPEN;
	words_copy4(f->addr, r->to.addr);
#ifdef CLIENT
	mac_copy(f->mac, r->mac);
#endif
	if (!other && session_begin(w, p, l4, s)) {
		rows_end(w, p, l4);
		return 1;
	}
	if (!other) {
		s = session_settled(w);
		if (s && session_is(s, p, l4))
			return 1; /* another packet of the flow was quicker */
		if (alone && s && session_at(s, &r->to, port))
			return 0;
	}
	return BESIDE;
}

/*
 * flow_begin makes a flow a known one: the session of its client, of which s is what there
 * is; beside another session of the client's port it has rows of its own. With alone it is
 * false, and the flow is not known, where the backend could not tell it from another one of
 * the client. w->flow has the rows of backend and VIP, w->own the flow's key, w->client the
 * session's.
 */
static __always_inline int flow_begin(struct run *r, const struct packet *p, const struct l4 *l4, struct session *s, int alone)
{
	int begun = flow_first(r, p, l4, s, alone);

	return begun == BESIDE ? pair_begin(r, p, l4, alone) : begun;
}

/* flow_forget forgets a flow which is decided anew: its session, by w->client, or its row, by w->own. */
static __noinline void flow_forget(const struct packet *p, const struct l4 *l4)
{
	struct work *w = work_of();

	if (!w)
		return;
	struct session *s = bpf_map_lookup_elem(&sessions_v1, &w->client);

	if (s && session_is(s, p, l4))
		bpf_map_delete_elem(&sessions_v1, &w->client);
	row_end(w, p, l4);
}

/*
 * ovn_balances tells whether a flow that is not known is OVN's. A packet that begins none
 * goes as those did before the last change; unless flows without a row have begun since, as
 * in a flood, or rows were evicted: there are more of these. What came from another node is in
 * no state of OVN's here.
 */
static __always_inline int ovn_balances(const struct run *r, const struct vip *v, const struct packet *p, const struct l4 *l4)
{
	int is = !!(v->flags & VIP_OVN), was = is ^ (l4->now < v->until);

#ifdef CLIENT
	int client = !!(r->client->flags & CLIENT_OVN);

	is |= client;
	was |= client ^ (l4->now < r->client->until);
#endif
	if (is == was || opens(p->proto, l4) || rate_without(v, is, l4->now) || rows_evicted(p->proto, l4->now))
		return is;
	return was && r->unknown <= l4->now;
}

/* flow_left leaves a flow to OVN; with note, from now on: w->own is its key. There is nothing to be dropped. */
static __noinline __u32 flow_left(struct run *r, const struct vip *v, const struct packet *p, const struct l4 *l4, int note)
{
	struct work *w = work_of();

	STEP(r, STEP_LEFT, 0, 0);
	if (!w || !note || r->trace)
		return DROP_NONE;
	flow_forget(p, l4);
	if (flow_token(r, v->stats, opens(p->proto, l4))) {
		flow_note(&w->own, l4, FLOW_OVN, l4->flags & TCP_SYN ? 0 : FLOW_OPEN);
		return DROP_NONE;
	}
	struct rate *rate = rate_of(v->stats);

	if (rate && rate->left != l4->now + UNRECORDED_IDLE)
		rate->left = l4->now + UNRECORDED_IDLE;
	return DROP_NONE;
}

/* backend_take has the packet go to a backend, and tells whether it can. */
static __always_inline int backend_take(struct run *r, const struct packet *p, __u32 row)
{
	struct backend *b = row ? bpf_map_lookup_elem(&backends_v1, &row) : 0;

	if (!b || b->scope != r->vni || halves_equal(&p->src, b->addr))
		return 0;
	halves_copy(&r->to, b->addr);
	r->port = b->port;
#ifdef CLIENT
	return client_neighbor(r);
#else
	return 1;
#endif
}

/* member_after is the row of a table's backend by its number, if that gets new flows; 0: it does not. */
static __noinline __u32 member_after(const struct vip *v, __u32 number)
{
	__u32 members = v->members, page = v->table / TABLE_PAGE;
	void *words = bpf_map_lookup_elem(&maglev_v2, &page);

	if (!words || !members)
		return 0;
	__u32 word = v->table % TABLE_PAGE + slot_words(v->slots) + number % members;
	struct maglev_member *m = bpf_map_lookup_elem(words, &word);

	return m && m->weight ? m->backend : 0;
}

/* How many backends are tried for one that can tell a flow from others of the client. */
#define ELSEWHERE 8

/*
 * flow_elsewhere begins a flow that its own backend could not tell from another one, at one
 * of the others, or, where none can, at its own all the same. 0 or a drop reason.
 */
static __noinline __u32 flow_elsewhere(struct run *r, const struct packet *p, const struct l4 *l4)
{
	struct work *w = work_of();
	struct vip *v = vip_find(r, p, l4->ports);

	if (!w || !v)
		return DROP_NO_BACKEND;
	__u32 hash = vip_hash(&p->src, &p->dst, p->proto, l4->ports, v->flags);
	struct session *s = session_own(w, bpf_map_lookup_elem(&sessions_v1, &w->client));

	for (__u32 i = 0; i <= ELSEWHERE; i++) {
		int own = i == ELSEWHERE;
		__u32 row = own ? member_of(v, hash) : member_after(v, hash + i);

		w->flow.backend = row;
		w->flow.vip = v->stats;
		if (!backend_take(r, p, row) || !flow_begin(r, p, l4, s, !own))
			continue;
		stats_count(r, p->size, v->stats, row, 1);
		return DROP_NONE;
	}
	return DROP_NO_BACKEND;
}

/*
 * answers_tell tells whether the answers of a flow without a row could be told from what its
 * backend sends of its own: see answer_of().
 */
static __noinline int answers_tell(const struct run *r, const struct packet *p, const struct l4 *l4, const struct vip *v, __u32 backend)
{
	struct work *w = work_of();

	if (!w)
		return 0;
	struct vip_key *k = &w->search.from;

	k->scope = r->vni;
	k->port = r->port ? r->port : (__be16)(l4->ports >> 16);
	k->proto = p->proto;
	k->pad = 0;
	words_copy4(k->addr, r->to.addr);
	struct answers *a = bpf_map_lookup_elem(&answers_v2, k);

	if (!a) {
		k->port = 0;
		a = bpf_map_lookup_elem(&answers_v2, k);
	}
	return a && a->count <= ANSWER_VIPS && member_of(v, vip_hash(&p->src, &p->dst, p->proto, l4->ports, v->flags)) == backend;
}

#define CHOOSE_ELSEWHERE (~0U) /* no drop reason: see flow_new() */

/* flow_choose is flow_new but for flows that are to begin elsewhere. */
static __noinline __u32 flow_choose(struct run *r, const struct packet *p, const struct l4 *l4, struct session *s, int note)
{
	struct vip *v = vip_find(r, p, l4->ports);

	if (!v) {
		if (note && !r->trace && connects(l4->flags))
			flow_forget(p, l4); /* the connection before it was of a VIP that has gone */
		return DROP_NONE;
	}
	STEP(r, STEP_VIP, v->table, p->dst.addr);
	if (ovn_balances(r, v, p, l4))
		return flow_left(r, v, p, l4, note);
	__u32 row = v->affinity ? kept_backend(r, p, v, l4) : 0;

	if (row)
		STEP(r, STEP_KEPT, row, 0);
	else
		row = member_of(v, hash_of(r, p, l4, v));
	struct backend *b = row ? bpf_map_lookup_elem(&backends_v1, &row) : 0;

	if (!b || b->scope != r->vni) {
		if (v->flags & VIP_OVN)
			return DROP_NONE;
		if (!r->trace)
			stats_drop(v);
		return DROP_NO_BACKEND;
	}
	halves_copy(&r->to, b->addr);
#ifdef CLIENT
	/* What comes back to its sender has to come from another address: OVN's to do. */
	if (halves_equal(&r->to, p->src.addr))
		return flow_left(r, v, p, l4, note);
	if (!client_neighbor(r))
		return DROP_BACKEND_AWAY;
#endif
	r->port = b->port;
	r->side = NAT_DESTINATION;
	struct work *w = work_of();

	if (!w || !note || r->trace)
		return DROP_NONE;
	int recorded = flow_allowed(r, v, opens(p->proto, l4), l4->now);

	if (!recorded && !answers_tell(r, p, l4, v, row))
		return DROP_VIP_FLOOD;
	w->flow.backend = row;
	w->flow.vip = v->stats;
	/* Here, and not where the row is written, or for flow_elsewhere() again: these have no stack left. */
	if (recorded && !s)
		room_take(MAP_SESSIONS, l4->now);
	if (recorded && !flow_begin(r, p, l4, s, opens(p->proto, l4)))
		return CHOOSE_ELSEWHERE;
	if (recorded && v->affinity)
		keep_backend(r, p, l4);
	stats_count(r, p->size, v->stats, row, recorded);
	return DROP_NONE;
}

/*
 * flow_new decides where a flow goes that is not known. With note it is known from now on:
 * w->own is its key, w->client that of its session, and s what is there of that. 0 or a drop reason.
 */
static __always_inline __u32 flow_new(struct run *r, const struct packet *p, const struct l4 *l4, struct session *s, int note)
{
	__u32 reason = flow_choose(r, p, l4, s, note);

	return reason == CHOOSE_ELSEWHERE ? flow_elsewhere(r, p, l4) : reason;
}

/*
 * begins_elsewhere tells whether a connection that begins anew, where another one from the
 * same port went on as far as is known, is not to go where that one went: the VIP has gone, or the backend gets no
 * new flows, as after it has died with its connections. What comes beside packets of the
 * other one is a late copy of how that began. The run has the backend's address and port of
 * that one, backend is its row.
 */
static __noinline int begins_elsewhere(const struct run *r, const struct packet *p, const struct l4 *l4, __u32 seen, __u32 backend)
{
	if (!age(l4->now, seen))
		return 0;
	struct vip *v = vip_find(r, p, l4->ports);

	return !v || (!(v->flags & VIP_OVN) && !(takes_flows(v, backend) && is_at(r, backend)));
}

/* flow_goes has a packet of a known flow go on as those before it did, and tells whether that is to be noted: not of a trace. */
static __always_inline int flow_goes(struct run *r, __u32 kind)
{
	STEP(r, STEP_FLOW, kind, 0);
	if (kind == FLOW_TO_BACKEND)
		r->side = NAT_DESTINATION;
#ifdef CLIENT
	client_neighbor(r); /* it may be another one by now, or not be known any more */
#endif
	return !r->trace;
}

/* flow_unsaid is flow_find of what its client's session, if there is one, does not say. */
static __always_inline __u32 flow_unsaid(struct run *r, struct packet *p, struct session *s)
{
	struct work *w = work_of();

	if (!w)
		return DROP_NONE;
	struct flow_key *k = &w->own;
	struct l4 *l4 = &w->own_l4;

	flow_key_of(k, r, p, l4->ports);
	struct flow *f = flow_may(&p->src, l4->ports) ? bpf_map_lookup_elem(&flows_v4, k) : 0;

	__u32 kind = f ? *(const volatile __u8 *)&f->kind : 0;
	int known = f && asked_for(kind) && flow_lives(f, p->proto, l4) && flow_read(r, f, flow_tag(k));

	/* What is over is forgotten: the flow may be the session from now on, and the row would come back after that. */
	if (!known && f && asked_for(kind) && !r->trace)
		bpf_map_delete_elem(&flows_v4, k);
	if (!known || (connects(l4->flags) && kind == FLOW_TO_BACKEND && begins_elsewhere(r, p, l4, f->seen, f->backend)))
		return flow_new(r, p, l4, s, 1);
	if (!flow_goes(r, kind))
		return DROP_NONE;
	/* Once a second is enough, and when something changes. */
	if (kind == FLOW_TO_BACKEND && (f->seen != l4->now || l4->flags & (TCP_SYN | TCP_RST) || !(f->state & FLOW_OPEN)))
		answers_follow(r, p, l4, f);
	flow_seen(f, l4);
	if (kind != FLOW_TO_BACKEND)
		return DROP_NONE;
	stats_count(r, p->size, f->vip, f->backend, 0);
	return DROP_NONE;
}

/* flow_find is backend_find of a packet with ports. */
static __always_inline __u32 flow_find(struct run *r, struct packet *p)
{
	struct work *w = work_of();

	if (!w)
		return DROP_NONE;
	struct l4 *l4 = &w->own_l4;

	l4_read(r->skb, p, l4);
	session_key_of(&w->client, r, &p->src, l4->ports, p->proto);
	struct session *s = bpf_map_lookup_elem(&sessions_v1, &w->client);

	if (!s || !session_asks(s, p, l4) || !session_read(r, s, 1, session_tag(&w->client)) ||
	    (connects(l4->flags) && begins_elsewhere(r, p, l4, s->seen, s->row)))
		return flow_unsaid(r, p, session_own(w, s));
	if (!flow_goes(r, FLOW_TO_BACKEND))
		return DROP_NONE;
	session_seen(s, l4, CLIENT_END);
	stats_count(r, p->size, s->stats, s->row, 0);
	return DROP_NONE;
}

/*
 * backend_find decides which backend a packet to an address with VIPs goes to: r->side
 * tells whether it goes to any. 0 or a drop reason.
 */
static __always_inline __u32 backend_find(struct run *r, struct packet *p)
{
	if (!has_ports(p->proto))
		return DROP_NONE;
	__u32 reason = p->fragment == LATER_FRAGMENT ? fragment_follow(r, p) : flow_find(r, p);

	if (!reason && p->fragment == FIRST_FRAGMENT)
		reason = fragment_lead(r, p);
	if (!reason && r->side)
		STEP(r, STEP_BACKEND, bpf_ntohs(r->port), r->to.addr);
	return reason;
}
