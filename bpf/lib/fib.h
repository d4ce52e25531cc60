/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* The kernel's own lookup of a route, as for a packet that it would forward from where this one came in. */
#include "lookup.h"

#ifndef AF_INET
#define AF_INET 2
#define AF_INET6 10
#endif

/* fib_fill asks for a packet of a length; 0: whatever its length. */
static __always_inline void fib_fill(struct run *r, const struct packet *p, struct bpf_fib_lookup *fib, __u16 length)
{
	__builtin_memset(fib, 0, sizeof(*fib));
	fib->ifindex = r->skb->ifindex;
	fib->tot_len = length;
	if (p->family == 4) {
		fib->family = AF_INET;
		fib->ipv4_src = addr_last(p->src.addr);
		fib->ipv4_dst = addr_last(p->dst.addr);
	} else {
		fib->family = AF_INET6;
		words_copy4(fib->ipv6_src, p->src.addr);
		words_copy4(fib->ipv6_dst, p->dst.addr);
	}
}

/*
 * fib_ports fills in the protocol and the ports, by which the kernel may choose among
 * several next hops, and rules select; fragments have no ports.
 */
static __always_inline void fib_ports(struct run *r, const struct packet *p, struct bpf_fib_lookup *fib)
{
	if (p->fragment != WHOLE)
		return;
	fib->l4_protocol = p->proto;
	if (has_ports(p->proto)) {
		__u32 ports = l4_ports(r->skb, p);

		fib->sport = ports;
		fib->dport = ports >> 16;
	}
}
