// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * vrf_guard: ingress of the devices that hand over to the routes of a VRF on the
 * kernel path, br-<vni> and the VRF's ends of pairs to provider bridges. The kernel
 * looks at the table local before those of VRFs: a VRF alone lets a tenant reach
 * every address of the node. What a route of the VRF forwards passes; what one
 * refuses passes too, for the kernel to answer. All else is dropped.
 */
#define WITHOUT_VIPS
#include "lib/fib.h"
#include "lib/icmp_error.h"

#include <linux/if_packet.h>

/*
 * lookup asks with all that the kernel will ask with when it forwards the packet:
 * rules may select by it. Marks are taken off before: see vrf_guard().
 */
static __always_inline long lookup(struct run *r, const struct packet *p, struct bpf_fib_lookup *fib, __u16 length)
{
	void *data;

	fib_fill(r, p, fib, length);
	fib_ports(r, p, fib);
	fib->l4_protocol = p->proto; /* rules know that of a fragment, too */
	/* The header was read before, by the parser: this cannot fail. */
	if (p->family == 4) {
		data = frame(r->skb, ETH_HLEN + sizeof(struct iphdr));
		if (data)
			fib->tos = ((struct iphdr *)(data + ETH_HLEN))->tos;
	} else {
		data = frame(r->skb, ETH_HLEN + sizeof(struct ipv6hdr));
		if (data)
			fib->flowinfo = *(__be32 *)(data + ETH_HLEN) & bpf_htonl(0x0fffffff);
	}
	return bpf_fib_lookup(r->skb, fib, sizeof(*fib), 0);
}

/*
 * hairpin tells whether the packet would go back to the gateway port that it came
 * from. Another one of the VRF may be behind the same device: it has another address.
 */
static __always_inline int hairpin(struct run *r, const struct bpf_fib_lookup *fib)
{
	struct ethhdr *eth = frame(r->skb, ETH_HLEN);

	return eth && fib->ifindex == r->skb->ifindex && mac_equal_half(eth->h_source, fib->dmac);
}

/*
 * too_big answers an IPv6 packet that a route out of the VRF, over sluice-vxlan,
 * does not take. The kernel would look for the way back from that device: in the
 * tables of the node.
 */
static __noinline int too_big(struct run *r, struct packet *p, const struct guarded *g, __u32 mtu)
{
	struct icmp_error err;
	__u8 back[6] WORDS;

	drop_count(r, DROP_TOO_BIG);
	icmp_fill(&err, p, DROP_TOO_BIG, mtu);
	words_copy4(err.src, g->icmp6);
	if (martian6(err.src))
		return icmp_refuse(r, REFUSED_NO_SOURCE);
	__u32 why = icmp_allowed(r, p);

	if (why)
		return icmp_refuse(r, why);
	void *data = frame(r->skb, ETH_HLEN);

	if (!data)
		return icmp_refuse(r, REFUSED_KERNEL);
	mac_copy_half(back, ((struct ethhdr *)data)->h_source);
	if (icmp_build(r->skb, &err) || set_macs(r->skb, node.nexthop_mac, back))
		return icmp_refuse(r, REFUSED_KERNEL);
	count_answer(r);
	return redirect(r, r->skb->ifindex);
}

/*
 * turn is for what came from the fabric and would go back there. It is not known
 * any more which node sent it, so two nodes that take each other for the right one
 * would pass it to and fro. The kernel answers one whose hop limit ends here.
 */
static __always_inline int turn(struct run *r, const struct packet *p)
{
	return p->ttl <= 1 ? TC_ACT_OK : drop(r, DROP_RELAY_REFUSED);
}

/* forwards decides by the kernel's own lookup. */
static __always_inline int forwards(struct run *r, struct packet *p, const struct guarded *g)
{
	struct bpf_fib_lookup fib;

	/* Without a length: the metric is known even of what is too big. */
	switch (lookup(r, p, &fib, 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		/* The kernel answers one whose hop limit ends here. */
		if (g->flags & GUARD_FROM_OVN && fib.rt_metric == TENANT_METRIC && p->ttl > 1 && hairpin(r, &fib))
			return drop(r, DROP_HAIRPIN);
		/* fallthrough */
	case BPF_FIB_LKUP_RET_NO_NEIGH:
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		if (fib.rt_metric != TENANT_METRIC)
			break;
		if (fib.ifindex == r->skb->ifindex && !(g->flags & GUARD_FROM_OVN))
			return turn(r, p);
		return TC_ACT_OK;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return TC_ACT_OK;
	case BPF_FIB_LKUP_RET_UNSUPP_LWT: /* over sluice-vxlan; the kernel tells no metric */
		if (!(g->flags & GUARD_FROM_OVN))
			return turn(r, p);
		if (p->family == 4 || p->size <= IPV6_MIN_MTU || p->ttl <= 1)
			return TC_ACT_OK;
		if (lookup(r, p, &fib, p->size) != BPF_FIB_LKUP_RET_FRAG_NEEDED)
			return TC_ACT_OK;
		return too_big(r, p, g, fib.mtu_result);
	}
	return drop(r, DROP_NOT_FORWARDED);
}

SEC("tc")
int vrf_guard(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, reason;
	struct guarded *g = bpf_map_lookup_elem(&guarded_v1, &ifindex);
	struct run r;
	struct packet p;

	run_start(&r, skb, g && g->flags & GUARD_FROM_OVN ? TO_FABRIC : FROM_FABRIC);
	if (!g)
		return drop(&r, DROP_STALE_ROW);
	/* For the counters: the row may not be there yet, or any more. */
	vrf_find(&r, g->vni);
	/* No rule selects by a mark from before: the lookup here has none. */
	skb->mark = 0;
	void *data = frame(skb, ETH_HLEN);

	if (!data)
		return drop(&r, DROP_SHORT_FRAME);
	if (skb->vlan_present)
		return drop(&r, DROP_NESTED_VLAN);
	/* Broadcasts and multicasts are no router's to forward. */
	if (skb->pkt_type != PACKET_HOST)
		return drop(&r, DROP_FOREIGN_MAC);
	switch (((struct ethhdr *)data)->h_proto) {
	case bpf_htons(ETH_P_IP):
		reason = parse4(skb, &p);
		break;
	case bpf_htons(ETH_P_IPV6):
		reason = parse6(skb, &p);
		if (!reason)
			reason = check6(&p);
		break;
	case bpf_htons(ETH_P_8021Q):
	case bpf_htons(ETH_P_8021AD):
		reason = DROP_NESTED_VLAN;
		break;
	default:
		reason = DROP_NOT_IP;
	}
	if (reason)
		return drop(&r, reason);
	return forwards(&r, &p, g);
}

char _license[] SEC("license") = "Dual BSD/GPL";
