// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * tap_in: ingress of a machine's tap. A request to the metadata addresses goes to the
 * proxy, with a source address that stands for the guest: see lib/metadata.h. All else,
 * and all of it while the proxy gives no sign of life, goes on as it came: to other
 * programs of the tap, and to Open vSwitch.
 *
 * A guest chooses what is in its packets, but not the device and VLAN that they come by.
 */
#include "lib/metadata.h"
#include "lib/neighbor.h"

/* How old a sign of life of the proxy may be, in ns. */
const volatile __u64 stale_after = 5000000000;

static __always_inline int pass_stale(void)
{
	COUNT(passed_stale);
	return TC_ACT_UNSPEC;
}

static __always_inline int pass_unknown(void)
{
	COUNT(passed_unknown_source);
	return TC_ACT_UNSPEC;
}

static __always_inline int refused(void)
{
	COUNT(dropped_edit);
	return TC_ACT_SHOT;
}

/* proxy_alive is the way to the proxy, or NULL. */
static __always_inline struct proxy *proxy_alive(void)
{
	__u32 zero = 0;
	struct proxy *p = bpf_map_lookup_elem(&proxy_v1, &zero);
	const volatile __u64 *beat = bpf_map_lookup_elem(&heartbeat_v1, &zero);

	if (!p || !p->ifindex || !beat)
		return 0;
	/* Read before the clock: never later than now. One of another clock is not believed. */
	__u64 at = *beat;

	barrier_var(at);
	if (!at || bpf_ktime_get_ns() - at >= stale_after)
		return 0;
	return p;
}

/* to_proxy hands the packet over, once its addresses have been replaced. */
static __always_inline int to_proxy(struct __sk_buff *skb, struct proxy *p)
{
	if (bpf_skb_store_bytes(skb, 0, p->inside, 12, 0))
		return refused();
	/* The number says what the tag said. */
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return refused();
	return bpf_redirect(p->ifindex, 0);
}

/* asks tells whether the upper layer is a request: TCP to the port, or an echo request. */
static __always_inline int asks(struct __sk_buff *skb, __u32 l4, __u32 proto, __u8 echo)
{
	__be16 port;
	struct {
		__u8 type, code;
	} icmp;

	if (proto == IPPROTO_TCP)
		return skb->len >= l4 + TCP_LEN && !bpf_skb_load_bytes(skb, l4 + 2, &port, sizeof(port)) && port == METADATA_PORT;
	return !bpf_skb_load_bytes(skb, l4, &icmp, sizeof(icmp)) && icmp.type == echo && icmp.code == 0;
}

static __always_inline struct guest4 *guest4_of(struct __sk_buff *skb, const struct ethhdr *eth, __be32 addr)
{
	struct guest4_key k = {.ifindex = skb->ifindex, .vlan = vlan_of(skb), .addr = addr};
	struct guest4 *g = bpf_map_lookup_elem(&guests4_v1, &k);

	return g && mac_equal_half(eth->h_source, g->mac) ? g : 0;
}

static __always_inline struct guest6 *guest6_of(struct __sk_buff *skb, const struct ethhdr *eth)
{
	struct guest6_key k = {.ifindex = skb->ifindex, .vlan = vlan_of(skb)};

	mac_copy_half(k.mac, eth->h_source);
	return bpf_map_lookup_elem(&guests6_v1, &k);
}

static __always_inline struct tap *tap_of(struct __sk_buff *skb)
{
	struct tap_key k = {.ifindex = skb->ifindex, .vlan = vlan_of(skb)};

	return bpf_map_lookup_elem(&taps_v1, &k);
}

