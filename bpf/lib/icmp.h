/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* What messages of ICMP and ICMPv6 are. */
#include "parse.h"

/* <linux/icmp.h> does not compile for the BPF target. RFC 792, RFC 4443. */
#define ICMP_ECHOREPLY 0
#define ICMP_DEST_UNREACH 3
#define ICMP_ECHO 8
#define ICMP_TIME_EXCEEDED 11
#define ICMP_TIMESTAMP 13
#define ICMP_TIMESTAMPREPLY 14
#define ICMP_FRAG_NEEDED_CODE 4
#define ICMP6_UNREACH 1
#define ICMP6_TOO_BIG 2
#define ICMP6_EXCEEDED 3

#define IPV6_MIN_MTU 1280

/* icmp_is_error tells whether the packet is itself an ICMP error, or cannot be told. */
static __always_inline int icmp_is_error(struct __sk_buff *skb, const struct packet *p)
{
	__u8 type;

	if (p->family == 4 ? p->proto != IPPROTO_ICMP : p->proto != IPPROTO_ICMPV6)
		return 0;
	if (bpf_skb_load_bytes(skb, p->l4, &type, 1))
		return 1;
	if (p->family == 6)
		return type < 128;
	return type != ICMP_ECHO && type != ICMP_ECHOREPLY && type != ICMP_TIMESTAMP && type != ICMP_TIMESTAMPREPLY;
}
