/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * Rows of the pinned maps. The daemon's Go types are generated from these
 * through BTF. Numbers are in host byte order unless the type is __be*; MAC and
 * IP addresses are bytes in wire order. An IPv4 address in 16 bytes is
 * IPv4-mapped (::ffff:a.b.c.d).
 *
 * What a row means is part of the maps' layout version: a change here is a new
 * version in the map's name, also where the size stays. A build that knows only the
 * old meaning has to refuse the map.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#define ASSERT_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " changed its size")

/* Addresses are read and compared as words. */
#define WORDS __attribute__((aligned(4)))

/* The VRF of addresses that are exposed without EVPN: no packet can carry it as a VNI. */
#define DEFAULT_VRF (1 << 24)

/* Which way a packet goes: the direction of counters and of the ICMP limits. */
enum direction {
	FROM_FABRIC = 0,
	TO_FABRIC = 1,
};

/* vrfs: by VNI. */
struct vrf {
	__u32 index;  /* row of the counters, 1.. */
	__u32 device; /* ifindex that fabric_in hands the VRF's packets to: the kernel path; 0: eBPF path */
};
ASSERT_SIZE(struct vrf, 8);

/*
 * Fronts: arrays before hash maps and tries. A lookup in a hash map costs some 25
 * ns here, in an array, which the kernel compiles into the program, less than two.
 * A row of a front repeats one row of what is behind it, or says nothing; what it
 * does not have is looked up there. The daemon writes a front after its map and
 * clears it before, so that a front never has what the map has not.
 */
#define VRF_FRONT 16384	    /* by the VNI's low bits */
#define VTEP_FRONT 65536    /* by the IPv4 address's low bits */
#define GATEWAY_FRONT 16384 /* by the gateway key's */

enum length_end {
	LENGTH_ASK = 254,  /* there are more, or it is not known: ask the maps of routes */
	LENGTH_NONE = 255, /* there are no more */
};

/*
 * A VRF, and the prefix lengths that its routes have in each family, longest first:
 * eight, or fewer and an enum length_end. Lengths are those in 16 bytes: 96 more
 * for IPv4.
 */
struct vrf_front {
	__u32 vni; /* 0: nothing is said */
	__u32 index;
	__u8 four[8] __attribute__((aligned(8)));
	__u8 six[8] __attribute__((aligned(8)));
	__u32 device; /* see struct vrf */
	/*
	 * 0: the VRF has no VIPs; else what comes from OVN may be a backend's answer, and
	 * until this time (s, CLOCK_MONOTONIC) there may be flows that this node does not
	 * know: see answer_unknown(). Of several VRFs that share the row it is the last time.
	 */
	__u32 unknown;
};
ASSERT_SIZE(struct vrf_front, 32);

/* vteps: outer sources that are accepted. */
struct vtep_key {
	__u8 addr[16] WORDS;
};
ASSERT_SIZE(struct vtep_key, 16);

struct vtep {
	__u32 flags; /* 0 */
};
ASSERT_SIZE(struct vtep, 4);

/* gateways: how a frame from OVN shows which gateway port sent it. */
struct gateway_key {
	__u32 ifindex;
	__u8 mac[6] WORDS;
	__u16 vlan; /* VLAN identifier, 0 for none */
};
ASSERT_SIZE(struct gateway_key, 12);

struct gateway {
	__u32 entry; /* row of entries */
	__u32 vni;
};
ASSERT_SIZE(struct gateway, 8);

enum entry_flags {
	ENTRY_MTU_OF_DEVICE = 1, /* mtu was taken from the device, not configured */
};

