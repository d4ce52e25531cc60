// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * vtep_guard: the choice of a socket, of a whole network namespace. A VXLAN device
 * without tunnel metadata, as vxlan-<vni> is, takes what comes with its VNI from
 * anybody, and when a program of the device sees the packet, the outer source is
 * gone. So it is looked at where the packet is given to the socket of the UDP port.
 * A packet to a group or to all stations is given there without a choice; only
 * stations of the same link can send one, and they can take another's source, too.
 */
#include "lib/lookup.h"

/* Of the fabric; in host byte order. */
const volatile __u16 vxlan_port = 4789;

SEC("sk_lookup")
int vtep_guard(struct bpf_sk_lookup *ctx)
{
	struct vtep_key from;
	__u32 reason = DROP_UNKNOWN_VTEP;

	if (ctx->protocol != IPPROTO_UDP || ctx->local_port != vxlan_port)
		return SK_PASS;
	if (ctx->family == 2) { /* AF_INET */
		if (known_vtep4(ctx->remote_ip4, from.addr))
			return SK_PASS;
	} else {
		__u32 *words = (__u32 *)from.addr;

		words[0] = ctx->remote_ip6[0];
		words[1] = ctx->remote_ip6[1];
		words[2] = ctx->remote_ip6[2];
		words[3] = ctx->remote_ip6[3];
		if (bpf_map_lookup_elem(&vteps_v1, &from))
			return SK_PASS;
	}
	__u64 *n = bpf_map_lookup_elem(&drops_v1, &reason);

	if (n)
		(*n)++;
	return SK_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
