/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * VIPs: which backend a packet goes to, and whose answer one is. A flow that is known
 * goes on as it went; another one goes where its hash leads in the table of the VIP,
 * which is the same on all nodes.
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
 * answers_taken tells whether the answers of next would be those of another flow that goes
 * on: a client has one port for two VIPs that share a backend, or for it itself and for a VIP.
 */
static __noinline int answers_taken(const struct flow_key *k, const struct flow *next, const struct l4 *l4)
{
	struct flow *f = bpf_map_lookup_elem(&flows_v3, k);

	if (!f || f->state & FLOW_ENDING || age(l4->now, f->seen) > flow_idle(k->proto, f->state))
		return 0;
	if (f->kind == FLOW_TO_CLIENT)
		return f->port != next->port || !halves_equal((const struct address *)f->addr, next->addr);
	return f->kind == FLOW_DIRECT;
}

/* answers_key makes a packet's key that of its answers: they come from the backend, to where the packet is from. */
static __always_inline void answers_key(struct flow_key *k, const struct run *r, const struct packet *p)
{
	words_copy4(k->src, r->to.addr);
	words_copy4(k->dst, p->src.addr);
	k->ports = k->ports << 16 | (r->port ? r->port : k->ports >> 16);
}

/*
 * answers_follow has the answers' row of a flow be known for as long as the flow's own, and
 * end with it when the client has reset it. A row that has made room for another one is
 * written anew: what the backend sends would get to the client as it is.
 */
static __noinline void answers_follow(const struct run *r, const struct packet *p, const struct l4 *l4, const struct flow *of)
{
	struct work *w = work_of();

	if (!w)
		return;
	flow_key_of(&w->key, r, p, l4->ports);
	answers_key(&w->key, r, p);
	struct flow *f = bpf_map_lookup_elem(&flows_v3, &w->key);
	__be16 port = l4->ports >> 16;

	if (!f) {
		if (l4->flags & TCP_RST)
			return;
		w->flow = (struct flow){.tag = flow_tag(&w->key), .seen = l4->now, .kind = FLOW_TO_CLIENT, .state = of->state & FLOW_OPEN,
					.port = port, .backend = of->backend, .vip = of->vip};
		words_copy4(w->flow.addr, p->dst.addr);
		bpf_map_update_elem(&flows_v3, &w->key, &w->flow, BPF_NOEXIST);
	} else if (f->kind == FLOW_TO_CLIENT && f->port == port && halves_equal((const struct address *)f->addr, &p->dst)) {
		f->seen = l4->now;
		if (l4->flags & TCP_RST)
			f->state |= FLOW_ENDING;
	}
}

/* request_follow is the same of a flow's own row when there are answers, or the backend has reset it. */
static __noinline void request_follow(const struct run *r, const struct packet *p, const struct l4 *l4)
{
	struct work *w = work_of();

	if (!w)
		return;
	flow_key_of(&w->key, r, p, l4->ports);
	words_copy4(w->key.src, p->dst.addr);
	words_copy4(w->key.dst, r->to.addr);
	w->key.ports = (__u32)r->port << 16 | l4->ports >> 16;
	struct flow *f = bpf_map_lookup_elem(&flows_v3, &w->key);

	if (!f || f->kind != FLOW_TO_BACKEND || !halves_equal((const struct address *)f->addr, &p->src))
		return;
	f->seen = l4->now;
	if (l4->flags & TCP_RST)
		f->state |= FLOW_ENDING;
}

/*
 * flow_begin writes both directions of a flow. The one of the answers first: a packet
 * that the other one lets through may have one at once. With alone it is false, and nothing
 * is written, where the backend could not tell the flow from another one of the client.
 */