/* entries: gateway ports, where a VRF's packets enter OVN. */
struct entry {
	__u32 vni;     /* owner; 0 marks a free row */
	__u32 ifindex; /* sluice<N> */
	__u8 mac[6];
	__u16 vlan;
	__u16 mtu; /* largest layer-3 packet */
	__u8 flags;
	__u8 kind;	/* intent.GatewayKind */
	__be32 addr4;	/* the port's own, 0 for none: source of ICMP errors to the fabric */
	__be32 icmp4;	/* configured source of ICMP errors to OVN, 0 for none */
	__u8 addr6[16] WORDS;
	__u8 icmp6[16] WORDS;
	__u32 pad;
};
ASSERT_SIZE(struct entry, 64);

/* gateway_names: what people call an entry. The programs do not read it. */
struct gateway_name {
	char bridge[16]; /* NUL-terminated */
	__u16 port_len;
	char port[494]; /* Port_Binding.logical_port */
};
ASSERT_SIZE(struct gateway_name, 512);

/* served: what is asked for in ARP and ND behind an entry. */
struct served_key {
	__u32 prefixlen; /* 64 bits of entry and family, then those of addr */
	__u32 entry;
	__u32 family;		/* 4 or 6 */
	__u8 addr[16] WORDS;	/* IPv4: the first four bytes */
};
ASSERT_SIZE(struct served_key, 28);

enum served_answer {
	SERVED_NOT = 0,	   /* a known port has it */
	SERVED_ALL = 1,	   /* reply with the next-hop MAC, except for known ports */
	SERVED_LISTED = 2, /* a single address: reply, whoever has it */
};

struct served {
	__u32 answer; /* enum served_answer */
};
ASSERT_SIZE(struct served, 4);

/* known: addresses of known ports, for all gateway ports on a device and VLAN. */
struct known_key {
	__u32 ifindex;
	__u32 vlan;
	__u8 addr[16] WORDS;
};
ASSERT_SIZE(struct known_key, 24);

/* The programs do not read it. */
struct known {
	char bridge[16]; /* NUL-terminated */
};
ASSERT_SIZE(struct known, 16);

/* asked: the next hop that an entry's router asked for last; written by overlay_in. */
struct asked {
	__u8 addr6[16] __attribute__((aligned(8)));
	__be32 addr4;
	__u32 pad;
};
ASSERT_SIZE(struct asked, 24);

/* hosts: single addresses of a VRF. */
struct host_key {
	__u32 vni;
	__u8 addr[16] WORDS;
};
ASSERT_SIZE(struct host_key, 20);

/* prefixes4, prefixes6: everything shorter than a host. */
struct prefix4_key {
	__u32 prefixlen; /* 32 bits of vni, then those of addr */
	__u32 vni;
	__be32 addr;
};
ASSERT_SIZE(struct prefix4_key, 12);

struct prefix6_key {
	__u32 prefixlen;
	__u32 vni;
	__u8 addr[16] WORDS;
};
ASSERT_SIZE(struct prefix6_key, 24);

/* Where a route leads, and of what map ref is a row. */
#define ROUTE_BACKEND_BIT 5

enum route_kind {
	ROUTE_LOCAL = 1,  /* entries */
	ROUTE_REMOTE = 2, /* nexthops: one next hop */
	ROUTE_GROUP = 3,  /* groups: several */
	ROUTE_BLOCK = 4,
	ROUTE_VIP = 16 | ROUTE_LOCAL, /* entries: a single address that has VIPs; what is none of theirs goes there */
	ROUTE_BACKEND = 1 << ROUTE_BACKEND_BIT | ROUTE_LOCAL, /* entries: see backend_routes */
};

struct route {
	__u32 kind;
	__u32 ref;
};
ASSERT_SIZE(struct route, 8);

/*
 * route_front: the front of hosts, prefixes4 and prefixes6, by front_slot(). Most
 * routes share a row with no other, so they need no hash map and no trie; nor does
 * an address that no route matches. A row of zeros says nothing.
 */
struct route_front {
	__u32 vni; /* 0: no route is here */
	__u8 length;
	__u8 complete; /* 1: there is no other route of this row but the one that is here */
	__u16 pad;
	struct route route;
	__u8 addr[16] WORDS; /* with zeros after length */
};
ASSERT_SIZE(struct route_front, 32);

