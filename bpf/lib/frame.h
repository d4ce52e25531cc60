/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* The bytes of a frame, and what its headers mean: nothing that knows a map. */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

#define IP_DF 0x4000
#define IP_MF_OR_OFFSET 0x3fff
#define IP_OFFSET 0x1fff

/* Loads that the compiler neither joins nor narrows: the verifier follows packet pointers only so. */
#define PACKET_POINTER(skb, field)                                      \
	({                                                              \
		void *pointer_;                                         \
		asm volatile("%0 = *(u32 *)(%1 + %2)"                   \
			     : "=r"(pointer_)                           \
			     : "r"(skb), "i"(__builtin_offsetof(struct __sk_buff, field))); \
		pointer_;                                               \
	})

/*
 * An address in 16 bytes. It is written in the halves that it is read in: a load
 * that spans two stores waits for both.
 */
struct address {
	__u8 addr[16] __attribute__((aligned(8)));
};

/* frame makes the first len bytes readable and writable directly. */
static __always_inline void *frame(struct __sk_buff *skb, __u32 len)
{
	void *data = PACKET_POINTER(skb, data);

	if (data + len <= PACKET_POINTER(skb, data_end))
		return data;
	if (skb->len < len || bpf_skb_pull_data(skb, len))
		return 0;
	data = PACKET_POINTER(skb, data);
	if (data + len <= PACKET_POINTER(skb, data_end))
		return data;
	return 0;
}

static __always_inline __u32 vlan_of(const struct __sk_buff *skb)
{
	return skb->vlan_present ? skb->vlan_tci & 0xfff : 0;
}

static __always_inline void words_copy4(void *to, const void *from)
{
	__u32 *t = to;
	const __u32 *f = from;

	t[0] = f[0];
	t[1] = f[1];
	t[2] = f[2];
	t[3] = f[3];
}

/* Headers between that of IPv6 and the upper layer (RFC 8200 section 4). */
static __always_inline int extension6(__u32 next)
{
	return next == IPPROTO_FRAGMENT || next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING ||
	       next == IPPROTO_DSTOPTS || next == IPPROTO_AH;
}

/* fold makes a checksum of a sum. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return sum;
}
