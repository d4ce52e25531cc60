/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * VIPs: which backend a packet goes to, and whose answer one is. A flow that is known
 * goes on as it went; another one goes where its hash leads in the table of the VIP,
 * which is the same on all nodes.
 */
#include "nat.h"

/*
 * How long a flow is known without a packet, in seconds: RFC 5382 (REQ-5) and RFC 4787
 * (REQ-5) for translators of addresses.
 */
#define TCP_IDLE 7440
#define TCP_TRANSITORY 240
#define UDP_IDLE 120

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16
#define TCP_FLAGS 13 /* offset */

/* l4 is what the upper layer's header says. */
struct l4 {
	__u32 ports;
	__u32 flags; /* of TCP, else 0 */
	__u32 now;   /* s */
};

static __always_inline void l4_read(struct __sk_buff *skb, const struct packet *p, struct l4 *l4)
{
	__u8 flags = 0;

	l4->ports = l4_ports(skb, p);
	if (p->proto == IPPROTO_TCP)
		bpf_skb_load_bytes(skb, p->l4 + TCP_FLAGS, &flags, 1);
	l4->flags = flags;
	l4->now = bpf_ktime_get_coarse_ns() / 1000000000;
}

static __always_inline void flow_key_of(struct flow_key *k, const struct run *r, const struct packet *p, __u32 ports)
{
	words_copy4(k->src, p->src.addr);
	words_copy4(k->dst, p->dst.addr);
	k->scope = r->vni;
	k->ports = ports;
	k->proto = p->proto;
}

/* flow_tag is what a row has of its key: never 0. */
static __always_inline __u32 flow_tag(const struct flow_key *k)
{
	const __u32 *s = (const __u32 *)k->src, *d = (const __u32 *)k->dst;

	return ((s[1] ^ s[2] ^ s[3]) * 0x9e3779b1 ^ (d[1] ^ d[2] ^ d[3]) ^ k->ports * 0x85ebca6b ^ k->scope << 8 ^ k->proto) | 1;
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
	return *(const volatile __u32 *)&f->tag == tag;
}

static __always_inline __u32 flow_idle(__u32 proto, __u32 state)
{
	if (proto == IPPROTO_UDP)
		return UDP_IDLE;
	return state == FLOW_OPEN ? TCP_IDLE : TCP_TRANSITORY;
}

/* flow_seen takes note of a packet. A row that is right is not written: other processors read it. */
static __always_inline void flow_seen(struct flow *f, const struct l4 *l4)
{
	__u8 state = f->state;

	if (!(l4->flags & TCP_SYN))
		state |= FLOW_OPEN;
	if (l4->flags & (TCP_FIN | TCP_RST))
		state |= FLOW_ENDING;
	if (f->seen != l4->now)
		f->seen = l4->now;
	if (f->state != state)
		f->state = state;
}

/* flow_lives tells whether a known flow goes on with this packet. */
static __always_inline int flow_lives(const struct flow *f, __u32 proto, const struct l4 *l4)
{
	if (l4->now - f->seen > flow_idle(proto, f->state))
		return 0;
	/* A connection that begins anew is another one. */
	return !(l4->flags & TCP_SYN) || l4->flags & TCP_ACK || f->state == FLOW_OPEN;
}

/* vip_find is the VIP of a packet: by its port, or that of all ports. */
static __always_inline struct vip *vip_find(const struct run *r, const struct packet *p, __u32 ports)
{
	struct vip_key k = {.scope = r->vni, .port = ports >> 16, .proto = p->proto};

	words_copy4(k.addr, p->dst.addr);
	struct vip *v = bpf_map_lookup_elem(&vips_v1, &k);

	if (v)
		return v;
	k.port = 0;
	return bpf_map_lookup_elem(&vips_v1, &k);
}

/* vip_hash is the place of a flow from a client to a VIP in tables; the daemon computes the same (flows.go). */
static __always_inline __u32 vip_hash(const struct address *client, const struct address *vip, __u32 proto, __u32 ports,
				      __u32 flags)
{
	return hash_ends(client, vip, flags & VIP_BY_ADDRESS ? 0 : (__u64)proto << 32 | ports);
}

/* member_of is the row of backends that a hash leads to; 0: there is none. Without r nothing is traced. */
static __always_inline __u32 member_of(struct run *r, const struct vip *v, __u32 hash)
{
	__u32 row = v->table, slots = v->slots;
	void *table = bpf_map_lookup_elem(&maglev_v1, &row);

	if (!table || !slots)
		return 0;
	__u32 slot = hash % slots;

	row = slot / 4;
	__u64 *four = bpf_map_lookup_elem(table, &row);

	if (!four)
		return 0;
	if (r)
		STEP(r, STEP_MEMBER, slot, 0);
	__u32 number = *four >> slot % 4 * 16 & 0xffff;

	if (number == NO_MEMBER)
		return 0;
	row = (slots + 3) / 4 + number;
	__u64 *member = bpf_map_lookup_elem(table, &row);

	return member ? *member : 0;
}