#define PREFIX_CACHE 2048 /* rows for each CPU */

/*
 * prefix_cache: what the search in the tries found for an address, where the front
 * does not know. A search takes longer with every VRF and prefix; packets come in
 * flows. A row counts while its generation is the current one.
 */
struct prefix_cache {
	__u32 vni;
	__u32 generation;
	struct route route; /* kind 0: there is none */
	__u8 addr[16] WORDS;
};
ASSERT_SIZE(struct prefix_cache, 32);

struct nexthop {
	__u32 owner; /* VNI of the VRF whose routes use this row; 0 marks a free row */
	__u32 vni;   /* the label of the peer's route */
	__u8 mac[6]; /* the peer's router MAC */
	__u16 family;	/* of vtep: 4 or 6 */
	__u8 vtep[16] WORDS;
};
ASSERT_SIZE(struct nexthop, 32);

/* path_mtus: VTEPs that a smaller outer packet fits to than underlay_mtu. */
struct path_mtu {
	__u32 mtu; /* of outer packets */
};
ASSERT_SIZE(struct path_mtu, 4);

#define GROUP_SLOTS 256
#define GROUP_MEMBERS 32

/* groups: next hops that share a destination's flows. Never changed in place. */
struct group {
	__u32 owner;
	__u32 count;
	__u32 members[GROUP_MEMBERS]; /* rows of nexthops, in order */
	__u8 slots[GROUP_SLOTS];      /* flow hash -> index into members */
};
ASSERT_SIZE(struct group, 392);

/*
 * Load balancing. A VIP belongs to a scope: the VNI of a VRF, for packets that come by
 * the fabric, or the number of a switch, which is above all VNIs, for those of its
 * machines. Ports are in wire order.
 */

/* vips: what is balanced. */
struct vip_key {
	__u32 scope;
	__be16 port; /* 0: all ports that have no row of their own */
	__u8 proto;
	__u8 pad;
	__u8 addr[16] WORDS;
};
ASSERT_SIZE(struct vip_key, 24);

enum vip_flags {
	VIP_BY_ADDRESS = 1, /* the backend of a flow depends on its addresses alone */
	VIP_FLUSH = 4,	    /* flows of backends that are taken out end. The programs do not read it. */
	VIP_OVN = 8,	    /* OVN balances it; a table is that of the time before */
};

struct vip {
	__u32 table; /* its first slot: page of maglev * TABLE_PAGE + word of the page */
	__u16 slots; /* of the table */
	__u16 members;
	__u16 affinity; /* s without a new flow for which a client keeps its backend; 0: not at all */
	__u16 flags;	/* enum vip_flags */
	/*
	 * Until this time (s, CLOCK_MONOTONIC) a packet of a flow that is not known, and that
	 * opens none, is one from before eBPF or OVN took the VIP over from the other.
	 */
	__u32 until;
	__u32 stats; /* row of vip_stats; never 0 */
};
ASSERT_SIZE(struct vip, 20);

/*
 * maglev: tables of backends, in pages. A table is words of a page: its slots, four to
 * a word, the lowest bits first; its members, struct maglev_member.
 * What is in a slot is the number of a member, or NO_MEMBER. A table never changes; its
 * words are another one's only when a while has gone by.
 */
#define TABLE_PAGE 131072 /* words: more than the largest table */
#define TABLE_PAGES 1024
#define NO_MEMBER 0xffff

struct maglev_member {
	__u32 backend; /* row of backends */
	__u16 weight;  /* 0: it gets no new flows */
	__u16 pad;
};
ASSERT_SIZE(struct maglev_member, 8);

/* backends: where flows go. */
struct backend {
	__u8 addr[16] __attribute__((aligned(8)));
	__u32 scope; /* 0 marks a free row */
	__be16 port; /* 0: that of the packet */
	__u8 proto;
	__u8 pad;
};
ASSERT_SIZE(struct backend, 24);

