/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * ARP (RFC 826) and neighbour solicitations (RFC 4861 section 7.2) for next
 * hops that Sluice serves: answered in place, with the next-hop MAC.
 */
#include "icmp_error.h"
#include "neighbor.h"

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
	if (!arp_asks(a, sender, target))
		return drop(r, DROP_NOT_A_REQUEST);
	addr_map4(asked, target);
	if (!is_served(entry, 4, asked))
		return drop(r, DROP_NOT_SERVED);
	STEP(r, STEP_ARP, 0, asked);
	struct asked *last = bpf_map_lookup_elem(&asked_v1, &entry);

	if (last && !r->trace && sender)
		last->addr4 = target;
	arp_reply(eth, a, sender, target, node.nexthop_mac);
	count_answer(r);
	return redirect(r, skb->ifindex);
}

/* nd_in takes every neighbour discovery message: they are never forwarded. */
static __noinline int nd_in(struct run *r, struct packet *p, __u32 entry)
{
	struct __sk_buff *skb = r->skb;
	__u8 target[16] WORDS;
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
	na_fill(&m, p->src.addr, target, node.nexthop_mac);

	struct asked *last = bpf_map_lookup_elem(&asked_v1, &entry);

	if (last && !r->trace && m.nd.flags & bpf_htonl(NA_SOLICITED))
		words_copy4(last->addr6, target);
	if (na_store(skb, &m, node.nexthop_mac))
		return drop(r, DROP_SHORT_FRAME);
	count_answer(r);
	return redirect(r, skb->ifindex);
}