/*
 * flow_begin writes both directions of a flow. The one of the answers first: a packet
 * that the other one lets through may have one at once.
 */
static __always_inline void flow_begin(struct run *r, const struct packet *p, struct flow_key *k, const struct l4 *l4,
				       __u32 backend)
{
	struct flow f = {.seen = l4->now, .backend = backend};
	__be16 port = k->ports >> 16;

	f.state = l4->flags & TCP_SYN || p->proto != IPPROTO_TCP ? 0 : FLOW_OPEN;
	/* The answer comes from the backend, to where the packet is from. */
	words_copy4(k->src, r->to.addr);
	words_copy4(k->dst, p->src.addr);
	k->ports = k->ports << 16 | (r->port ? r->port : port);
	f.tag = flow_tag(k);
	f.kind = FLOW_TO_CLIENT;
	f.port = port;
	words_copy4(f.addr, p->dst.addr);
	bpf_map_update_elem(&flows_v1, k, &f, BPF_ANY);

	flow_key_of(k, r, p, l4->ports);
	f.tag = flow_tag(k);
	f.kind = FLOW_TO_BACKEND;
	f.port = r->port;
	words_copy4(f.addr, r->to.addr);
	bpf_map_update_elem(&flows_v1, k, &f, BPF_ANY);
}

/* flow_choose decides where a flow goes that is not known. 0 or a drop reason. */
static __noinline __u32 flow_choose(struct run *r, struct packet *p, struct flow_key *k, struct l4 *l4)
{
	struct vip *v = vip_find(r, p, l4->ports);

	if (!v)
		return DROP_NONE;
	STEP(r, STEP_VIP, v->table, p->dst.addr);
	__u32 row = member_of(r, v, vip_hash(&p->src, &p->dst, p->proto, l4->ports, v->flags));
	struct backend *b = row ? bpf_map_lookup_elem(&backends_v1, &row) : 0;

	if (!b || b->scope != r->vni)
		return DROP_NO_BACKEND;
	halves_copy(&r->to, b->addr);
	r->port = b->port;
	r->side = NAT_DESTINATION;
	if (!r->trace)
		flow_begin(r, p, k, l4, row);
	return DROP_NONE;
}

/*
 * backend_find decides which backend a packet to an address with VIPs goes to: r->side
 * tells whether it goes to any. 0 or a drop reason.
 */