/*
 * answers: the VIPs of a backend, by what it sends from: struct vip_key. A packet of
 * a flow that this node does not know shows so what it answers.
 */
#define ANSWER_VIPS 4

struct answer_vip {
	__u8 addr[16] __attribute__((aligned(8)));
	struct vip vip;
	__be16 port; /* 0: that of the packet */
	__u16 pad;
};
ASSERT_SIZE(struct answer_vip, 40);

struct answers {
	__u32 backend; /* row of backends */
	__u32 count;   /* of VIPs; more than ANSWER_VIPS: they are not all here */
	struct answer_vip vips[ANSWER_VIPS];
};
ASSERT_SIZE(struct answers, 168);

/*
 * backend_front: bits, by backend_bit(). What a backend sends has its bit set; of
 * what others send next to nothing has, and need not be looked for in sessions and flows.
 */
#define BACKEND_FRONT (1 << 20) /* bits, in words of 64 */

/*
 * sessions: flows to VIPs by the client's address and port, in one row for both directions:
 * requests are told from others of the same port by the VIP, answers by the backend. A
 * client's port that has two VIPs at one time is rare: the second one's rows are in flows.
 */
struct session_key {
	__u8 client[16] WORDS;
	__u32 scope;
	__be16 port;
	__u16 proto;
	/*
	 * The tap of the client, in both directions: nobody has checked yet whether a machine
	 * may send from an address. 0 of what comes from the fabric.
	 */
	__u32 ifindex;
	__u16 vlan; /* VLAN identifier, 0 for none */
	__u16 pad;
};
ASSERT_SIZE(struct session_key, 32);

enum session_end {
	CLIENT_END = 0,
	BACKEND_END = 1,
};

/* A row may become another session's while a program reads it: see session_read(). */
struct session {
	__u32 tag;  /* session_tag() of its key */
	__u32 seen; /* s, CLOCK_MONOTONIC: the last packet, within a second */
	__u8 vip[16] __attribute__((aligned(8)));
	__u8 backend[16] __attribute__((aligned(8)));
	__be16 vip_port;
	__be16 port;	/* the backend's; 0: the same as vip_port */
	__u8 state[2];	/* enum flow_state, by enum session_end: of what the end has sent */
	__u16 pad;
	__u32 row;   /* of backends */
	__u32 stats; /* row of vip_stats */
	/* Of a switch's machine: the backend's. The session goes on when the row of neighbors ends. */
	__u8 mac[6] WORDS;
	__u16 pad2;
};
ASSERT_SIZE(struct session, 64);

/*
 * flows: packets of one direction, where no row of sessions says all of it: of a client's
 * port that has another session, of what is left to OVN, and of connections that are no VIP's.
 * The daemon ends flows and sessions, and copies them into a map of another size.
 */
struct flow_key {
	__u8 src[16] WORDS;
	__u8 dst[16] WORDS;
	__u32 scope;
	__u32 ports; /* the first four bytes of the upper layer: source and destination */
	__u32 ifindex; /* the client's tap: see struct session_key */
	__u16 vlan;
	__u16 proto;
};
ASSERT_SIZE(struct flow_key, 48);

/*
 * flow_front: bits, by flow_bit(): the ends of clients that may have rows in flows. There are
 * few of those, and what no session says need not be looked for in flows. Programs set a bit
 * before they write a row. Bits are in two generations, one after the other: the daemon
 * begins with an empty one, sets the bits of all rows in it, and clears the other one then. The
 * last word is the state.
 */
#define FLOW_FRONT (1 << 19) /* bits of a generation, in words of 64 */
#define FLOW_FRONT_STATE (2 * FLOW_FRONT / 64)

enum flow_front_state {
	FLOW_FRONT_SECOND = 1, /* the generation in which bits are set now */
	FLOW_FRONT_WHOLE = 2,  /* all rows have their bits: 0 after the map was made */
};

