// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * trace: the wrapper that test runs go through. It puts on the packet what
 * PROG_TEST_RUN cannot give it (a tunnel key, a VLAN tag), switches trace mode
 * on when the scratch map holds a nonce, and tail-calls the live program. It is
 * never attached.
 */
#include "lib/run.h"

#include <bpf/bpf_endian.h>
#include <linux/if_ether.h>

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32); /* Program of dataplane/ebpf */
	__type(value, __u32);
} live SEC(".maps");

static __always_inline int put_tunnel_key(struct __sk_buff *skb, const struct trace *t)
{
	struct bpf_tunnel_key key = {.tunnel_id = t->vni, .tunnel_ttl = 64};
	const __u32 *w = (const __u32 *)t->remote;

	/* What one sets as the local address, the getter reads as the remote one: the key is the sender's. */
	if (t->family == 4) {
		key.local_ipv4 = bpf_ntohl(w[0]);
		return bpf_skb_set_tunnel_key(skb, &key, sizeof(key), 0);
	}
	key.local_ipv6[0] = w[0];
	key.local_ipv6[1] = w[1];
	key.local_ipv6[2] = w[2];
	key.local_ipv6[3] = w[3];
	return bpf_skb_set_tunnel_key(skb, &key, sizeof(key), BPF_F_TUNINFO_IPV6);
}

SEC("tc")
int trace(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct trace *t = bpf_map_lookup_elem(&trace_v1, &zero);

	if (!t)
		return TC_ACT_SHOT;
	if (t->family && put_tunnel_key(skb, t))
		return TC_ACT_SHOT;
	if (t->vlan && bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), t->vlan))
		return TC_ACT_SHOT;
	if (t->nonce) {
		skb->cb[0] = TRACE_MAGIC;
		skb->cb[1] = (__u32)t->nonce;
		skb->cb[2] = (__u32)(t->nonce >> 32);
	}
	bpf_tail_call(skb, &live, t->program);
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
