/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * Session affinity: a client's new flows go where its last one went. The tables of such
 * VIPs lead clients by their addresses alone (VIP_BY_ADDRESS), on all nodes alike; what
 * is kept here is for the few whose place in a table has become another backend's.
 */
#include "session.h"

/* member_search looks for a backend in a table. */
struct member_search {
	__u32 page;
	__u32 first; /* word of the first member */
	__u32 backend;
	__u32 weight; /* the result */
};

static long member_at(__u32 i, struct member_search *s)
{
	__u32 word = s->first + i;
	void *words = bpf_map_lookup_elem(&maglev_v2, &s->page);
	struct maglev_member *m = words ? bpf_map_lookup_elem(words, &word) : 0;

	if (!m)
		return 1;
	if (m->backend != s->backend)
		return 0;
	s->weight = m->weight;
	return 1;
}

/* takes_flows tells whether a backend of a VIP gets new flows. */
static __always_inline int takes_flows(const struct vip *v, __u32 backend)
{
	struct member_search s = {.page = v->table / TABLE_PAGE, .first = v->table % TABLE_PAGE + slot_words(v->slots), .backend = backend};

	bpf_loop(v->members, member_at, &s, 0);
	return s.weight != 0;
}

/* is_at tells whether a row of backends is that of the address and port in the run: it may be another backend's by now. */
static __always_inline int is_at(const struct run *r, __u32 row)
{
	struct backend *b = bpf_map_lookup_elem(&backends_v1, &row);

	return b && b->scope == r->vni && b->port == r->port && halves_equal(&r->to, b->addr);
}

/* kept_key is the key of a client's flows to a VIP, together. */
static __always_inline void kept_key(struct flow_key *k, const struct run *r, const struct packet *p, __u32 ports)
{
	flow_key_of(k, r, p, ports & ~0xffffU);
}

/*
 * kept_backend is the row of the backend that the client of a new flow keeps; 0: there
 * is none.
 */
static __noinline __u32 kept_backend(struct run *r, const struct packet *p, const struct vip *v, const struct l4 *l4)
{
	struct work *w = work_of();

	if (!w)
		return 0;
	kept_key(&w->key, r, p, l4->ports);
	struct flow *f = bpf_map_lookup_elem(&affinity_v3, &w->key);

	if (!f || age(l4->now, f->seen) > v->affinity)
		return 0;
	__u32 row = *(const volatile __u32 *)&f->backend;

	return flow_read(r, f, flow_tag(&w->key)) && takes_flows(v, row) && is_at(r, row) ? row : 0;
}

/* keep_backend has the client keep the backend of a new flow, which flow_begin has in w->flow. */
static __always_inline void keep_backend(const struct run *r, const struct packet *p, const struct l4 *l4)
{
	struct work *w = work_of();

	if (!w)
		return;
	kept_key(&w->key, r, p, l4->ports);
	w->flow.tag = flow_tag(&w->key);
	bpf_map_update_elem(&affinity_v3, &w->key, &w->flow, BPF_ANY);
}