static __always_inline __u32 backend_find(struct run *r, struct packet *p)
{
	struct flow_key k;
	struct l4 l4;

	if (!has_ports(p->proto))
		return DROP_NONE;
	if (p->fragment != WHOLE)
		return DROP_VIP_FRAGMENT;
	l4_read(r->skb, p, &l4);
	flow_key_of(&k, r, p, l4.ports);
	struct flow *f = bpf_map_lookup_elem(&flows_v1, &k);

	if (f && f->kind == FLOW_TO_BACKEND && flow_lives(f, p->proto, &l4) && flow_read(r, f, flow_tag(&k))) {
		STEP(r, STEP_FLOW, FLOW_TO_BACKEND, 0);
		r->side = NAT_DESTINATION;
		if (!r->trace)
			flow_seen(f, &l4);
	} else {
		__u32 reason = flow_choose(r, p, &k, &l4);

		if (reason)
			return reason;
	}
	if (r->side)
		STEP(r, STEP_BACKEND, bpf_ntohs(r->port), r->to.addr);
	return DROP_NONE;
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

/* direct_begin has what a backend sends on a connection of its own go on as it is. k is that of its packets. */
static __noinline void direct_begin(const struct flow_key *k, __u32 now)
{
	struct flow f = {.tag = flow_tag(k), .seen = now, .kind = FLOW_DIRECT, .state = FLOW_OPEN};

	bpf_map_update_elem(&flows_v1, k, &f, BPF_NOEXIST);
}

/*
 * answer_of tells whether an answer without a known flow is of one to a VIP: some node
 * has chosen this backend for it, and all choose alike. A connection of the backend's
 * own looks so by chance, one in as many as the VIP has backends. It returns the row of
 * the backend; 0: it is of none, or of several. from is room on the caller's stack.
 */
static __noinline __u32 answer_of(struct run *r, struct packet *p, const struct l4 *l4, struct vip_key *from)
{
	from->scope = r->vni;
	from->port = l4->ports;
	from->proto = p->proto;
	from->pad = 0;
	words_copy4(from->addr, p->src.addr);
	struct answers *a = bpf_map_lookup_elem(&answers_v1, from);

	if (!a) {
		from->port = 0;
		a = bpf_map_lookup_elem(&answers_v1, from);
	}
	if (!a || a->count > ANSWER_VIPS)
		return 0;
	__u32 found = 0;
	__be16 ours = 0;

	for (__u32 i = 0; i < ANSWER_VIPS && i < a->count; i++) {
		struct answer_vip *v = &a->vips[i];
		__be16 port = v->port ? v->port : (__be16)l4->ports;
		__u32 ports = (__u32)port << 16 | l4->ports >> 16; /* of the packet that this one answers */

		halves_copy(&r->to, v->addr);
		if (member_of(0, &v->vip, vip_hash(&p->dst, &r->to, p->proto, ports, v->vip.flags)) != a->backend)
			continue;
		if (found)
			return 0;
		found = i + 1;
		ours = port;
	}
	if (!found || found > ANSWER_VIPS)
		return 0;
	halves_copy(&r->to, a->vips[found - 1].addr);
	r->port = ours;
	return a->backend;
}

/* answer_begin makes an answer's flow a known one. */
static __noinline void answer_begin(struct run *r, const struct flow_key *k, __u32 now, __u32 backend)
{
	struct flow f = {.tag = flow_tag(k), .seen = now, .kind = FLOW_TO_CLIENT, .state = FLOW_OPEN, .port = r->port, .backend = backend};

	words_copy4(f.addr, r->to.addr);
	bpf_map_update_elem(&flows_v1, k, &f, BPF_ANY);
}

/*
 * answer_unknown is answer_find of what may be a backend's and is of no known flow.
 * After a VIP has come to this node there are flows that it does not know, and their
 * answers must not get to clients as they are: those would reset their connections.
 * What cannot be told from such an answer is held back until the other side was seen.
 */
static __always_inline int answer_unknown(struct run *r, struct packet *p, struct flow_key *k, struct l4 *l4)
{
	int opens = (l4->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;

	if (r->unknown <= l4->now)
		return 1;
	if (opens) {
		if (!r->trace)
			direct_begin(k, l4->now);
		return 1;
	}
	__u32 backend = answer_of(r, p, l4, (struct vip_key *)k);

	if (!backend)
		return 0;
	r->side = NAT_SOURCE;
	flow_key_of(k, r, p, l4->ports);
	if (!r->trace)
		answer_begin(r, k, l4->now, backend);
	return 1;
}

/* answer_known is answer_find of what may be a backend's. */
static __always_inline int answer_known(struct run *r, struct packet *p)
{
	struct flow_key k;
	struct l4 l4;

	l4_read(r->skb, p, &l4);
	flow_key_of(&k, r, p, l4.ports);
	struct flow *f = bpf_map_lookup_elem(&flows_v1, &k);

	if (!f || f->kind == FLOW_TO_BACKEND || !flow_lives(f, p->proto, &l4) || !flow_read(r, f, flow_tag(&k))) {
		if (!answer_unknown(r, p, &k, &l4))
			return 0;
	} else {
		__u32 kind = f->kind;

		if (kind == FLOW_TO_CLIENT)
			r->side = NAT_SOURCE;
		if (!r->trace)
			flow_seen(f, &l4);
		STEP(r, STEP_FLOW, kind, 0);
	}
	if (r->side)
		STEP(r, STEP_ANSWER, bpf_ntohs(r->port), r->to.addr);
	return 1;
}

/*
 * answer_find has a backend's answer come from the VIP. What belongs to no flow is the
 * backend's own. 0: it cannot be told.
 */
static __always_inline int answer_find(struct run *r, struct packet *p)
{
	if (!has_ports(p->proto) || p->fragment != WHOLE)
		return 1;
	__be16 port = l4_ports(r->skb, p);

	if (backend_is(r->vni, p->proto, port, &p->src) || backend_is(r->vni, p->proto, 0, &p->src))
		return answer_known(r, p);
	return 1;
}

#ifdef ANSWERS
static __noinline __u32 answer_apply(struct run *r, struct packet *p)
{
	if (!answer_find(r, p))
		return DROP_ANSWER_UNKNOWN;
	return r->side ? nat_write(r, p) : DROP_NONE;
}
#endif

/* direct_known is direct_note of what has ports. */
static __noinline void direct_known(struct run *r, struct packet *p)
{
	struct flow_key k;
	struct l4 l4;

	l4_read(r->skb, p, &l4);
	__be16 port = l4.ports >> 16;

	if (r->unknown <= l4.now || !(backend_is(r->vni, p->proto, port, &p->dst) || backend_is(r->vni, p->proto, 0, &p->dst)))
		return;
	words_copy4(k.src, p->dst.addr);
	words_copy4(k.dst, p->src.addr);
	k.scope = r->vni;
	k.ports = l4.ports << 16 | l4.ports >> 16;
	k.proto = p->proto;
	struct flow *f = bpf_map_lookup_elem(&flows_v1, &k);

	if (f && f->kind == FLOW_DIRECT)
		flow_seen(f, &l4);
	else if (!f)
		direct_begin(&k, l4.now);
}

/*
 * direct_note has the answers to a packet for a backend itself pass, while those of
 * flows that are not known are held back.
 */
static __always_inline void direct_note(struct run *r, struct packet *p)
{
	if (has_ports(p->proto) && p->fragment == WHOLE && !r->trace)
		direct_known(r, p);
}