static __always_inline int flow_begin(struct run *r, const struct packet *p, struct flow_key *k, const struct l4 *l4,
				      __u32 backend, __u32 stats, int alone)
{
	struct work *w = work_of();

	if (!w)
		return 1;
	struct flow *f = &w->flow;
	__be16 port = k->ports >> 16;

	*f = (struct flow){.seen = l4->now, .backend = backend, .vip = stats};
	f->state = l4->flags & TCP_SYN || p->proto == IPPROTO_UDP ? 0 : FLOW_OPEN;
#ifdef CLIENT
	mac_copy(f->mac, r->mac);
#endif
	answers_key(k, r, p);
	f->tag = flow_tag(k);
	f->kind = FLOW_TO_CLIENT;
	f->port = port;
	words_copy4(f->addr, p->dst.addr);
	if (bpf_map_update_elem(&flows_v3, k, f, alone ? BPF_NOEXIST : BPF_ANY) && alone) {
		if (answers_taken(k, f, l4)) {
			flow_key_of(k, r, p, l4->ports);
			return 0;
		}
		bpf_map_update_elem(&flows_v3, k, f, BPF_ANY);
	}

	flow_key_of(k, r, p, l4->ports);
	f->tag = flow_tag(k);
	f->kind = FLOW_TO_BACKEND;
	f->port = r->port;
	words_copy4(f->addr, r->to.addr);
	bpf_map_update_elem(&flows_v3, k, f, BPF_ANY);
	return 1;
}

/*
 * ovn_balances tells whether a flow that is not known is OVN's. A packet that begins none
 * goes as those did before the last change; unless flows without a row have begun since, as
 * in a flood: there are more of these. What came from another node is in no state of OVN's
 * here.
 */
static __always_inline int ovn_balances(const struct run *r, const struct vip *v, const struct packet *p, const struct l4 *l4)
{
	int is = !!(v->flags & VIP_OVN), was = is ^ (l4->now < v->until);

#ifdef CLIENT
	int client = !!(r->client->flags & CLIENT_OVN);

	is |= client;
	was |= client ^ (l4->now < r->client->until);
#endif
	if (is == was || opens(p->proto, l4) || rate_without(v, is, l4->now))
		return is;
	return was && r->unknown <= l4->now;
}

/*
 * flow_left leaves a flow to OVN; with k, which is room for its key, from now on. There is
 * nothing to be dropped.
 */
