/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* What is done to a packet on its way out: TTL, MAC addresses, VLAN tag, tunnel key. */
#include "lookup.h"

/* Outer headers: IP, UDP, VXLAN and the inner Ethernet header. */
#define OVERHEAD4 (20 + 8 + 8 + ETH_HLEN)
#define OVERHEAD6 (40 + 8 + 8 + ETH_HLEN)
#define OUTER_TTL 64

/*
 * hop writes the MAC addresses and takes one off the TTL. A checksum over the
 * whole packet that the NIC delivered (CHECKSUM_COMPLETE) stays right: it does
 * not cover the Ethernet header, an IPv4 TTL and its header checksum cancel
 * out, and the hop limit is accounted for with bpf_csum_update, which does
 * nothing for other kinds of checksum.
 */
static __always_inline __u32 hop(struct __sk_buff *skb, const struct packet *p, const volatile void *src,
				 const volatile void *dst)
{
	void *data = frame(skb, ETH_HLEN + sizeof(struct iphdr));

	if (!data)
		return DROP_SHORT_FRAME;
	struct ethhdr *eth = data;

	mac_copy(eth->h_dest, dst);
	mac_copy(eth->h_source, src);
	if (p->family == 4) {
		struct iphdr *ip = data + ETH_HLEN;
		__u32 sum = ip->check + bpf_htons(0x0100); /* RFC 1141 */

		ip->ttl--;
		ip->check = sum + (sum >> 16);
	} else {
		struct ipv6hdr *ip = data + ETH_HLEN;

		ip->hop_limit--;
		/* Of the 16-bit word that it is in: the complement of the old one, and the new one (RFC 1624). */
		bpf_csum_update(skb, bpf_htons(0xffff - 1));
	}
	return DROP_NONE;
}

/* set_vlan makes the tag what vlan says: 0 for none. */
static __always_inline __u32 set_vlan(struct __sk_buff *skb, __u16 vlan)
{
	if (skb->vlan_present) {
		if (vlan && (skb->vlan_tci & 0xfff) == vlan)
			return DROP_NONE;
		if (bpf_skb_vlan_pop(skb))
			return DROP_VLAN_EDIT;
	}
	if (vlan && bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), vlan))
		return DROP_VLAN_EDIT;
	return DROP_NONE;
}

/* count_gso counts what a GSO packet becomes. */
static __noinline void count_gso(struct __sk_buff *skb, struct counter *c, __u32 size)
{
	__u32 bytes;

	c->packets += gso_packets(skb, size, &bytes);
	c->bytes += bytes;
}

/* count_forwarded counts layer-3 packets as they are on a wire. */
static __always_inline void count_forwarded(struct run *r, const struct packet *p)
{
	struct counter *c = r->trace ? 0 : counter_of(r);

	if (!c)
		return;
	if (r->skb->gso_size) {
		count_gso(r->skb, c, p->size);
		return;
	}
	c->packets++;
	c->bytes += r->skb->len - ETH_HLEN;
}

/* to_entry sends the packet into OVN as coming from the next hop. */
static __always_inline int to_entry(struct run *r, struct packet *p, const struct entry *e)
{
	__u32 reason = hop(r->skb, p, node.nexthop_mac, e->mac);

	if (!reason)
		reason = set_vlan(r->skb, e->vlan);
	if (reason)
		return drop(r, reason);
	count_forwarded(r, p);
	return redirect(r, e->ifindex);
}

static __always_inline int has_vtep6(void)
{
	const volatile __u32 *w = (const volatile __u32 *)node.vtep6;

	return (w[0] | w[1] | w[2] | w[3]) != 0;
}

/* set_tunnel writes the tunnel key: all that an external-mode device would ignore of its own. */
static __always_inline __u32 set_tunnel(struct __sk_buff *skb, const struct nexthop *h, int df, __u8 ttl)
{
	/* Aligned, so that it is zeroed in few words. */
	struct bpf_tunnel_key key __attribute__((aligned(8))) = {.tunnel_id = h->vni, .tunnel_ttl = ttl};
	__u64 flags = 0;

	if (h->family == 4) {
		if (!node.vtep4)
			return DROP_TUNNEL_KEY;
		key.remote_ipv4 = bpf_ntohl(addr_last(h->vtep));
		key.local_ipv4 = bpf_ntohl(node.vtep4);
	} else {
		if (!has_vtep6())
			return DROP_TUNNEL_KEY;
		const volatile __u32 *w = (const volatile __u32 *)node.vtep6;

		words_copy4(key.remote_ipv6, h->vtep);
		key.local_ipv6[0] = w[0];
		key.local_ipv6[1] = w[1];
		key.local_ipv6[2] = w[2];
		key.local_ipv6[3] = w[3];
		flags |= BPF_F_TUNINFO_IPV6;
	}
	if (df)
		flags |= BPF_F_DONT_FRAGMENT;
	if (node.zero_csum)
		flags |= BPF_F_ZERO_CSUM_TX;
	return bpf_skb_set_tunnel_key(skb, &key, sizeof(key), flags) ? DROP_TUNNEL_KEY : DROP_NONE;
}

/*
 * nexthop_mtu is the largest inner packet for a next hop, as far as it matters to one of
 * this size: a packet that fits the narrowest path of all needs no look at its own.
 */
static __always_inline __u32 nexthop_mtu(const struct nexthop *h, __u32 size)
{
	__u32 overhead = h->family == 4 ? OVERHEAD4 : OVERHEAD6;
	__u32 mtu = node.underlay_mtu, zero = 0;
	const volatile struct path_mtu *least = bpf_map_lookup_elem(&path_least_v1, &zero);

	if (least && size + overhead > least->mtu && least->mtu) {
		const volatile struct path_mtu *own = bpf_map_lookup_elem(&path_mtus_v1, h->vtep);

		/* A row is changed in place: it is to be read once. */
		__u32 narrow = own ? own->mtu : mtu;

		if (narrow < mtu)
			mtu = narrow;
	}
	return mtu - overhead;
}
