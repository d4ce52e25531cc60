/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * ARP (RFC 826) and neighbour solicitations (RFC 4861 section 7.2) for next
 * hops that Sluice serves: answered in place, with the next-hop MAC.
 */
#include "icmp.h"

#define ALL_NODES_MAC_TOP 0x3333
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

struct nd {
	__u8 type;
	__u8 code;
	__u16 check;
	__be32 flags;
	__u8 target[16] WORDS;
	__u8 option, option_len, mac[6];
};
ASSERT_SIZE(struct nd, 32);

/*
 * is_served: what the entry's own rows say of the address, and that no known
 * port on its device and VLAN has it. addr has 16 bytes, IPv4 as IPv4-mapped.
 */
static __always_inline int is_served(__u32 entry, __u32 family, const __u8 *addr)
{
	struct served_key k = {.entry = entry, .family = family, .prefixlen = family == 4 ? 96 : 192};

	if (family == 4)
		__builtin_memcpy(k.addr, addr + 12, 4);
	else
		__builtin_memcpy(k.addr, addr, 16);
	struct served *s = bpf_map_lookup_elem(&served_v1, &k);

	if (!s || s->answer != SERVED_ALL)
		return s && s->answer;
	struct entry *e = bpf_map_lookup_elem(&entries_v1, &entry);

	if (!e)
		return 0;
	struct known_key known = {.ifindex = e->ifindex, .vlan = e->vlan};

	words_copy4(known.addr, addr);
	return !bpf_map_lookup_elem(&known_v1, &known);
}

static __noinline int arp_in(struct run *r, __u32 entry)
{
	struct __sk_buff *skb = r->skb;
	void *data = frame(skb, ETH_HLEN + sizeof(struct arp));

	if (!data)
		return drop(r, DROP_SHORT_FRAME);
	struct ethhdr *eth = data;
	struct arp *a = data + ETH_HLEN;
	__be32 sender, target;
	__u8 asked[16] WORDS;

	__builtin_memcpy(&sender, a->sender, 4);
	__builtin_memcpy(&target, a->target, 4);
	if (a->hardware != bpf_htons(1) || a->protocol != bpf_htons(ETH_P_IP) || a->hardware_len != 6 ||
	    a->protocol_len != 4 || a->op != bpf_htons(1) || sender == target)
		return drop(r, DROP_NOT_A_REQUEST);
	addr_map4(asked, target);
	if (!is_served(entry, 4, asked))
		return drop(r, DROP_NOT_SERVED);
	STEP(r, STEP_ARP, 0, asked);
	struct asked *last = bpf_map_lookup_elem(&asked_v1, &entry);

	if (last && !r->trace && sender)
		last->addr4 = target;
	a->op = bpf_htons(2);
	__builtin_memcpy(a->target_mac, a->sender_mac, 6);
	__builtin_memcpy(a->target, &sender, 4);
	mac_copy(a->sender_mac, node.nexthop_mac);
	__builtin_memcpy(a->sender, &target, 4);
	__builtin_memcpy(eth->h_dest, eth->h_source, 6);
	mac_copy(eth->h_source, node.nexthop_mac);
	count_answer(r);
	return redirect(r, skb->ifindex);
}

struct na {
	struct ipv6hdr ip;
	struct nd nd;
};
ASSERT_SIZE(struct na, 72);

/* na_fill writes the advertisement for a solicitation from the address asker. */
static __always_inline void na_fill(struct na *m, const __u8 *asker, const __u8 *target)
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
	mac_copy_half(m->nd.mac, node.nexthop_mac);
	__u64 sum = (__u32)bpf_csum_diff(0, 0, (__be32 *)&m->ip.saddr, 32 + sizeof(m->nd), 0);

	sum += bpf_htonl(sizeof(m->nd));
	sum += bpf_htonl(IPPROTO_ICMPV6);
	m->nd.check = ~fold(sum);
}

/* nd_in takes every neighbour discovery message: they are never forwarded. */
static __noinline int nd_in(struct run *r, struct packet *p, __u32 entry)
{
	struct __sk_buff *skb = r->skb;
	__u8 target[16] WORDS;
	__u8 macs[12] WORDS;
	struct na m;
	struct {
		__u8 type, code;
	} h;

	if (bpf_skb_load_bytes(skb, p->l4, &h, 2) || bpf_skb_load_bytes(skb, p->l4 + 8, target, 16))
		return drop(r, DROP_SHORT_FRAME);
	if (h.type != ND_SOLICITATION || h.code != 0 || p->ttl != 255 || p->l4 != ETH_HLEN + sizeof(struct ipv6hdr) ||
	    target[0] == 0xff)
		return drop(r, DROP_NOT_A_REQUEST);
	if (!is_served(entry, 6, target))
		return drop(r, DROP_NOT_SERVED);
	STEP(r, STEP_ND, 0, target);
	na_fill(&m, p->src.addr, target);

	struct asked *last = bpf_map_lookup_elem(&asked_v1, &entry);

	if (last && !r->trace && m.nd.flags & bpf_htonl(NA_SOLICITED))
		words_copy4(last->addr6, target);
	if (bpf_skb_load_bytes(skb, 6, macs, 6))
		return drop(r, DROP_SHORT_FRAME);
	if (!(m.nd.flags & bpf_htonl(NA_SOLICITED))) {
		macs[0] = macs[1] = 0x33;
		macs[2] = macs[3] = macs[4] = 0;
		macs[5] = 1;
	}
	mac_copy_half(macs + 6, node.nexthop_mac);
	if (skb->len != ETH_HLEN + sizeof(m) && bpf_skb_change_tail(skb, ETH_HLEN + sizeof(m), 0))
		return drop(r, DROP_SHORT_FRAME);
	if (bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, &m, sizeof(m), BPF_F_RECOMPUTE_CSUM))
		return drop(r, DROP_SHORT_FRAME);
	count_answer(r);
	return redirect(r, skb->ifindex);
}
