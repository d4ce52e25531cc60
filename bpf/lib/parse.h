/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Reading Ethernet and IP headers. */
#include "frame.h"
#include "gso.h"

#define ND_FIRST 133 /* router solicitation, RFC 4861 section 4.1 */
#define ND_LAST 137  /* redirect */

enum fragment {
	WHOLE = 0,
	FIRST_FRAGMENT = 1,
	LATER_FRAGMENT = 2,
};

/* What the programs need to know of an IP packet. Offsets are from the frame's start. */
struct packet {
	struct address src;
	struct address dst;
	__u32 l4;	/* offset of the upper-layer header */
	__u32 size;	/* of the layer-3 packet, or of a GSO packet's largest segment */
	__u8 family;	/* 4 or 6 */
	__u8 ttl;
	__u8 proto;	/* of the upper layer */
	__u8 fragment;	/* enum fragment */
	__u8 df;
};

static __always_inline void addr_map4(__u8 *to, __be32 addr)
{
	__u32 *w = (__u32 *)to;

	w[0] = 0;
	w[1] = 0;
	w[2] = bpf_htonl(0xffff);
	w[3] = addr;
}

static __always_inline void halves_map4(struct address *to, __be32 addr)
{
	__u64 *half = (__u64 *)to->addr;

	half[0] = 0;
	half[1] = (__u64)addr << 32 | bpf_htonl(0xffff);
}

static __always_inline void halves_copy(struct address *to, const void *from)
{
	__u64 *half = (__u64 *)to->addr;
	const __u64 *f = from;

	half[0] = f[0];
	half[1] = f[1];
}

static __always_inline int halves_equal(const struct address *a, const void *b)
{
	const __u64 *x = (const __u64 *)a->addr, *y = b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]));
}

static __always_inline __be32 addr_last(const __u8 *addr)
{
	return ((const __u32 *)addr)[3];
}

/*
 * An address that a router neither accepts as a source nor forwards to. Link-local
 * addresses are among them (RFC 3927 section 7): 169.254.169.254 of one tenant's
 * site must not be asked at another. pkg/intent/martian.go has the same.
 */
static __always_inline int martian4(__be32 addr)
{
	__u32 top = bpf_ntohl(addr) >> 24;

	return top == 0 || top == 127 || top >> 4 == 224 >> 4 || addr == 0xffffffff || bpf_ntohl(addr) >> 16 == 0xa9fe;
}

static __always_inline int martian6(const __u8 *addr)
{
	const __u32 *w = (const __u32 *)addr;
	__u32 top = bpf_ntohl(w[0]);

	if (top >> 24 == 0xff || top >> 22 == 0xfe80 >> 6)
		return 1;
	/* ::, ::1, and IPv4-compatible and IPv4-mapped addresses. */
	return top == 0 && w[1] == 0 && (w[2] == 0 || w[2] == bpf_htonl(0xffff));
}

/*
 * upper6 follows IPv6 extension headers (RFC 8200 section 4) to the upper
 * layer. It returns proto | fragment << 8 | l4 << 16, or -1.
 */
static __noinline int upper6(struct __sk_buff *skb, __u32 next)
{
	__u32 off = ETH_HLEN + sizeof(struct ipv6hdr);
	__u32 fragment = WHOLE;
	struct {
		__u8 next;
		__u8 len;
		__be16 offset;
	} h;

	for (int i = 0; i < 8; i++) {
		__u32 len = 8;

		switch (next) {
		case IPPROTO_FRAGMENT:
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
		case IPPROTO_AH:
			break;
		default:
			return next | fragment << 8 | off << 16;
		}
		if (bpf_skb_load_bytes(skb, off, &h, sizeof(h)))
			return -1;
		if (next == IPPROTO_FRAGMENT) {
			if (h.offset & bpf_htons(0xfff8))
				/* What follows is payload. */
				return h.next | LATER_FRAGMENT << 8 | (off + 8) << 16;
			if (h.offset & bpf_htons(1))
				fragment = FIRST_FRAGMENT;
		} else if (next == IPPROTO_AH) {
			len = (h.len + 2) * 4;
		} else {
			len = (h.len + 1) * 8;
		}
		next = h.next;
		off += len;
	}
	return -1;
}

static __always_inline int has_ports(__u32 proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP;
}

