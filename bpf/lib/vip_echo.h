/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Echo requests to VIPs (RFC 792, RFC 4443): nobody behind OVN would answer them. */
#include "icmp.h"
#include "nat.h"

#define ECHO_TTL 64
#define ICMP6_ECHO 128
#define ICMP6_ECHOREPLY 129

/* icmp_is_echo tells whether the packet is an echo request in one piece. */
static __always_inline int icmp_is_echo(struct __sk_buff *skb, const struct packet *p)
{
	__u8 type;

	if (p->proto != (p->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) || p->fragment != WHOLE ||
	    bpf_skb_load_bytes(skb, p->l4, &type, 1))
		return 0;
	return type == (p->family == 4 ? ICMP_ECHO : ICMP6_ECHO);
}

/* echo_ttl has the packet live as long as one that begins here. 0 or -1. */
static __always_inline int echo_ttl(struct __sk_buff *skb, const struct packet *p)
{
	void *data = frame(skb, ETH_HLEN + sizeof(struct iphdr));

	if (!data)
		return -1;
	if (p->family == 4) {
		struct iphdr *ip = data + ETH_HLEN;

		ip->check = ~fold((__u64)(__u16)~ip->check + (__u16)~bpf_htons(ip->ttl << 8) + bpf_htons(ECHO_TTL << 8));
		ip->ttl = ECHO_TTL;
		return 0;
	}
	struct ipv6hdr *ip = data + ETH_HLEN;

	/* As in hop(). */
	bpf_csum_update(skb, (__u32)(__u16)~bpf_htons(ip->hop_limit) + bpf_htons(ECHO_TTL));
	data = frame(skb, ETH_HLEN + sizeof(struct ipv6hdr));
	if (!data)
		return -1;
	ip = data + ETH_HLEN;
	ip->hop_limit = ECHO_TTL;
	return 0;
}

/* echo_reply turns an echo request into its reply, but for its MAC addresses. 0 or -1. */
static __noinline int echo_reply(struct __sk_buff *skb, const struct packet *p)
{
	__u32 at = ETH_HLEN + (p->family == 4 ? 12 : 8);
	const __u8 *src = p->src.addr + 16 - 4, *dst = p->dst.addr + 16 - 4;
	__be16 was = bpf_htons(ICMP_ECHO << 8), now = bpf_htons(ICMP_ECHOREPLY << 8);
	__u8 type = ICMP_ECHOREPLY;

	if (p->family == 6) {
		type = ICMP6_ECHOREPLY;
		was = bpf_htons(ICMP6_ECHO << 8);
		now = bpf_htons(ICMP6_ECHOREPLY << 8);
		if (bpf_skb_store_bytes(skb, at, p->dst.addr, 16, 0) || bpf_skb_store_bytes(skb, at + 16, p->src.addr, 16, 0))
			return -1;
	} else if (bpf_skb_store_bytes(skb, at, dst, 4, 0) || bpf_skb_store_bytes(skb, at + 4, src, 4, 0)) {
		return -1;
	}
	if (bpf_l4_csum_replace(skb, p->l4 + ICMP_CHECK, was, now, sizeof(now)) || bpf_skb_store_bytes(skb, p->l4, &type, 1, 0))
		return -1;
	return echo_ttl(skb, p);
}
