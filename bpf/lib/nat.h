/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * What a load balancer changes of a packet: one of its addresses and ports. It is
 * decided early and written late (run.h), so that an error about the packet quotes
 * what its sender sent.
 *
 * The checksum of TCP and UDP is left to the kernel's helper, which knows whether it
 * is complete. A checksum over the whole packet that the NIC delivered
 * (CHECKSUM_COMPLETE) stays right for IPv4: the change of the address is undone by
 * that of the header's checksum. IPv6 has none; the helper takes the change for one
 * beside the packet all the same, and bpf_csum_update gives it back.
 */
#include "lookup.h"

#define TCP_CHECK 16
#define UDP_CHECK 6
#define ICMP_CHECK 2

/* nat_diff is what a change of an address does to a sum over it. */
static __always_inline __u32 nat_diff(const struct address *was, const struct address *now)
{
	const __u32 *w = (const __u32 *)was->addr, *n = (const __u32 *)now->addr;
	__u64 diff = (__u64)(__u32)~w[0] + (__u32)~w[1] + (__u32)~w[2] + (__u32)~w[3] + n[0] + n[1] + n[2] + n[3];

	diff = (diff >> 32) + (__u32)diff;
	return (diff >> 32) + (__u32)diff;
}

/* nat_check is where the upper layer has a checksum over addresses, too; 0: nowhere in this packet. */
static __always_inline __u32 nat_check(const struct packet *p)
{
	if (p->fragment == LATER_FRAGMENT)
		return 0;
	switch (p->proto) {
	case IPPROTO_TCP:
		return TCP_CHECK;
	case IPPROTO_UDP:
		return UDP_CHECK;
	case IPPROTO_ICMPV6:
		return ICMP_CHECK;
	}
	return 0; /* that of SCTP knows nothing of addresses, and its ports stay */
}

/* nat_port writes the port, with its part of the checksum at check. 0 or a drop reason. */
static __always_inline __u32 nat_port(struct run *r, const struct packet *p, __u32 check, __u64 flags)
{
	__u32 at = r->side == NAT_DESTINATION ? 2 : 0;
	__u32 ports = l4_ports(r->skb, p);
	__be16 old = r->side == NAT_DESTINATION ? ports >> 16 : ports, now = r->port;

	if (!now || now == old)
		return DROP_NONE;
	if (check && bpf_l4_csum_replace(r->skb, p->l4 + check, old, now, flags | sizeof(now)))
		return DROP_NAT;
	__be16 *header = l4_at(r->skb, p, 4);

	if (header) {
		header[at / 2] = now;
		return DROP_NONE;
	}
	return bpf_skb_store_bytes(r->skb, p->l4 + at, &now, sizeof(now), 0) ? DROP_NAT : DROP_NONE;
}

static __noinline __u32 nat_write(struct run *r, const struct packet *p)
{
	const struct address *was = r->side == NAT_DESTINATION ? &p->dst : &p->src;
	const __u32 *n = (const __u32 *)r->to.addr;
	__u64 flags = p->proto == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
	__u32 check = nat_check(p), diff = nat_diff(was, &r->to), reason = DROP_NONE;

	if (check && bpf_l4_csum_replace(r->skb, p->l4 + check, 0, diff, flags | BPF_F_PSEUDO_HDR))
		return DROP_NAT;
	if (p->fragment != LATER_FRAGMENT)
		reason = nat_port(r, p, check, flags);
	if (reason)
		return reason;
	void *data;

	if (p->family == 4) {
		data = frame(r->skb, ETH_HLEN + sizeof(struct iphdr));
		if (!data)
			return DROP_SHORT_FRAME;
		struct iphdr *ip = data + ETH_HLEN;

		*(r->side == NAT_DESTINATION ? &ip->daddr : &ip->saddr) = n[3];
		ip->check = ~fold((__u64)(__u16)~ip->check + diff);
		return DROP_NONE;
	}
	data = frame(r->skb, ETH_HLEN + sizeof(struct ipv6hdr));
	if (!data)
		return DROP_SHORT_FRAME;
	struct ipv6hdr *ip = data + ETH_HLEN;

	words_copy4(r->side == NAT_DESTINATION ? &ip->daddr : &ip->saddr, n);
	bpf_csum_update(r->skb, diff);
	return DROP_NONE;
}
