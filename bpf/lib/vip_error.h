/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * ICMP errors about packets of flows to VIPs. They go where the flow goes, and the
 * packet that they quote becomes what their receiver has sent (RFC 5508 section 4.2).
 * The checksum of its TCP or UDP header stays: what is quoted is cut, and nobody can
 * check it.
 */
#include "answer.h"

/*
 * quoted_read reads the packet that an error is about, turned round: as one that goes
 * the way of the error. 0: it has no ports, or not all of it can be told.
 */
static __noinline int quoted_read(struct __sk_buff *skb, const struct packet *p, struct packet *q)
{
	__u32 at = p->l4 + 8;

	if (p->family == 4) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5 || ip.frag_off & bpf_htons(IP_OFFSET))
			return 0;
		halves_map4(&q->src, ip.daddr);
		halves_map4(&q->dst, ip.saddr);
		q->proto = ip.protocol;
		q->l4 = at + ip.ihl * 4;
	} else {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)) || ip.version != 6)
			return 0;
		words_copy4(q->src.addr, &ip.daddr);
		words_copy4(q->dst.addr, &ip.saddr);
		q->proto = ip.nexthdr;
		q->l4 = at + sizeof(ip);
		if (q->proto == IPPROTO_FRAGMENT) {
			struct {
				__u8 next, reserved;
				__be16 offset;
			} h;

			if (bpf_skb_load_bytes(skb, q->l4, &h, sizeof(h)) || h.offset & bpf_htons(0xfff8))
				return 0;
			q->proto = h.next;
			q->l4 += 8;
		}
	}
	q->family = p->family;
	q->fragment = WHOLE;
	return has_ports(q->proto);
}

/*
 * quoted_write gives the quoted packet the address and port that the receiver of the
 * error knows: the other end than that of the error itself. ports are those of q. 0
 * or a drop reason.
 */
static __noinline __u32 quoted_write(struct run *r, const struct packet *p, const struct packet *q, __u32 ports)
{
	int source = r->side == NAT_DESTINATION;
	const struct address *was = source ? &q->dst : &q->src;
	const __u32 *n = (const __u32 *)r->to.addr, *w = (const __u32 *)was->addr;
	__u32 check = p->l4 + ICMP_CHECK, at = p->l4 + 8;
	__be16 old = source ? ports >> 16 : ports, now = r->port;
	long failed = 0;

	STEP(r, STEP_QUOTED, bpf_ntohs(now), r->to.addr);
	if (now && now != old)
		failed = bpf_l4_csum_replace(r->skb, check, old, now, sizeof(now)) ||
			 bpf_skb_store_bytes(r->skb, q->l4 + (source ? 0 : 2), &now, sizeof(now), 0);
	if (p->family == 4)
		/* The change of the address and that of its header's checksum cancel out in the error's. */
		failed = failed || bpf_l3_csum_replace(r->skb, at + __builtin_offsetof(struct iphdr, check), w[3], n[3], 4) ||
			 bpf_skb_store_bytes(r->skb, at + (source ? 12 : 16), n + 3, 4, 0);
	else
		failed = failed || bpf_l4_csum_replace(r->skb, check, 0, nat_diff(was, &r->to), 0) ||
			 bpf_skb_store_bytes(r->skb, at + (source ? 8 : 24), n, 16, 0);
	return failed ? DROP_NAT : DROP_NONE;
}

/* quoted_l4 is l4_read of a quoted packet: it neither begins nor ends anything. */
static __always_inline void quoted_l4(struct __sk_buff *skb, const struct packet *q, struct l4 *l4)
{
	__u32 ports = l4_ports(skb, q);

	l4->ports = ports << 16 | ports >> 16;
	l4->flags = TCP_ACK;
	l4->now = now_seconds();
}

/*
 * quoted_flow reads what an error is about into the work of its packet. 0: it can be of
 * no flow.
 */
static __always_inline int quoted_flow(struct run *r, const struct packet *p, struct work *w)
{
	if (p->fragment != WHOLE || !quoted_read(r->skb, p, &w->quoted) || !halves_equal(&p->dst, w->quoted.dst.addr))
		return 0;
	quoted_l4(r->skb, &w->quoted, &w->l4);
	flow_key_of(&w->key, r, &w->quoted, w->l4.ports);
	return 1;
}

#ifndef ANSWERS
/*
 * error_to_backend has an error to a VIP go to the backend of the flow that it is
 * about. It goes where the address is if there is none. 0 or a drop reason.
 */
static __noinline __u32 error_to_backend(struct run *r, struct packet *p)
{
	struct work *w = work_of();
	__u32 reason = DROP_NONE;

	if (!w || !quoted_flow(r, p, w))
		return DROP_NONE;
	session_key_of(&w->client, r, &w->quoted.src, w->l4.ports, w->quoted.proto);
	struct session *s = bpf_map_lookup_elem(&sessions_v1, &w->client);

	if (s && session_asks(s, &w->quoted, &w->l4) && session_read(r, s, 1, session_tag(&w->client))) {
		r->side = NAT_DESTINATION;
	} else {
		struct flow *f = bpf_map_lookup_elem(&flows_v4, &w->key);
		__u32 kind = f ? *(const volatile __u8 *)&f->kind : 0;

		if (!f || !asked_for(kind) || !flow_lives(f, w->quoted.proto, &w->l4) || !flow_read(r, f, flow_tag(&w->key)))
			reason = flow_new(r, &w->quoted, &w->l4, 0, 0);
		else if (kind == FLOW_TO_BACKEND)
			r->side = NAT_DESTINATION;
	}
	if (!reason && r->side)
		reason = quoted_write(r, p, &w->quoted, w->l4.ports);
	r->port = 0;
	return reason;
}
#else
/*
 * error_to_client has an error about a packet of a client to a VIP name the VIP. It
 * comes from the VIP, too, if it came from the backend. 0 or a drop reason.
 */
static __noinline __u32 error_to_client(struct run *r, struct packet *p)
{
	struct work *w = work_of();
	__u32 stats;

	if (!w || !quoted_flow(r, p, w) || !backend_at(r, w->quoted.proto, w->l4.ports, &w->quoted.src))
		return DROP_NONE;
	int known = session_of(r, &w->quoted, &w->l4, &w->client) != 0;

	if (!known) {
		struct flow *f = bpf_map_lookup_elem(&flows_v4, &w->key);

		known = f ? f->kind == FLOW_TO_CLIENT && flow_lives(f, w->quoted.proto, &w->l4) && flow_read(r, f, flow_tag(&w->key))
			  : uncertain(r, w->l4.now) && answer_of(r, &w->quoted, &w->l4, &stats);
	}
	if (!known)
		return DROP_NONE;
	r->side = NAT_SOURCE;
	__u32 reason = quoted_write(r, p, &w->quoted, w->l4.ports);

	r->port = 0;
	if (!halves_equal(&p->src, w->quoted.src.addr))
		r->side = NAT_NONE;
	return reason;
}

/* answer_apply has a packet that answer_may() tells of come from its VIP, or name it. 0 or a drop reason. */
static __noinline __u32 answer_apply(struct run *r, struct packet *p)
{
	int error = p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6;
	__u32 reason = error ? error_to_client(r, p) : answer_find(r, p);

	return !reason && r->side ? nat_write(r, p) : reason;
}
#endif
