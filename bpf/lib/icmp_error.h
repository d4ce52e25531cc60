/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * ICMP and ICMPv6 errors, made out of the packet that caused them.
 *
 * Rules (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4): none in answer to an
 * ICMP error, to a later fragment or to a packet whose source is bogus; the
 * rate is limited. Multicast and broadcast never get here: they are martians.
 */
#include "forward.h"
#include "icmp.h"

#define QUOTE 128 /* at most so much of the packet is sent back */
#define ICMP4_LEN (sizeof(struct iphdr) + 8)
#define ICMP6_LEN (sizeof(struct ipv6hdr) + 8)

struct icmp_error {
	__u8 src[16] WORDS; /* our address */
	__u8 dst[16] WORDS; /* the source of the packet */
	__u32 l4;
	__u32 mtu; /* for too big, else 0 */
	__u8 family;
	__u8 type;
	__u8 code;
	__u8 proto;
};

struct error4 {
	struct iphdr ip;
	__u8 type, code;
	__u16 check;
	__u16 unused;
	__be16 mtu;
};

struct error6 {
	struct ipv6hdr ip;
	__u8 type, code;
	__u16 check;
	__be32 mtu;
};

/* header4 fills in the headers; quote is the quote's length and sum its checksum. */
static __always_inline void header4(struct error4 *h, const struct icmp_error *e, __u32 quote, __u64 sum)
{
	*h = (struct error4){
		.ip = {.version = 4,
		       .ihl = 5,
		       .tos = 0xc0, /* RFC 1812 section 4.3.2.5 */
		       .tot_len = bpf_htons(ICMP4_LEN + quote),
		       .frag_off = bpf_htons(IP_DF),
		       .ttl = 64,
		       .protocol = IPPROTO_ICMP,
		       .saddr = addr_last(e->src),
		       .daddr = addr_last(e->dst)},
		.type = e->type,
		.code = e->code,
		.mtu = bpf_htons(e->mtu),
	};
	h->ip.check = ~fold(bpf_csum_diff(0, 0, (__be32 *)&h->ip, sizeof(h->ip), 0));
	h->check = ~fold(sum + (__u32)bpf_csum_diff(0, 0, (__be32 *)&h->type, 8, 0));
}

static __always_inline void header6(struct error6 *h, const struct icmp_error *e, __u32 quote, __u64 sum)
{
	*h = (struct error6){
		.ip = {.version = 6,
		       .payload_len = bpf_htons(8 + quote),
		       .nexthdr = IPPROTO_ICMPV6,
		       .hop_limit = 64},
		.type = e->type,
		.code = e->code,
		.mtu = bpf_htonl(e->mtu),
	};
	words_copy4(&h->ip.saddr, e->src);
	words_copy4(&h->ip.daddr, e->dst);
	sum += (__u32)bpf_csum_diff(0, 0, (__be32 *)&h->ip.saddr, 32, 0);
	sum += bpf_htonl(8 + quote);
	sum += bpf_htonl(IPPROTO_ICMPV6);
	h->check = ~fold(sum + (__u32)bpf_csum_diff(0, 0, (__be32 *)&h->type, 8, 0));
}

/*
 * store_headers writes the headers behind the Ethernet header. They are built
 * where the quote was: the stack is 512 bytes for all nested calls.
 */
static __always_inline int store_headers(struct __sk_buff *skb, const struct icmp_error *e, __u8 *quoted, __u32 quote,
					 __u64 sum)
{
	if (e->family == 4) {
		header4((struct error4 *)quoted, e, quote, sum);
		return bpf_skb_store_bytes(skb, ETH_HLEN, quoted, sizeof(struct error4), BPF_F_RECOMPUTE_CSUM);
	}
	header6((struct error6 *)quoted, e, quote, sum);
	return bpf_skb_store_bytes(skb, ETH_HLEN, quoted, sizeof(struct error6), BPF_F_RECOMPUTE_CSUM);
}

/*
 * icmp_of_partial builds the error when the packet's own TCP or UDP checksum is
 * still to be filled in (CHECKSUM_PARTIAL): the place of that checksum cannot
 * be cut off, and it will be filled in inside the quote, on the way out. The
 * quote stays where it is in memory, new headers go before it, and the sum of
 * the part that will change is known beforehand: with p what the field holds
 * now, the bytes from csum_start to the end will add up to ~p.
 *
 * Of a tunnel of the tenant's the field is that of the packet inside, whether the
 * outer UDP header has no checksum or one that takes the inner one into account
 * (local checksum offload). skb does not tell, but the kernel lets nothing be cut
 * off that is before the end of the field: there is no error about such a packet.
 */