/* l4_at is the upper layer's header where so much of it is at hand; 0: it is not. */
static __always_inline void *l4_at(struct __sk_buff *skb, const struct packet *p, __u32 len)
{
	void *data = PACKET_POINTER(skb, data);
	__u32 l4 = p->l4;

	barrier_var(l4);
	l4 &= 0xff; /* for the verifier */
	return l4 == p->l4 && data + l4 + len <= PACKET_POINTER(skb, data_end) ? data + l4 : 0;
}

/*
 * l4_ports are the first four bytes of the upper layer: source and destination
 * port, in wire order. They are read in place where they are at hand, since
 * bpf_skb_load_bytes costs a call. 0 when the packet ends before.
 */
static __always_inline __u32 l4_ports(struct __sk_buff *skb, const struct packet *p)
{
	__u32 ports = 0, *at = l4_at(skb, p, sizeof(ports));

	if (at)
		return *at;
	bpf_skb_load_bytes(skb, p->l4, &ports, sizeof(ports));
	return ports;
}

/* parse4 returns 0 or a drop reason. Both addresses are checked. */
static __always_inline __u32 parse4(struct __sk_buff *skb, struct packet *p)
{
	void *data = frame(skb, ETH_HLEN + sizeof(struct iphdr));

	if (!data)
		return DROP_SHORT_FRAME;
	struct iphdr *ip = data + ETH_HLEN;
	__u32 hlen = ip->ihl * 4;
	__u32 size = bpf_ntohs(ip->tot_len);
	__u16 frag = bpf_ntohs(ip->frag_off);

	if (ip->version != 4 || hlen < sizeof(*ip))
		return DROP_MALFORMED_IP;
	p->family = 4;
	p->ttl = ip->ttl;
	p->proto = ip->protocol;
	p->df = !!(frag & IP_DF);
	p->fragment = !(frag & IP_MF_OR_OFFSET) ? WHOLE : frag & IP_OFFSET ? LATER_FRAGMENT : FIRST_FRAGMENT;
	p->l4 = ETH_HLEN + hlen;
	halves_map4(&p->src, ip->saddr);
	halves_map4(&p->dst, ip->daddr);
	if (skb->gso_size) {
		/* tot_len of a GSO packet may be 0 (longer than 64 KiB). */
		p->size = gso_segment(skb, p->l4, p->proto);
	} else {
		if (size < hlen)
			return DROP_MALFORMED_IP;
		if (ETH_HLEN + size > skb->len)
			return DROP_SHORT_FRAME;
		p->size = skb->len - ETH_HLEN;
	}
	/* Nobody sends from the address that he sends to. */
	return martian4(ip->saddr) || martian4(ip->daddr) || ip->saddr == ip->daddr ? DROP_MARTIAN : DROP_NONE;
}

/* parse6 returns 0 or a drop reason. Of the addresses it checks only that they differ: see check6. */
static __always_inline __u32 parse6(struct __sk_buff *skb, struct packet *p)
{
	void *data = frame(skb, ETH_HLEN + sizeof(struct ipv6hdr));

	if (!data)
		return DROP_SHORT_FRAME;
	struct ipv6hdr *ip = data + ETH_HLEN;
	__u32 size = sizeof(*ip) + bpf_ntohs(ip->payload_len);

	if (ip->version != 6)
		return DROP_MALFORMED_IP;
	p->family = 6;
	p->ttl = ip->hop_limit;
	p->df = 1; /* RFC 8200 section 4.5: routers do not fragment */
	p->fragment = WHOLE;
	p->l4 = ETH_HLEN + sizeof(*ip);
	p->proto = ip->nexthdr;
	halves_copy(&p->src, &ip->saddr);
	halves_copy(&p->dst, &ip->daddr);
	const __u64 *s = (const __u64 *)&ip->saddr;
	const __u64 *d = (const __u64 *)&ip->daddr;

	if (!((s[0] ^ d[0]) | (s[1] ^ d[1])))
		return DROP_MARTIAN;
	if (!skb->gso_size && ETH_HLEN + size > skb->len)
		return DROP_SHORT_FRAME;
	if (extension6(p->proto)) {
		int upper = upper6(skb, p->proto);

		if (upper < 0)
			return DROP_MALFORMED_IP;
		p->proto = upper & 0xff;
		p->fragment = upper >> 8 & 0xff;
		p->l4 = (__u32)upper >> 16;
	}
	p->size = skb->gso_size ? gso_segment(skb, p->l4, p->proto) : skb->len - ETH_HLEN;
	return DROP_NONE;
}

static __always_inline __u32 check6(const struct packet *p)
{
	return martian6(p->src.addr) || martian6(p->dst.addr) ? DROP_MARTIAN : DROP_NONE;
}