/* request4 takes what is for 169.254.169.254. */
static __noinline int request4(struct __sk_buff *skb)
{
	void *data = frame(skb, ETH_HLEN + sizeof(struct iphdr));

	if (!data)
		return TC_ACT_UNSPEC;
	struct iphdr *ip = data + ETH_HLEN;
	__u32 l4 = ETH_HLEN + ip->ihl * 4, proto = ip->protocol;
	__u16 fragment = ip->frag_off & bpf_htons(IP_MF_OR_OFFSET);
	__be32 from = ip->saddr;

	if (ip->version != 4 || ip->ihl < 5 || (proto != IPPROTO_TCP && proto != IPPROTO_ICMP))
		return TC_ACT_UNSPEC;
	if (!fragment && !asks(skb, l4, proto, ECHO4_REQUEST))
		return TC_ACT_UNSPEC;
	struct proxy *p = proxy_alive();

	if (!p)
		return pass_stale();
	struct guest4 *g = guest4_of(skb, data, from);

	if (!g)
		return pass_unknown();
	if (fragment) {
		COUNT(dropped_fragment);
		return TC_ACT_SHOT;
	}
	if (readdress4(skb, l4, proto, ETH_HLEN + __builtin_offsetof(struct iphdr, saddr), from, bpf_htonl(NUMBERS4 + g->number)))
		return refused();
	COUNT(steered4);
	return to_proxy(skb, p);
}

/* arp_request takes requests for 169.254.169.254. */
static __noinline int arp_request(struct __sk_buff *skb)
{
	void *data = frame(skb, ETH_HLEN + sizeof(struct arp));

	if (!data)
		return TC_ACT_UNSPEC;
	struct arp *a = data + ETH_HLEN;
	__be32 sender, target;

	__builtin_memcpy(&sender, a->sender, 4);
	__builtin_memcpy(&target, a->target, 4);
	if (target != METADATA || !arp_asks(a, sender, target))
		return TC_ACT_UNSPEC;
	if (!proxy_alive())
		return pass_stale();
	struct tap *tap = tap_of(skb);

	if (!tap || !guest4_of(skb, data, sender))
		return pass_unknown();
	arp_reply(data, a, sender, target, tap->answer);
	COUNT(answered_arp);
	return bpf_redirect(skb->ifindex, 0);
}

#define ND_MIN 24	/* bytes of a solicitation without options */
#define ND_OPTIONS 8	/* so many are looked at */
#define OPT_SOURCE_LLADDR 1

/* nd_options tells whether the options are as they have to be (RFC 4861 section 7.1.1). */
static __always_inline int nd_options(struct __sk_buff *skb, __u32 end, int probe)
{
	__u32 at = L4_OF_6 + ND_MIN;
	struct {
		__u8 type, len;
	} option;

	for (int i = 0; i < ND_OPTIONS && at < end; i++) {
		if (bpf_skb_load_bytes(skb, at, &option, sizeof(option)) || !option.len ||
		    (probe && option.type == OPT_SOURCE_LLADDR))
			return 0;
		at += option.len * 8;
	}
	return at == end;
}

/*
 * solicitation takes those for fe80::a9fe:a9fe; group: it was sent to the group of
 * that address. Its checksum is not looked at: the row of the MAC says who it is, and the
 * answer goes nowhere else. While a link-local address is tentative, a guest asks from
 * another one (RFC 4861 section 7.2.2).
 */
static __always_inline int solicitation(struct __sk_buff *skb, int group)
{
	void *data = frame(skb, L4_OF_6 + ND_MIN);

	if (!data)
		return TC_ACT_UNSPEC;
	struct ipv6hdr *ip = data + ETH_HLEN;
	const __be32 *s = (const __be32 *)&ip->saddr;
	const __be32 *t = data + L4_OF_6 + 8;
	const __u8 *icmp = data + L4_OF_6;
	__u8 asker[16] WORDS, target[16] WORDS;
	__u32 end = L4_OF_6 + bpf_ntohs(ip->payload_len);
	int probe = !(s[0] | s[1] | s[2] | s[3]);

	if (icmp[1] != 0 || ip->hop_limit != 255 || end < L4_OF_6 + ND_MIN || end > skb->len)
		return TC_ACT_UNSPEC;
	if (t[0] != LINK_LOCAL || t[1] || t[2] || t[3] != METADATA || (probe && !group))
		return TC_ACT_UNSPEC;
	words_copy4(asker, s);
	words_copy4(target, t);
	if (!nd_options(skb, end, probe))
		return TC_ACT_UNSPEC;
	if (!proxy_alive())
		return pass_stale();
	struct tap *tap = tap_of(skb);

	data = frame(skb, L4_OF_6);
	if (!data)
		return TC_ACT_UNSPEC;
	if (!tap || !guest6_of(skb, data) || asker[0] == 0xff)
		return pass_unknown();
	struct na m;

	na_fill(&m, asker, target, tap->answer);
	if (na_store(skb, &m, tap->answer))
		return refused();
	COUNT(answered_nd);
	return bpf_redirect(skb->ifindex, 0);
}