static __always_inline int icmp_of_partial(struct __sk_buff *skb, const struct icmp_error *e, __u8 *quoted, __u32 quote)
{
	__u16 pseudo = 0;

	if (e->proto != IPPROTO_TCP && e->proto != IPPROTO_UDP)
		return -1;
	if (bpf_skb_change_tail(skb, e->l4 + (e->proto == IPPROTO_TCP ? 18 : 8), 0))
		return -1;
	if (bpf_skb_load_bytes(skb, e->l4 + (e->proto == IPPROTO_TCP ? 16 : 6), &pseudo, 2))
		return -1;
	__u32 upper = e->l4 - ETH_HLEN;

	/* For the verifier: bounds that it sees on the very register that it checks. */
	barrier_var(upper);
	upper &= 0x7c;
	if (upper < sizeof(struct iphdr) || upper != e->l4 - ETH_HLEN)
		return -1;
	__u64 sum = (__u32)bpf_csum_diff(0, 0, (__be32 *)quoted, upper, 0) + (__u64)(__u16)~pseudo;

	if (bpf_skb_change_tail(skb, ETH_HLEN + quote, 0) || bpf_skb_store_bytes(skb, ETH_HLEN, quoted, quote, 0))
		return -1;
	__u32 room = e->family == 4 ? ICMP4_LEN : ICMP6_LEN;

	if (bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET))
		return -1;
	return store_headers(skb, e, quoted, quote, sum);
}

/*
 * icmp_build turns the packet into the error about it. It first cuts off
 * everything after the IP header: the kernel refuses exactly that for a packet
 * whose checksum is still to be filled in (see icmp_of_partial).
 */
static __noinline int icmp_build(struct __sk_buff *skb, const struct icmp_error *e)
{
	__u8 quoted[QUOTE] WORDS = {};
	__u32 room = e->family == 4 ? ICMP4_LEN : ICMP6_LEN;
	__u32 quote = skb->len - ETH_HLEN;

	if (quote > QUOTE)
		quote = QUOTE;
	/* Kernel 6.1 wants the lower bound on the very register. */
	barrier_var(quote);
	if (quote < sizeof(struct iphdr) || bpf_skb_load_bytes(skb, ETH_HLEN, quoted, quote))
		return -1;
	if (e->l4 < skb->len && bpf_skb_change_tail(skb, e->l4, 0))
		return icmp_of_partial(skb, e, quoted, quote);
	if (bpf_skb_change_tail(skb, ETH_HLEN + room + quote, 0))
		return -1;
	__u64 sum = (__u32)bpf_csum_diff(0, 0, (__be32 *)quoted, QUOTE, 0);

	if (bpf_skb_store_bytes(skb, ETH_HLEN + room, quoted, quote, BPF_F_RECOMPUTE_CSUM))
		return -1;
	return store_headers(skb, e, quoted, quote, sum);
}

/* icmp_fill decides type and code by the drop reason. */
static __always_inline void icmp_fill(struct icmp_error *e, const struct packet *p, __u32 reason, __u32 mtu)
{
	e->family = p->family;
	e->proto = p->proto;
	e->l4 = p->l4;
	e->mtu = 0;
	words_copy4(e->dst, p->src.addr);
	switch (reason) {
	case DROP_TTL_EXPIRED:
		e->type = p->family == 4 ? ICMP_TIME_EXCEEDED : ICMP6_EXCEEDED;
		e->code = 0;
		break;
	case DROP_TOO_BIG:
		e->type = p->family == 4 ? ICMP_DEST_UNREACH : ICMP6_TOO_BIG;
		e->code = p->family == 4 ? ICMP_FRAG_NEEDED_CODE : 0;
		/* A host takes no smaller one for true (RFC 8201 section 4): up to there it is fragmented outside. */
		e->mtu = p->family == 6 && mtu < IPV6_MIN_MTU ? IPV6_MIN_MTU : mtu;
		break;
	default:
		/* Network unreachable (RFC 792), no route to destination (RFC 4443). */
		e->type = p->family == 4 ? ICMP_DEST_UNREACH : ICMP6_UNREACH;
		e->code = 0;
	}
}

/* icmp_allowed is the last question before an error is built; 0 or an enum icmp_refusal. */
static __always_inline __u32 icmp_allowed(struct run *r, const struct packet *p)
{
	if (p->fragment == LATER_FRAGMENT)
		return REFUSED_FRAGMENT;
	if (icmp_is_error(r->skb, p))
		return REFUSED_IS_ERROR;
	if (!r->trace && !take_token(r->index * 2 + r->direction, node.icmp_interval, node.icmp_burst))
		return REFUSED_RATE;
	return 0;
}

static __always_inline int icmp_refuse(struct run *r, __u32 why)
{
	STEP(r, STEP_NO_ICMP, why, 0);
	return TC_ACT_SHOT;
}

static __always_inline int set_macs(struct __sk_buff *skb, const volatile void *src, const volatile void *dst)
{
	void *data = frame(skb, ETH_HLEN);

	if (!data)
		return -1;
	mac_copy(((struct ethhdr *)data)->h_dest, dst);
	mac_copy(((struct ethhdr *)data)->h_source, src);
	return 0;
}
