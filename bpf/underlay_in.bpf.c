// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * underlay_in: ingress of the underlay's devices, where addresses are exposed
 * without EVPN. Packets for an address of the default VRF enter OVN here. All else is
 * the host's, and goes on to it as it came: this program never drops, changes or
 * counts what is not for such an address.
 */
#define WITHOUT_VIPS
#include "lib/icmp_error.h"

#include <linux/if_packet.h>

static __always_inline int pass(struct run *r)
{
	STEP(r, STEP_PASS, 0, 0);
	return TC_ACT_UNSPEC;
}

/* error_source is the gateway port's address, else the configured one, else the node's in the underlay. */
static __always_inline int error_source(const struct entry *e, struct icmp_error *err)
{
	if (err->family == 4) {
		addr_map4(err->src, e->addr4 ? e->addr4 : e->icmp4 ? e->icmp4 : node.vtep4);
		return addr_last(err->src) != 0;
	}
	words_copy4(err->src, e->addr6);
	if (martian6(err->src))
		words_copy4(err->src, e->icmp6);
	if (martian6(err->src)) {
		const volatile __u32 *w = (const volatile __u32 *)node.vtep6;
		__u32 *to = (__u32 *)err->src;

		to[0] = w[0];
		to[1] = w[1];
		to[2] = w[2];
		to[3] = w[3];
	}
	return !martian6(err->src);
}

/* refuse drops the packet and tells its sender why, by way of the neighbour that it came from. */
static __noinline int refuse(struct run *r, struct packet *p, struct entry *e, __u32 reason, __u32 mtu)
{
	struct icmp_error err;
	__u8 back[6] WORDS, own[6] WORDS;

	drop_count(r, reason);
	icmp_fill(&err, p, reason, mtu);
	if (!error_source(e, &err))
		return icmp_refuse(r, REFUSED_NO_SOURCE);
	/* An address of this node's own gateways does not come from the underlay. */
	if (route_local(route_search(r, &p->src, p->family, 1)))
		return icmp_refuse(r, REFUSED_BOGUS_SOURCE);
	__u32 why = icmp_allowed(r, p);

	if (why)
		return icmp_refuse(r, why);
	void *data = frame(r->skb, ETH_HLEN);

	if (!data)
		return icmp_refuse(r, REFUSED_KERNEL);
	mac_copy_half(back, ((struct ethhdr *)data)->h_source);
	mac_copy_half(own, ((struct ethhdr *)data)->h_dest);
	if (icmp_build(r->skb, &err) || set_macs(r->skb, own, back))
		return icmp_refuse(r, REFUSED_KERNEL);
	STEP(r, STEP_ICMP, err.type << 8 | err.code, err.dst);
	count_answer(r);
	return redirect(r, r->skb->ifindex);
}

/* is_vtep tells whether the address is that of the node's own tunnel endpoint. */
static __always_inline int is_vtep(const struct packet *p)
{
	if (p->family == 4)
		return addr_last(p->dst.addr) == node.vtep4;
	const volatile __u32 *w = (const volatile __u32 *)node.vtep6;
	const __u32 *d = (const __u32 *)p->dst.addr;

	return !((w[0] ^ d[0]) | (w[1] ^ d[1]) | (w[2] ^ d[2]) | (w[3] ^ d[3]));
}

/* forward takes a packet whose destination is exposed on this node. */
static __noinline int forward(struct run *r, __u64 route, __u32 family)
{
	struct packet p;
	__u32 reason;

	if (family == 4) {
		reason = parse4(r->skb, &p);
	} else {
		reason = parse6(r->skb, &p);
		if (!reason)
			reason = check6(&p);
	}
	/* What cannot be read is not known to be for that address. Of a martian the addresses are read. */
	if ((reason && reason != DROP_MARTIAN) || is_vtep(&p))
		return pass(r);
	STEP(r, STEP_VRF, r->vni, 0);
	if (reason)
		return drop(r, reason);
	struct entry *e = entry_beside(r, route_ref(route));

	if (!e)
		return drop(r, DROP_STALE_ROW);
	STEP(r, STEP_ENTRY, route_ref(route), 0);
	if (p.ttl <= 1)
		return refuse(r, &p, e, DROP_TTL_EXPIRED, 0);
	__u32 mtu = entry_mtu(e);

	if (p.size > mtu)
		return mtu ? refuse(r, &p, e, DROP_TOO_BIG, mtu) : drop(r, DROP_STALE_ROW);
	return to_entry(r, &p, e);
}

SEC("tc")
int underlay_in(struct __sk_buff *skb)
{
	struct run r;
	struct address dst;
	__u32 family;

	run_start(&r, skb, FROM_FABRIC);
	/* Not multicast, not another host's, and not of another network. */
	if (skb->pkt_type != PACKET_HOST || skb->vlan_present)
		return pass(&r);
	void *data = frame(skb, ETH_HLEN + sizeof(struct iphdr));

	if (!data)
		return pass(&r);
	switch (((struct ethhdr *)data)->h_proto) {
	case bpf_htons(ETH_P_IP):
		family = 4;
		halves_map4(&dst, ((struct iphdr *)(data + ETH_HLEN))->daddr);
		break;
	case bpf_htons(ETH_P_IPV6):
		family = 6;
		data = frame(skb, ETH_HLEN + sizeof(struct ipv6hdr));
		if (!data)
			return pass(&r);
		halves_copy(&dst, &((struct ipv6hdr *)(data + ETH_HLEN))->daddr);
		break;
	default:
		return pass(&r);
	}
	if (!vrf_find(&r, DEFAULT_VRF))
		return pass(&r);
	__u64 route = route_lookup(&r, &dst, family);

	if (!route_local(route))
		return pass(&r);
	return forward(&r, route, family);
}

char _license[] SEC("license") = "Dual BSD/GPL";