/* request6 takes what is for fe80::a9fe:a9fe. */
static __always_inline int request6(struct __sk_buff *skb, __u32 proto)
{
	if (proto != IPPROTO_FRAGMENT && !asks(skb, L4_OF_6, proto, ECHO6_REQUEST))
		return TC_ACT_UNSPEC;
	struct proxy *p = proxy_alive();

	if (!p)
		return pass_stale();
	void *data = frame(skb, L4_OF_6);

	if (!data)
		return TC_ACT_UNSPEC;
	struct ipv6hdr *ip = data + ETH_HLEN;
	__be32 from[8], to[8];

	words_copy4(from, &ip->saddr);
	words_copy4(from + 4, &ip->daddr);
	struct guest6 *g = guest6_of(skb, data);

	if (!g || from[0] != LINK_LOCAL || from[1])
		return pass_unknown();
	if (proto == IPPROTO_FRAGMENT) {
		COUNT(dropped_fragment);
		return TC_ACT_SHOT;
	}
	words_copy4(to, from);
	words_copy4(to + 4, from + 4);
	to[0] = NUMBERS6;
	to[1] = bpf_htonl(g->number);
	to[4] = PROXY6;
	if (readdress6(skb, proto, from, to))
		return refused();
	COUNT(steered6);
	return to_proxy(skb, p);
}

/* packet6 takes what may be for fe80::a9fe:a9fe, by the end of its destination. */
static __noinline int packet6(struct __sk_buff *skb)
{
	void *data = frame(skb, L4_OF_6);
	__u8 type;

	if (!data)
		return TC_ACT_UNSPEC;
	struct ipv6hdr *ip = data + ETH_HLEN;
	const __be32 *d = (const __be32 *)&ip->daddr;
	int single = d[0] == LINK_LOCAL && !d[1] && !d[2] && d[3] == METADATA;
	/* The group of all addresses with that end (RFC 4291 section 2.7.1). */
	int group = d[0] == bpf_htonl(0xff020000) && !d[1] && d[2] == bpf_htonl(1) && d[3] == bpf_htonl(0xfffea9fe);
	__u32 proto = ip->nexthdr;

	if (ip->version != 6 || !(single || group))
		return TC_ACT_UNSPEC;
	if (proto == IPPROTO_ICMPV6 && !bpf_skb_load_bytes(skb, L4_OF_6, &type, 1) && type == ND_SOLICITATION)
		return solicitation(skb, group);
	if (group)
		return TC_ACT_UNSPEC;
	switch (proto) {
	case IPPROTO_TCP:
	case IPPROTO_ICMPV6:
	case IPPROTO_FRAGMENT:
		return request6(skb, proto);
	}
	if (extension6(proto))
		COUNT(passed_extension);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int tap_in(struct __sk_buff *skb)
{
	void *data = frame(skb, ETH_HLEN + sizeof(struct iphdr));

	if (!data)
		return TC_ACT_UNSPEC;
	/* A service tag is of no VLAN that a row names. */
	if (skb->vlan_present && skb->vlan_proto != bpf_htons(ETH_P_8021Q))
		return TC_ACT_UNSPEC;
	switch (((struct ethhdr *)data)->h_proto) {
	case bpf_htons(ETH_P_IP):
		if (((struct iphdr *)(data + ETH_HLEN))->daddr == METADATA)
			return request4(skb);
		break;
	case bpf_htons(ETH_P_IPV6):
		data = frame(skb, L4_OF_6);
		if (data) {
			const __be32 *d = (const __be32 *)&((struct ipv6hdr *)(data + ETH_HLEN))->daddr;

			if (d[3] == METADATA || d[3] == bpf_htonl(0xfffea9fe))
				return packet6(skb);
		}
		break;
	case bpf_htons(ETH_P_ARP):
		return arp_request(skb);
	}
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual BSD/GPL";
