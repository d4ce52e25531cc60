// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * proxy_in: ingress of sluice-md0, what comes out of the metadata proxy's namespace. A
 * reply to a number goes out of the tap that the number stands for, with the guest's own
 * address. All else is dropped: from there nothing is reached but guests that ask.
 */
#include "lib/metadata.h"

static __always_inline int drop_reply(void)
{
	COUNT(dropped_reply);
	return TC_ACT_SHOT;
}

static __always_inline int drop_number(void)
{
	COUNT(dropped_number);
	return TC_ACT_SHOT;
}

static __always_inline int refused(void)
{
	COUNT(dropped_edit);
	return TC_ACT_SHOT;
}

/* The part of a TCP header that decides. */
struct reply_tcp {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack_seq;
	__u8 offset;
	__u8 flags;
};
#define TCP_RST 0x04
#define TCP_ACK 0x10

enum reply {
	REPLY,
	NO_REPLY,
	RESET, /* the answer to a SYN where nobody listens (RFC 9293 section 3.10.7.1) */
};

/* reply_of tells what the upper layer is. */
static __always_inline enum reply reply_of(struct __sk_buff *skb, __u32 l4, __u32 proto, __u8 echo)
{
	struct reply_tcp tcp;
	struct {
		__u8 type, code;
	} icmp;

	if (proto == IPPROTO_TCP) {
		if (skb->len < l4 + TCP_LEN || bpf_skb_load_bytes(skb, l4, &tcp, 14) || tcp.source != METADATA_PORT)
			return NO_REPLY;
		return (tcp.flags & (TCP_RST | TCP_ACK)) == (TCP_RST | TCP_ACK) && !tcp.seq ? RESET : REPLY;
	}
	if (bpf_skb_load_bytes(skb, l4, &icmp, sizeof(icmp)) || icmp.type != echo || icmp.code != 0)
		return NO_REPLY;
	return REPLY;
}

/* to_guest hands the packet over, once its addresses have been replaced. */
static __always_inline int to_guest(struct __sk_buff *skb, const struct source *s)
{
	__u8 macs[12] WORDS;

	mac_copy_half(macs, s->mac);
	mac_copy_half(macs + 6, s->answer);
	if (bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0))
		return refused();
	if (s->vlan && bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), s->vlan))
		return refused();
	return bpf_redirect(s->ifindex, 0);
}

static __noinline int reply4(struct __sk_buff *skb)
{
	void *data = frame(skb, ETH_HLEN + sizeof(struct iphdr));

	if (!data)
		return drop_reply();
	struct iphdr *ip = data + ETH_HLEN;
	__u32 l4 = ETH_HLEN + ip->ihl * 4, proto = ip->protocol, number = bpf_ntohl(ip->daddr);
	__be32 to = ip->daddr;

	if (ip->version != 4 || ip->ihl < 5 || ip->frag_off & bpf_htons(IP_MF_OR_OFFSET) || ip->saddr != METADATA ||
	    (number & NUMBERS4_MASK) != NUMBERS4 || (proto != IPPROTO_TCP && proto != IPPROTO_ICMP))
		return drop_reply();
	switch (reply_of(skb, l4, proto, ECHO4_REPLY)) {
	case NO_REPLY:
		return drop_reply();
	case RESET:
		COUNT(dropped_reset);
		return TC_ACT_SHOT;
	case REPLY:
		break;
	}
	number &= ~NUMBERS4_MASK;
	struct source *s = bpf_map_lookup_elem(&numbers_v1, &number);

	if (!s || !s->addr4)
		return drop_number();
	if (readdress4(skb, l4, proto, ETH_HLEN + __builtin_offsetof(struct iphdr, daddr), to, s->addr4))
		return refused();
	COUNT(replied4);
	return to_guest(skb, s);
}

static __noinline int reply6(struct __sk_buff *skb)
{
	void *data = frame(skb, L4_OF_6);

	if (!data)
		return drop_reply();
	struct ipv6hdr *ip = data + ETH_HLEN;
	__be32 from[8], to[8];
	__u32 proto = ip->nexthdr;

	words_copy4(from, &ip->saddr);
	words_copy4(from + 4, &ip->daddr);
	if (ip->version != 6 || from[0] != PROXY6 || from[1] || from[2] || from[3] != METADATA || from[4] != NUMBERS6 ||
	    (proto != IPPROTO_TCP && proto != IPPROTO_ICMPV6))
		return drop_reply();
	switch (reply_of(skb, L4_OF_6, proto, ECHO6_REPLY)) {
	case NO_REPLY:
		return drop_reply();
	case RESET:
		COUNT(dropped_reset);
		return TC_ACT_SHOT;
	case REPLY:
		break;
	}
	__u32 number = bpf_ntohl(from[5]);
	struct source *s = bpf_map_lookup_elem(&numbers_v1, &number);

	if (!s || s->addr4)
		return drop_number();
	words_copy4(to, from);
	words_copy4(to + 4, from + 4);
	to[0] = LINK_LOCAL;
	to[4] = LINK_LOCAL;
	to[5] = 0;
	if (readdress6(skb, proto, from, to))
		return refused();
	COUNT(replied6);
	return to_guest(skb, s);
}

SEC("tc")
int proxy_in(struct __sk_buff *skb)
{
	void *data = frame(skb, ETH_HLEN);

	if (!data || skb->vlan_present)
		return drop_reply();
	switch (((struct ethhdr *)data)->h_proto) {
	case bpf_htons(ETH_P_IP):
		return reply4(skb);
	case bpf_htons(ETH_P_IPV6):
		return reply6(skb);
	}
	return drop_reply();
}

char _license[] SEC("license") = "Dual BSD/GPL";