enum flow_kind {
	FLOW_TO_BACKEND = 1, /* the destination becomes addr and port */
	FLOW_TO_CLIENT = 2,  /* the source becomes addr and port, which are the VIP's */
	FLOW_DIRECT = 3,     /* from a backend, and of no VIP */
	FLOW_OVN = 4,	     /* to a VIP, and OVN's */
};

enum flow_state {
	FLOW_OPEN = 1,	 /* more than the first packet was seen */
	FLOW_ENDING = 2, /* TCP: a FIN or RST was seen */
};

/* A row may become another flow's while a program reads it: see flow_read(). */
struct flow {
	__u32 tag;  /* flow_tag() of its key */
	__u32 seen; /* s, CLOCK_MONOTONIC: the last packet, within a second */
	__u8 addr[16] __attribute__((aligned(8)));
	__be16 port;
	__u8 kind;     /* enum flow_kind */
	__u8 state;    /* enum flow_state */
	__u32 backend; /* row of backends, in both directions */
	__u32 owner;   /* 0: this node. For flows that another node decides on. */
	__u32 vip;     /* row of vip_stats; 0: none */
	/* FLOW_TO_BACKEND of a switch's machine: the destination's. The flow goes on when the row of neighbors ends. */
	__u8 mac[6] WORDS;
	__u16 pad;
};
ASSERT_SIZE(struct flow, 48);

/*
 * vip_stats, backend_stats: what was balanced, in pages. Each processor has a row of
 * its own: those of number n are n * processors and the ones that follow, counted over
 * all pages. Of backends the number is that of the row of backends.
 */
#define STATS_PAGE 16384 /* rows */
#define STATS_PAGES 1024

struct balanced {
	__u64 packets[2];  /* by enum direction: to backends, to clients */
	__u64 bytes[2];	   /* of those, from the IP header on */
	__u64 flows;	   /* that began */
	__u64 unrecorded;  /* packets that began one, and there were too many for a row of sessions */
	__u64 drops;	   /* that had no backend to go to */
	__u64 pad;
};
ASSERT_SIZE(struct balanced, 64);

/* rates: how many new flows to a VIP get rows, by the rows of vip_stats. Row 0 is for what is of none. */
struct rate {
	__u64 due;	  /* ns, CLOCK_MONOTONIC: see token_try() */
	__u32 unrecorded; /* until when (s) there may be flows that began and got no row */
	__u32 left;	  /* the same of flows that were left to OVN */
};
ASSERT_SIZE(struct rate, 16);

/* rooms: how full the maps of flows are, which evict rows when they are full: see room.h. */
enum flow_map {
	MAP_SESSIONS = 0,
	MAP_FLOWS = 1,
	FLOW_MAPS = 2,
};

struct room {
	__u64 rows;  /* at the daemon's last count, and written since: there are no more */
	__u64 limit; /* from so many on the map may evict; 0: the daemon has not counted yet */
};
ASSERT_SIZE(struct room, 16);

/* evictions: what follows from it for packets of backends. */
struct evictions {
	__u32 near;	 /* until when (s) connections of backends themselves are noted: a map is nearly full */
	__u32 until;	 /* until when (s) there may be flows that go on, and whose row was evicted */
	__u64 translated; /* packets of backends on such flows, whose VIP their tables told */
};
ASSERT_SIZE(struct evictions, 16);

/*
 * fragments: what was done with the first fragment of a packet to or from a VIP, by
 * struct flow_key with the packet's identification in place of ports. As struct flow.
 */
struct first_fragment {
	__u32 tag;
	__u32 seen; /* s, CLOCK_MONOTONIC */
	__u8 addr[16] __attribute__((aligned(8)));
	__u8 mac[6] WORDS; /* see struct flow */
	__u16 side;	   /* enum nat_side: which address becomes addr; 0: none */
};
ASSERT_SIZE(struct first_fragment, 32);

/*
 * clients: where machines send whose connections to VIPs are balanced before Open
 * vSwitch sees them: devices, and VLANs of those that are trunks.
 */
