/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Packets that stand for many (GSO): how many they become, and how large. */
#include "run.h"

#include <bpf/bpf_endian.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/udp.h>

#define GSO_BY_FRAGS 0xffff /* <linux/skbuff.h>: the segments are of any size, as SCTP's */
#define SCTP_HEADER 12

#define VXLAN_PORT 4789	      /* RFC 7348 */
#define VXLAN_PORT_LINUX 8472 /* what Linux takes when it is told nothing */
#define GENEVE_PORT 6081      /* RFC 8926 */
#define TUNNEL_HEADER 16      /* UDP, and VXLAN or Geneve without its options */

/* gso_segments is the number of packets that a GSO packet becomes. That of a VM may come without it. */
static __always_inline __u32 gso_segments(const struct __sk_buff *skb, __u32 header)
{
	__u32 segments = skb->gso_segs, size = skb->gso_size, len = skb->len - ETH_HLEN;

	if (!segments && size && size != GSO_BY_FRAGS && len > header)
		segments = (len - header + size - 1) / size;
	return segments ? segments : 1;
}

/* gso_packets is what a GSO packet becomes, each packet with its headers; size is that of the largest. */
static __always_inline __u32 gso_packets(const struct __sk_buff *skb, __u32 size, __u32 *bytes)
{
	__u32 header = size > skb->gso_size ? size - skb->gso_size : 0;
	__u32 packets = gso_segments(skb, header);

	*bytes = skb->len - ETH_HLEN + (packets - 1) * header;
	return packets;
}

/*
 * gso_inside looks into a tunnel of the tenant's: the kernel cuts up the packet in
 * it, and each piece has the headers of both. skb tells nothing of that kind, so
 * VXLAN and Geneve are known by their ports. It returns proto | l4 << 8 of the
 * packet inside, or 0.
 */
static __noinline __u32 gso_inside(struct __sk_buff *skb, __u32 l4, __u32 proto)
{
	__u8 h[12] WORDS;
	__be16 type = 0, port;

	switch (proto) {
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
		break;
	case IPPROTO_GRE:
		if (bpf_skb_load_bytes(skb, l4, h, 4))
			return 0;
		type = *(__be16 *)(h + 2);
		/* Checksum, key, sequence number: RFC 2784, RFC 2890. */
		l4 += 4 + (h[0] >> 7 & 1) * 4 + (h[0] >> 5 & 1) * 4 + (h[0] >> 4 & 1) * 4;
		break;
	case IPPROTO_UDP:
		if (bpf_skb_load_bytes(skb, l4, h, 12))
			return 0;
		port = *(__be16 *)(h + 2);
		if (port == bpf_htons(VXLAN_PORT) || port == bpf_htons(VXLAN_PORT_LINUX)) {
			type = bpf_htons(ETH_P_TEB);
		} else if (port == bpf_htons(GENEVE_PORT)) {
			type = *(__be16 *)(h + 10);
			l4 += (h[8] & 0x3f) * 4;
		} else {
			return 0;
		}
		l4 += TUNNEL_HEADER;
		break;
	default:
		return 0;
	}
	if (type == bpf_htons(ETH_P_TEB)) {
		if (bpf_skb_load_bytes(skb, l4 + 12, &type, 2))
			return 0;
		l4 += type == bpf_htons(ETH_P_8021Q) ? ETH_HLEN + 4 : ETH_HLEN;
	}
	if (bpf_skb_load_bytes(skb, l4, h, 10))
		return 0;
	if (h[0] >> 4 == 4)
		return h[9] | (l4 + (h[0] & 0xf) * 4) << 8;
	if (h[0] >> 4 == 6)
		return h[6] | (l4 + 40) << 8;
	return 0;
}

/*
 * gso_segment is the size of the largest layer-3 packet that a GSO packet
 * becomes: its headers and gso_size. Of SCTP only the mean size is known.
 */
static __noinline __u32 gso_segment(struct __sk_buff *skb, __u32 l4, __u32 proto)
{
	__u8 doff = 0;
	__u32 header = sizeof(struct udphdr);
	__u32 inside = gso_inside(skb, l4, proto);

	if (inside) {
		proto = inside & 0xff;
		l4 = inside >> 8;
	}
	if (proto == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, l4 + 12, &doff, 1))
			return skb->len - ETH_HLEN;
		header = (doff >> 4) * 4;
	}
	if (skb->gso_size == GSO_BY_FRAGS) {
		__u32 segments = gso_segments(skb, 0);

		header = l4 - ETH_HLEN + SCTP_HEADER;
		return header + (skb->len - ETH_HLEN - header + segments - 1) / segments;
	}
	return l4 - ETH_HLEN + header + skb->gso_size;
}
