/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * Metadata requests of guests: rows and maps of tap_in and proxy_in, which have a
 * directory of their own. As in types.h numbers are in host byte order unless the type
 * is __be*, MAC addresses are bytes in wire order, and what a row means is part of the
 * version in the map's name.
 *
 * What is dropped is counted here, and not in the map drops: that one is of packets of
 * VRFs, and of another directory.
 */
#include "frame.h"
#include "mac.h"
#include "types.h"

/* 169.254.169.254 and fe80::a9fe:a9fe, which guests ask; in the proxy's namespace the latter is fd6e::a9fe:a9fe. */
#define METADATA bpf_htonl(0xa9fea9fe)
#define METADATA_PORT bpf_htons(80)
#define LINK_LOCAL bpf_htonl(0xfe800000)
#define PROXY6 bpf_htonl(0xfd6e0000)

/* Sources as the proxy sees them: 100.64.0.0/10, and fd6d::/32 (dataplane/metadata/identity). */
#define NUMBERS4 0x64400000
#define NUMBERS4_MASK 0xffc00000
#define NUMBERS6 bpf_htonl(0xfd6d0000)

/* <linux/icmp.h> does not compile for the BPF target. RFC 792, RFC 4443. */
#define ECHO4_REPLY 0
#define ECHO4_REQUEST 8
#define ECHO6_REQUEST 128
#define ECHO6_REPLY 129

#define MAX_GUESTS 65536

/* taps: devices behind which somebody may ask. */
struct tap_key {
	__u32 ifindex;
	__u16 vlan; /* VLAN identifier, 0 for none */
	__u16 pad;
};
ASSERT_SIZE(struct tap_key, 8);

struct tap {
	__u8 answer[6] WORDS; /* what ARP and ND are answered with */
	__u16 flags;	      /* 0 */
};
ASSERT_SIZE(struct tap, 8);

/* guests4: who may ask from an IPv4 address. */
struct guest4_key {
	__u32 ifindex;
	__u16 vlan;
	__u16 pad;
	__be32 addr;
};
ASSERT_SIZE(struct guest4_key, 12);

struct guest4 {
	__u32 number;
	__u8 mac[6];
	__u16 pad;
};
ASSERT_SIZE(struct guest4, 12);

/* guests6: who may ask from any IPv6 link-local address. */
struct guest6_key {
	__u32 ifindex;
	__u16 vlan;
	__u8 mac[6];
};
ASSERT_SIZE(struct guest6_key, 12);

struct guest6 {
	__u32 number;
};
ASSERT_SIZE(struct guest6, 4);

/* numbers: who is behind a number, for the way back. */
struct source {
	__u32 ifindex;
	__u16 vlan;
	__u8 mac[6];	/* the guest's */
	__u8 answer[6]; /* the metadata port's */
	__u16 pad;
	__be32 addr4; /* the guest's; 0: the number is one of IPv6 */
};
ASSERT_SIZE(struct source, 24);

/* proxy: the pair of devices to the proxy's namespace. */
struct proxy {
	__u32 ifindex; /* of the end on the node; 0: there is none */
	__u8 inside[6]; /* MAC address of the end in the namespace */
	__u8 host[6];	/* and of that on the node: in this order they head a frame */
};
ASSERT_SIZE(struct proxy, 16);

/* steered: per CPU, what became of the packets that are a matter of metadata. */
struct steered {
	/* Of tap_in. */
	__u64 steered4; /* handed to the proxy */
	__u64 steered6;
	__u64 answered_arp;
	__u64 answered_nd;
	__u64 passed_stale;	     /* on to Open vSwitch: the proxy gives no sign of life, or there is none */
	__u64 passed_unknown_source; /* on to Open vSwitch: device, VLAN, address and MAC have no row */
	__u64 passed_extension;	     /* on to Open vSwitch: IPv6 with extension headers */
	__u64 dropped_fragment;
	/* Of proxy_in. */
	__u64 replied4; /* handed to a guest */
	__u64 replied6;
	__u64 dropped_reset;  /* it would tell a guest that nobody listens */
	__u64 dropped_number; /* for a number that is nobody's (any more) */
	__u64 dropped_reply;  /* anything else out of the namespace */
	/* Of both. */
	__u64 dropped_edit; /* the kernel refused to change the packet */
};
ASSERT_SIZE(struct steered, 14 * 8);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_GUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct tap_key);
	__type(value, struct tap);
} taps_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_GUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct guest4_key);
	__type(value, struct guest4);
} guests4_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_GUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct guest6_key);
	__type(value, struct guest6);
} guests6_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * MAX_GUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* number */
	__type(value, struct source);
} numbers_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct proxy);
} proxy_v1 SEC(".maps");

/* When the proxy gave the last sign of life: ns of CLOCK_MONOTONIC, 0: never. The proxy writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} heartbeat_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steered);
} steered_v1 SEC(".maps");

#define COUNT(outcome)                                                          \
	do {                                                                    \
		__u32 zero_ = 0;                                                \
		struct steered *s_ = bpf_map_lookup_elem(&steered_v1, &zero_); \
		if (s_)                                                         \
			s_->outcome++;                                          \
	} while (0)

#define TCP_LEN 20
#define TCP_CHECK 16
#define ICMP6_CHECK 2

/* readdress4 replaces one address of an IPv4 packet; not 0: the kernel refused. */
static __always_inline long readdress4(struct __sk_buff *skb, __u32 l4, __u32 proto, __u32 at, __be32 from, __be32 to)
{
	/* An echo's checksum does not cover addresses. */
	if (proto == IPPROTO_TCP && bpf_l4_csum_replace(skb, l4 + TCP_CHECK, from, to, BPF_F_PSEUDO_HDR | sizeof(to)))
		return -1;
	if (bpf_l3_csum_replace(skb, ETH_HLEN + __builtin_offsetof(struct iphdr, check), from, to, sizeof(to)))
		return -1;
	return bpf_skb_store_bytes(skb, at, &to, sizeof(to), 0);
}

#define L4_OF_6 (ETH_HLEN + sizeof(struct ipv6hdr))

/*
 * readdress6 replaces both addresses of an IPv6 packet without extension headers; not 0:
 * the kernel refused.
 */
static __always_inline long readdress6(struct __sk_buff *skb, __u32 proto, __be32 *from, __be32 *to)
{
	__u32 diff = bpf_csum_diff(from, 32, to, 32, 0);

	if (bpf_l4_csum_replace(skb, L4_OF_6 + (proto == IPPROTO_TCP ? TCP_CHECK : ICMP6_CHECK), 0, diff, BPF_F_PSEUDO_HDR))
		return -1;
	/*
	 * A sum over the whole packet that a NIC delivered (CHECKSUM_COMPLETE) is as before:
	 * addresses and checksum cancel out. The helper accounts for the checksum alone,
	 * as if the IP header had one of its own. Of other kinds this does nothing.
	 */
	bpf_csum_update(skb, diff);
	return bpf_skb_store_bytes(skb, ETH_HLEN + __builtin_offsetof(struct ipv6hdr, saddr), to, 32, 0);
}