struct client_key {
	__u32 ifindex;
	__u32 vlan; /* VLAN identifier, 0 for none */
};
ASSERT_SIZE(struct client_key, 8);

enum client_flags {
	CLIENT_OVN = 1,	 /* OVN balances what the machine begins */
	CLIENT_IDLE = 2, /* no program is on its tap: its switch has no VIPs */
};

struct client {
	__u32 scope; /* of its VIPs */
	__u32 flags; /* enum client_flags */
	__u32 unknown; /* see struct vrf_front; never 0 */
	__u32 until;   /* of CLIENT_OVN, as that of VIP_OVN: see struct vip */
	__u64 due;     /* as that of struct rate, for all flows that the machine begins */
};
ASSERT_SIZE(struct client, 24);

/* neighbors: addresses of VIPs of a switch, and of their backends. */
struct neighbor_key {
	__u32 scope;
	__u8 addr[16] WORDS;
};
ASSERT_SIZE(struct neighbor_key, 20);

enum neighbor_flags {
	NEIGHBOR_VIP = 1,    /* the address has VIPs */
	NEIGHBOR_ANSWER = 2, /* nobody else tells machines the MAC address */
	NEIGHBOR_ECHO = 4,   /* machines' echo requests are answered */
};

/* The MAC address that frames to the address go to on the switch: its own, or that of a router's port. */
struct neighbor {
	__u8 mac[6] WORDS;
	__u16 flags; /* enum neighbor_flags */
};
ASSERT_SIZE(struct neighbor, 8);

/* scratch: memory for one packet, where the stack has no room: see struct work in flow.h. */
struct scratch {
	__u64 words[64];
};
ASSERT_SIZE(struct scratch, 512);

/* underlay: devices of the underlay by ifindex, where packets of the default VRF come in and go out. */
struct underlay {
	char name[16]; /* NUL-terminated; the programs do not read it */
};
ASSERT_SIZE(struct underlay, 16);

/* counters: per CPU, row = VRF index * 2 + direction; index 0: no VRF known. */
struct counter {
	__u64 packets; /* forwarded */
	__u64 bytes;   /* of those, from the IP header on */
	__u64 drops;
	__u64 answers; /* ARP, ND and ICMP errors that were sent */
};
ASSERT_SIZE(struct counter, 32);

#define SAMPLE_BYTES 128

/* samples: some of the dropped packets. */
struct sample {
	__u64 time;	/* ns, CLOCK_MONOTONIC */
	__u32 reason;	/* enum drop_reason */
	__u32 vni;	/* 0: not known */
	__u32 ifindex;
	__u32 len;	/* of the whole packet */
	__u16 caplen;	/* bytes of data that are filled */
	__u16 direction;
	__u32 pad;
	__u8 data[SAMPLE_BYTES];
};
ASSERT_SIZE(struct sample, 160);