static __noinline __u32 flow_left(struct run *r, const struct vip *v, const struct packet *p, struct flow_key *k, const struct l4 *l4)
{
	STEP(r, STEP_LEFT, 0, 0);
	if (!k || r->trace)
		return DROP_NONE;
	if (flow_token(r, v->stats, opens(p->proto, l4))) {
		flow_note(k, l4, FLOW_OVN, l4->flags & TCP_SYN ? 0 : FLOW_OPEN);
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
 * of the others, or, where none can, at its own all the same. It returns the backend's row;
 * 0: there is none any more.
 */
static __noinline __u32 flow_elsewhere(struct run *r, const struct packet *p, struct flow_key *k, const struct l4 *l4, const struct vip *v)
{
	__u32 hash = vip_hash(&p->src, &p->dst, p->proto, l4->ports, v->flags);

	for (__u32 i = 0; i <= ELSEWHERE; i++) {
		int own = i == ELSEWHERE;
		__u32 row = own ? member_of(v, hash) : member_after(v, hash + i);

		if (backend_take(r, p, row) && flow_begin(r, p, k, l4, row, v->stats, !own))
			return row;
	}
	return 0;
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

/*
 * flow_choose decides where a flow goes that is not known. With k, which is room for a
 * key, it is known from now on. 0 or a drop reason.
 */
static __noinline __u32 flow_choose(struct run *r, const struct packet *p, struct flow_key *k, const struct l4 *l4)
{
	struct vip *v = vip_find(r, p, l4->ports);

	if (!v)
		return DROP_NONE;
	STEP(r, STEP_VIP, v->table, p->dst.addr);
	if (ovn_balances(r, v, p, l4))
		return flow_left(r, v, p, k, l4);
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
		return flow_left(r, v, p, k, l4);
	if (!client_neighbor(r))
		return DROP_BACKEND_AWAY;
#endif
	r->port = b->port;
	r->side = NAT_DESTINATION;
	if (!k || r->trace)
		return DROP_NONE;
	int recorded = flow_allowed(r, v, opens(p->proto, l4), l4->now);

	if (!recorded && !answers_tell(r, p, l4, v, row))
		return DROP_VIP_FLOOD;
	if (recorded && !flow_begin(r, p, k, l4, row, v->stats, opens(p->proto, l4))) {
		row = flow_elsewhere(r, p, k, l4, v);
		if (!row)
			return DROP_NO_BACKEND;
	} else if (recorded && v->affinity) {
		keep_backend(r, p, k, l4);
	}
	stats_count(r, p->size, v->stats, row, recorded);
	return DROP_NONE;
}

/* asked_for tells whether a flow is one to a VIP. */
static __always_inline int asked_for(__u32 kind)
{
	return kind == FLOW_TO_BACKEND || kind == FLOW_OVN;
}

/*
 * begins_elsewhere tells whether a connection that begins anew, where another one from the
 * same port went on as far as is known, is not to go where that one went: the backend gets no
 * new flows, as after it has died with its connections. What comes beside packets of the
 * other one is a late copy of how that began.
 */
static __noinline int begins_elsewhere(const struct run *r, const struct packet *p, const struct l4 *l4, const struct flow *f)
{
	struct vip *v = age(l4->now, f->seen) ? vip_find(r, p, l4->ports) : 0;

	return v && !(v->flags & VIP_OVN) && !takes_flows(v, f->backend);
}

/* flow_find is backend_find of a packet with ports. */
static __always_inline __u32 flow_find(struct run *r, struct packet *p)
{
	struct work *w = work_of();

	if (!w)
		return DROP_NONE;
	struct flow_key *k = &w->own;
	struct l4 *l4 = &w->own_l4;

	l4_read(r->skb, p, l4);
	flow_key_of(k, r, p, l4->ports);
	struct flow *f = bpf_map_lookup_elem(&flows_v3, k);

	__u32 kind = f ? *(const volatile __u8 *)&f->kind : 0;

	if (!f || !asked_for(kind) || !flow_lives(f, p->proto, l4) || !flow_read(r, f, flow_tag(k)))
		return flow_choose(r, p, k, l4);
	if (connects(l4->flags) && kind == FLOW_TO_BACKEND && begins_elsewhere(r, p, l4, f))
		return flow_choose(r, p, k, l4);
	STEP(r, STEP_FLOW, kind, 0);
	if (kind == FLOW_TO_BACKEND)
		r->side = NAT_DESTINATION;
#ifdef CLIENT
	client_neighbor(r); /* it may be another one by now, or not be known any more */
#endif
	if (r->trace)
		return DROP_NONE;
	/* Once a second is enough. */
	if (kind == FLOW_TO_BACKEND && (f->seen != l4->now || l4->flags & TCP_RST))
		answers_follow(r, p, l4, f);
	flow_seen(f, l4);
	if (kind != FLOW_TO_BACKEND)
		return DROP_NONE;
	stats_count(r, p->size, f->vip, f->backend, 0);
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
	s->all = r->unknown > l4->now;
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
	struct flow f = {.tag = flow_tag(k), .seen = now, .kind = FLOW_TO_CLIENT, .state = FLOW_OPEN, .port = r->port, .backend = backend, .vip = stats};

	words_copy4(f.addr, r->to.addr);
	bpf_map_update_elem(&flows_v3, k, &f, BPF_ANY);
}

/* held tells whether what cannot be told from an answer is held back: since unknown was set; flows of UDP end sooner. */
static __always_inline int held(const struct run *r, __u32 proto, __u32 now)
{
	return r->unknown > now + TCP_IDLE - flow_idle(proto, FLOW_OPEN);
}

/*
 * answer_unknown is answer_find of what may be a backend's and is of no known flow.
 * After a VIP has come to this node there are flows that it does not know, and their
 * answers must not get to clients as they are: those would reset their connections.
 * What cannot be told from such an answer is held back until the other side was seen.
 * Of flows that are not recorded for their number nothing is held back.
 */
static __always_inline int answer_unknown(struct run *r, struct packet *p, struct flow_key *k, struct l4 *l4)
{
	int hold = held(r, p->proto, l4->now);

	if (!uncertain(r, l4->now))
		return 1;
	__u32 stats = 0, backend = answer_of(r, p, l4, &stats);

	if (connects(l4->flags)) {
		/* What a backend begins goes on as it is. */
		if ((backend || hold) && !r->trace && flow_token(r, stats, 1))
			flow_note(k, l4, FLOW_DIRECT, FLOW_OPEN);
		return 1;
	}
	if (!backend)
		return !hold;
	r->side = NAT_SOURCE;
	if (r->trace)
		return 1;
	if (hold && flow_token(r, stats, 0))
		answer_begin(r, k, l4->now, backend, stats);
	stats_count(r, p->size, stats, backend, 0);
	return 1;
}

/* answer_known is answer_find of what may be a backend's. */
static __always_inline int answer_known(struct run *r, struct packet *p)
{
	struct flow_key k;
	struct l4 l4;

	l4_read(r->skb, p, &l4);
	flow_key_of(&k, r, p, l4.ports);
	struct flow *f = bpf_map_lookup_elem(&flows_v3, &k);

	if (!f || asked_for(f->kind) || !flow_lives(f, p->proto, &l4) || !flow_read(r, f, flow_tag(&k))) {
		if (!answer_unknown(r, p, &k, &l4))
			return 0;
	} else {
		__u32 kind = f->kind;

		STEP(r, STEP_FLOW, kind, 0);
		if (kind == FLOW_TO_CLIENT)
			r->side = NAT_SOURCE;
		if (!r->trace && r->side && (f->seen != l4.now || l4.flags & TCP_RST))
			request_follow(r, p, &l4);
		if (!r->trace)
			flow_seen(f, &l4);
		if (!r->trace && r->side)
			stats_count(r, p->size, f->vip, f->backend, 0);
	}
	if (r->side)
		STEP(r, STEP_ANSWER, bpf_ntohs(r->port), r->to.addr);
	return 1;
}

/*
 * answer_find has a backend's answer come from the VIP. What belongs to no flow is the
 * backend's own. 0 or a drop reason.
 */
static __always_inline __u32 answer_find(struct run *r, struct packet *p)
{
	if (!has_ports(p->proto))
		return DROP_NONE;
	if (p->fragment == LATER_FRAGMENT) {
		fragment_follow(r, p);
		return DROP_NONE;
	}
	__be16 port = l4_ports(r->skb, p);

	if (!backend_at(r, p->proto, port, &p->src))
		return DROP_NONE;
	if (!answer_known(r, p))
		return DROP_ANSWER_UNKNOWN;
	/* Without a row the rest of the packet would go on as the backend's own. */
	return r->side && p->fragment == FIRST_FRAGMENT ? fragment_lead(r, p) : DROP_NONE;
}

/*
 * requested tells whether the client of answers has asked the VIP that they are taken for.
 * l4 and f are of the answers, p of a packet to their backend.
 */
static __noinline int requested(const struct run *r, const struct packet *p, const struct l4 *l4, const struct flow *f)
{
	struct work *w = work_of();

	if (!w)
		return 1;
	flow_key_of(&w->own, r, p, (__u32)f->port << 16 | l4->ports >> 16);
	words_copy4(w->own.dst, f->addr);
	struct flow *own = bpf_map_lookup_elem(&flows_v3, &w->own);

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
	struct flow *f = bpf_map_lookup_elem(&flows_v3, &w->key);
	__u32 stats = 0;
	int begins = connects(l4->flags);

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
	    (!uncertain(r, l4->now) || !(answer_of(r, answer, l4, &stats) || held(r, p->proto, l4->now)) || !flow_token(r, stats, 0)))
		return;
	flow_note(&w->key, l4, FLOW_DIRECT, FLOW_OPEN);
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
	if ((uncertain(r, 1) && uncertain(r, now_seconds())) || connects(l4_flags(r->skb, p)))
		direct_known(r, p);
}
