// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * replay, which test runs go through, makes the next packet and hands it over to the
 * program that is measured; and reference, a balancer of TCP and UDP that does no more
 * than it must: VIP, known flow, else table and a new row, destination and checksums,
 * redirect.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define HEAD 80 /* bytes of the packet that are written */
#define MAX_BACKENDS 2048 /* of both families */

/* What replay does. */
struct plan {
	__u8 head[HEAD] __attribute__((aligned(8)));
	__u32 flows;   /* a packet is of any of so many; 0: each is of a new one */
	__u32 next;    /* number of the flow, for new ones */
	__u32 vips;    /* the destination is one of so many addresses */
	__u32 source;  /* offset of the last four bytes of the source address */
	__u32 dest;    /* and of the destination */
	__u32 ports;   /* offset of the source port */
	__u32 vni;     /* tunnel key: 0 for none */
	__u32 vtep;    /* IPv4, in host order */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct plan);
} plans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} measured SEC(".maps");

/* add adds to a number of 32 bits of the packet. */
static __always_inline void add(struct __sk_buff *skb, __u32 at, __u32 n)
{
	void *data = (void *)(long)skb->data;

	if (at > HEAD)
		return;
	__be32 *word = data + at;

	if ((void *)(word + 1) <= (void *)(long)skb->data_end)
		*word = bpf_htonl(bpf_ntohl(*word) + n);
}

SEC("tc")
int replay(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct plan *p = bpf_map_lookup_elem(&plans, &zero);
	void *data = (void *)(long)skb->data;

	if (!p || data + HEAD > (void *)(long)skb->data_end)
		return TC_ACT_SHOT;
	__builtin_memcpy(data, p->head, HEAD);
	__u32 flow = p->flows == 1 ? 0 : p->flows ? bpf_get_prandom_u32() % p->flows : p->next++;
	__u32 vips = p->vips;

	if (!vips)
		return TC_ACT_SHOT;
	add(skb, p->dest, flow % vips);
	add(skb, p->source, flow >> 15); /* 32,768 ports of each client */
	add(skb, p->ports - 2, flow & 0x7fff);
	if (p->vni) {
		/* What one sets as the local address, the getter reads as the remote one: the key is the sender's. */
		struct bpf_tunnel_key key = {.tunnel_id = p->vni, .tunnel_ttl = 64, .local_ipv4 = p->vtep};

		bpf_skb_set_tunnel_key(skb, &key, sizeof(key), 0);
	}
	bpf_tail_call(skb, &measured, 0);
	return TC_ACT_UNSPEC;
}

struct vip_key {
	__u8 addr[16];
	__be16 port;
	__u8 proto, pad;
};

struct vip {
	__u32 first; /* slot */
	__u32 slots;
};

struct flow_key {
	__u8 src[16], dst[16];
	__u32 ports, proto;
};

struct backend {
	__u8 addr[16];
	__be16 port;
	__u16 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, struct vip_key);
	__type(value, struct vip);
} vips SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << 18);
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_BACKENDS);
	__type(key, __u32);
	__type(value, struct backend);
} backends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 18);
	__type(key, struct flow_key);
	__type(value, __u32); /* row of backends */
} flows SEC(".maps");

static __always_inline __u32 mix(__u32 h, __u32 word)
{
	h = (h ^ word) * 0xcc9e2d51;
	return h ^ h >> 15;
}

static __always_inline __u32 hash(const struct flow_key *k)
{
	const __u32 *w = (const __u32 *)k;
	__u32 h = 0;

#pragma unroll
	for (int i = 0; i < 10; i++)
		h = mix(h, w[i]);
	return h;
}

SEC("tc")
int reference(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	struct flow_key k = {};
	__u32 l4, check;

	if (data + HEAD > end)
		return TC_ACT_SHOT;
	int four = eth->h_proto == bpf_htons(ETH_P_IP);

	if (four) {
		struct iphdr *ip = data + ETH_HLEN;

		if (ip->ihl != 5)
			return TC_ACT_SHOT;
		k.src[10] = k.src[11] = k.dst[10] = k.dst[11] = 0xff;
		__builtin_memcpy(k.src + 12, &ip->saddr, 4);
		__builtin_memcpy(k.dst + 12, &ip->daddr, 4);
		k.proto = ip->protocol;
		l4 = ETH_HLEN + sizeof(*ip);
	} else {
		struct ipv6hdr *ip = data + ETH_HLEN;

		__builtin_memcpy(k.src, &ip->saddr, 16);
		__builtin_memcpy(k.dst, &ip->daddr, 16);
		k.proto = ip->nexthdr;
		l4 = ETH_HLEN + sizeof(*ip);
	}
	k.ports = *(__u32 *)(data + l4);
	check = l4 + (k.proto == IPPROTO_TCP ? 16 : 6);

	struct vip_key vk = {.port = k.ports >> 16, .proto = k.proto};

	__builtin_memcpy(vk.addr, k.dst, 16);
	struct vip *v = bpf_map_lookup_elem(&vips, &vk);

	if (!v || !v->slots)
		return TC_ACT_SHOT;
	__u32 *known = bpf_map_lookup_elem(&flows, &k), row;

	if (known) {
		row = *known;
	} else {
		__u32 slot = v->first + hash(&k) % v->slots;
		__u32 *member = bpf_map_lookup_elem(&slots, &slot);

		if (!member)
			return TC_ACT_SHOT;
		row = *member;
		bpf_map_update_elem(&flows, &k, &row, BPF_ANY);
	}
	struct backend *b = bpf_map_lookup_elem(&backends, &row);

	if (!b)
		return TC_ACT_SHOT;
	__be16 port = k.ports >> 16, to = b->port;
	__u64 flags = k.proto == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
	__u32 diff = bpf_csum_diff((__be32 *)k.dst, 16, (__be32 *)b->addr, 16, 0);

	bpf_l4_csum_replace(skb, check, 0, diff, flags | BPF_F_PSEUDO_HDR);
	bpf_l4_csum_replace(skb, check, port, to, flags | sizeof(to));
	if (four)
		bpf_l3_csum_replace(skb, ETH_HLEN + __builtin_offsetof(struct iphdr, check), 0, diff, 0);
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (data + HEAD > end)
		return TC_ACT_SHOT;
	*(__be16 *)(data + l4 + 2) = to;
	if (four)
		__builtin_memcpy(data + ETH_HLEN + 16, b->addr + 12, 4);
	else
		__builtin_memcpy(data + ETH_HLEN + 24, b->addr, 16);
	return bpf_redirect(1, 0);
}

SEC("tc")
int redirect_only(struct __sk_buff *skb __attribute__((unused)))
{
	return bpf_redirect(1, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