/* What a step of a trace says, and what its value and addr hold. */
enum trace_what {
	STEP_VTEP = 1,	    /* outer source known; addr */
	STEP_VRF = 2,	    /* value: VNI */
	STEP_GATEWAY = 3,   /* frame came from entry value */
	STEP_SOURCE = 4,    /* addr is accepted from entry value */
	STEP_HOST = 5,	    /* exact route for addr; value: kind */
	STEP_PREFIX = 6,    /* longest match for addr; value: kind */
	STEP_ENTRY = 7,	    /* leads to entry value */
	STEP_SLOT = 8,	    /* slot value of the group */
	STEP_NEXTHOP = 9,   /* addr: VTEP, value: label */
	STEP_ARP = 10,	    /* answered for addr */
	STEP_ND = 11,	    /* answered for addr */
	STEP_ICMP = 12,	    /* error to addr; value: type << 8 | code */
	STEP_NO_ICMP = 13,  /* no error is sent; value: enum icmp_refusal */
	STEP_FRAGMENT = 14, /* outer DF is cleared; value: inner size */
	STEP_REDIRECT = 15, /* value: ifindex */
	STEP_DROP = 16,	    /* value: enum drop_reason */
	STEP_KERNEL = 17,   /* the VRF is on the kernel path; value: ifindex of its device */
	STEP_PASS = 18,	    /* on to the host, unchanged */
	STEP_FIB = 19,	    /* the host's route; addr: next hop, value: ifindex */
	STEP_VIP = 20,	    /* addr is a VIP; value: struct vip's table */
	STEP_MEMBER = 21,   /* value: slot of the table */
	STEP_FLOW = 22,	    /* a flow is known; value: enum flow_kind */
	STEP_BACKEND = 23,  /* addr and value: address and port of the backend */
	STEP_ANSWER = 24,   /* a backend's answer; addr and value: address and port of the VIP */
	STEP_ECHO = 25,	    /* an echo request to the VIP addr is answered */
	STEP_QUOTED = 26,   /* an ICMP error about a packet of a flow to a VIP, which is now one of addr and value, an address and a port */
	STEP_KEPT = 27,	    /* the client keeps its backend; value: row of it */
	STEP_LEFT = 28,	    /* OVN balances the flow to a VIP */
};

struct trace_step {
	__u32 what;
	__u32 value;
	__u8 addr[16] WORDS;
};
ASSERT_SIZE(struct trace_step, 24);

/* Why no ICMP error is sent about a dropped packet. */
enum icmp_refusal {
	REFUSED_IS_ERROR = 1,	  /* the packet is an ICMP error itself */
	REFUSED_FRAGMENT = 2,	  /* a later fragment */
	REFUSED_NO_SOURCE = 3,	  /* there is no address to send it from */
	REFUSED_BOGUS_SOURCE = 4, /* the packet's source is not reached through the fabric */
	REFUSED_RATE = 5,
	REFUSED_KERNEL = 6, /* the kernel refused to change the packet */
};

#define TRACE_STEPS 32

/* trace: one row, the scratch of trace mode. */
struct trace {
	__u64 nonce; /* 0: off */
	/* What the wrapper puts on the packet. */
	__u32 program; /* slot of the live programs */
	__u32 vni;     /* tunnel key, when family is set */
	__u16 family;  /* 0, 4 or 6 */
	__u16 vlan;    /* tag to push, 0 for none */
	__u8 remote[16] WORDS; /* outer source; IPv4: the first four bytes */
	/* What the program decided. */
	__u32 count;
	struct trace_step steps[TRACE_STEPS];
};
ASSERT_SIZE(struct trace, 40 + 24 * TRACE_STEPS);

/* How the outer DF bit is set. */
enum df_mode {
	DF_AUTO = 0,  /* as the inner packet has it; IPv6 has it, up to 1280 bytes if they fit */
	DF_SET = 1,   /* always set */
	DF_CLEAR = 2, /* never set: what does not fit is fragmented outside */
};

/* Constants of this node, in .rodata: changed only with the programs. */
struct node_constants {
	__u8 router_mac[6] WORDS;
	__u8 df; /* enum df_mode */
	__u8 zero_csum; /* 1: no outer UDP checksum */
	__u8 nexthop_mac[6] WORDS;
	__u16 underlay_mtu;
	__u32 vxlan_ifindex;
	__be32 vtep4;	     /* 0: none */
	__u8 vtep6[16] WORDS; /* all 0: none */
	__u32 route_front_mask; /* rows of route_front, less 1 */
	__u32 processors;	/* that there may be */
	/* Token buckets: ns per token, and ns of tokens that are kept. */
	__u64 icmp_interval;
	__u64 icmp_burst;
	__u64 sample_interval;
	__u64 sample_burst;
	/* Of new flows of each VIP. 0: there is no limit. */
	__u64 flow_interval;
	__u64 flow_burst;
};
ASSERT_SIZE(struct node_constants, 96);
