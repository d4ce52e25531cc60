// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * client_in: ingress of a machine's tap. What the machine sends to a VIP of its switch
 * goes on to a backend, and questions for the MAC address of a VIP that nobody else has are
 * answered. All else goes on as it came: to other programs of the tap, and to Open vSwitch.
 */
#define CLIENT
#include "lib/client.h"
#include "lib/neighbor.h"
#include "lib/vip_echo.h"
#include "lib/vip_error.h"

/* answering is the row of an address whose MAC address is to be told; 0: not by us. */
static __always_inline const struct neighbor *answering(const struct run *r, const struct address *a)
{
	const struct neighbor *n = neighbor_of(r, a);

	return n && n->flags & NEIGHBOR_ANSWER ? n : 0;
}

/* arp_request takes requests for addresses of VIPs. */
static __noinline int arp_request(struct run *r)
{
	void *data = frame(r->skb, ETH_HLEN + sizeof(struct arp));

	if (!data)
		return TC_ACT_UNSPEC;
	struct arp *a = data + ETH_HLEN;
	struct address asked;
	__be32 sender, target;

	__builtin_memcpy(&sender, a->sender, 4);
	__builtin_memcpy(&target, a->target, 4);
	if (!arp_asks(a, sender, target))
		return TC_ACT_UNSPEC;
	halves_map4(&asked, target);
	const struct neighbor *n = answering(r, &asked);

	if (!n)
		return TC_ACT_UNSPEC;
	arp_reply(data, a, sender, target, n->mac);
	count_answer(r);
	return redirect(r, r->skb->ifindex);
}

/* solicitation takes those for addresses of VIPs (RFC 4861 section 7.1.1). */
static __noinline int solicitation(struct run *r)
{
	__u32 at = ETH_HLEN + sizeof(struct ipv6hdr);
	void *data = frame(r->skb, at + 24);

	if (!data)
		return TC_ACT_UNSPEC;
	struct ipv6hdr *ip = data + ETH_HLEN;
	const __u8 *icmp = data + at;
	struct address asker, target;

	if (ip->version != 6 || ip->nexthdr != IPPROTO_ICMPV6 || ip->hop_limit != 255 || icmp[0] != ND_SOLICITATION || icmp[1])
		return TC_ACT_UNSPEC;
	words_copy4(asker.addr, &ip->saddr);
	words_copy4(target.addr, icmp + 8);
	if (asker.addr[0] == 0xff)
		return TC_ACT_UNSPEC;
	const struct neighbor *n = answering(r, &target);
	struct na m;

	if (!n)
		return TC_ACT_UNSPEC;
	na_fill(&m, asker.addr, target.addr, n->mac);
	if (na_store(r->skb, &m, n->mac))
		return drop(r, DROP_SHORT_FRAME);
	count_answer(r);
	return redirect(r, r->skb->ifindex);
}

/* echo answers an echo request to a VIP. */
static __noinline int echo(struct run *r, struct packet *p)
{
	__u8 macs[12] WORDS;

	if (bpf_skb_load_bytes(r->skb, 0, macs, sizeof(macs)) || echo_reply(r->skb, p) ||
	    bpf_skb_store_bytes(r->skb, 0, macs + 6, 6, 0) || bpf_skb_store_bytes(r->skb, 6, macs, 6, 0))
		return drop(r, DROP_NAT);
	count_answer(r);
	return redirect(r, r->skb->ifindex);
}

/* balance is backend_find, with the stack to itself. */
static __noinline __u32 balance(struct run *r, struct packet *p)
{
	return backend_find(r, p);
}

/* to_vip takes a packet to an address that has VIPs. */
static __always_inline int to_vip(struct run *r, struct packet *p, __u32 flags)
{
	if (icmp_is_echo(r->skb, p))
		return flags & NEIGHBOR_ECHO && !(r->client->flags & CLIENT_OVN) ? echo(r, p) : TC_ACT_UNSPEC;
	int error = icmp_is_error(r->skb, p);

	if (p->proto == IPPROTO_ICMPV6 && !error)
		return solicitation(r);
	__u32 reason = error ? error_to_backend(r, p) : balance(r, p);

	if (!reason && r->side)
		reason = nat_write(r, p);
	if (reason)
		return drop(r, reason);
	if (r->side && bpf_skb_store_bytes(r->skb, 0, r->mac, sizeof(r->mac), 0))
		return drop(r, DROP_NAT);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int client_in(struct __sk_buff *skb)
{
	struct run r;
	struct work *w = work_of();

	run_start(&r, skb, FROM_FABRIC);
	if (!client_find(&r) || !w)
		return TC_ACT_UNSPEC;
	if (skb->protocol == bpf_htons(ETH_P_ARP))
		return arp_request(&r);
	if (!client_parse(skb, &w->packet))
		/* Among others those to groups. */
		return skb->protocol == bpf_htons(ETH_P_IPV6) ? solicitation(&r) : TC_ACT_UNSPEC;
	const struct neighbor *n = neighbor_of(&r, &w->packet.dst);

	if (n && n->flags & NEIGHBOR_VIP)
		return to_vip(&r, &w->packet, n->flags);
	direct_note(&r, &w->packet);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual BSD/GPL";
