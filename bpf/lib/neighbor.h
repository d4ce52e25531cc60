/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Messages of ARP (RFC 826) and of neighbour discovery (RFC 4861), and answers made in place. */
#include "frame.h"
#include "mac.h"
#include "types.h"

#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136
#define NA_SOLICITED 0x40000000
#define NA_OVERRIDE 0x20000000
#define OPT_TARGET_LLADDR 2

/* <linux/if_arp.h> does not compile for the BPF target. */
struct arp {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_len;
	__u8 protocol_len;
	__be16 op;
	__u8 sender_mac[6];
	__u8 sender[4];
	__u8 target_mac[6];
	__u8 target[4];
} __attribute__((packed));
ASSERT_SIZE(struct arp, 28);

/* arp_asks tells whether it is a request of one station for the address of another. */
static __always_inline int arp_asks(const struct arp *a, __be32 sender, __be32 target)
{
	return a->hardware == bpf_htons(1) && a->protocol == bpf_htons(ETH_P_IP) && a->hardware_len == 6 &&
	       a->protocol_len == 4 && a->op == bpf_htons(1) && sender != target;
}

/* arp_reply makes a request the reply that target has mac. */
static __always_inline void arp_reply(struct ethhdr *eth, struct arp *a, __be32 sender, __be32 target,
				      const volatile void *mac)
{
	a->op = bpf_htons(2);
	__builtin_memcpy(a->target_mac, a->sender_mac, 6);
	__builtin_memcpy(a->target, &sender, 4);
	mac_copy(a->sender_mac, mac);
	__builtin_memcpy(a->sender, &target, 4);
	__builtin_memcpy(eth->h_dest, eth->h_source, 6);
	mac_copy(eth->h_source, mac);
}

struct nd {
	__u8 type;
	__u8 code;
	__u16 check;
	__be32 flags;
	__u8 target[16] WORDS;
	__u8 option, option_len, mac[6];
};
ASSERT_SIZE(struct nd, 32);

struct na {
	struct ipv6hdr ip;
	struct nd nd;
};
ASSERT_SIZE(struct na, 72);

/* na_fill writes the advertisement that target has mac, for a solicitation from the address asker. */
static __always_inline void na_fill(struct na *m, const __u8 *asker, const __u8 *target, const volatile void *mac)
{
	const __u32 *w = (const __u32 *)asker;
	/* A probe for duplicates comes from ::, and is answered to all nodes (RFC 4861 section 7.2.4). */
	int probe = !(w[0] | w[1] | w[2] | w[3]);

	*m = (struct na){
		.ip = {.version = 6, .payload_len = bpf_htons(sizeof(m->nd)), .nexthdr = IPPROTO_ICMPV6, .hop_limit = 255},
		.nd = {.type = ND_ADVERTISEMENT,
		       .flags = bpf_htonl(NA_OVERRIDE | (probe ? 0 : NA_SOLICITED)),
		       .option = OPT_TARGET_LLADDR,
		       .option_len = 1},
	};
	words_copy4(&m->ip.saddr, target);
	words_copy4(m->nd.target, target);
	if (probe) {
		m->ip.daddr.in6_u.u6_addr32[0] = bpf_htonl(0xff020000);
		m->ip.daddr.in6_u.u6_addr32[3] = bpf_htonl(1);
	} else {
		words_copy4(&m->ip.daddr, asker);
	}
	mac_copy_half(m->nd.mac, mac);
	__u64 sum = (__u32)bpf_csum_diff(0, 0, (__be32 *)&m->ip.saddr, 32 + sizeof(m->nd), 0);

	sum += bpf_htonl(sizeof(m->nd));
	sum += bpf_htonl(IPPROTO_ICMPV6);
	m->nd.check = ~fold(sum);
}

/* na_store puts the advertisement in the place of the solicitation; not 0: the kernel refused. */
static __always_inline int na_store(struct __sk_buff *skb, const struct na *m, const volatile void *mac)
{
	__u8 macs[12] WORDS;

	if (bpf_skb_load_bytes(skb, 6, macs, 6))
		return -1;
	if (!(m->nd.flags & bpf_htonl(NA_SOLICITED))) {
		macs[0] = macs[1] = 0x33;
		macs[2] = macs[3] = macs[4] = 0;
		macs[5] = 1;
	}
	mac_copy_half(macs + 6, mac);
	if (skb->len != ETH_HLEN + sizeof(*m) && bpf_skb_change_tail(skb, ETH_HLEN + sizeof(*m), 0))
		return -1;
	if (bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0))
		return -1;
	return bpf_skb_store_bytes(skb, ETH_HLEN, m, sizeof(*m), BPF_F_RECOMPUTE_CSUM);
}
