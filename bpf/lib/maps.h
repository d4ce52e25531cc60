/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* The pinned maps. Sizes are the defaults; the loader sets the configured ones. */
#include "types.h"
#include "drop_reasons.h"
#include "guard.h"

#include <bpf/bpf_helpers.h>

#define MAX_VRFS 4096
#define MAX_HOSTS 1000000
#define MAX_PREFIXES 250000
#define MAX_VIPS 16384

/* Version 1 had no device in its rows, and no row DEFAULT_VRF; they mean the same here. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_VRFS);
	__type(key, __u32); /* VNI */
	__type(value, struct vrf);
} vrfs_v2 SEC(".maps");

/* Mapped into the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VRF_FRONT);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct vrf_front);
} vrf_front_v2 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vtep_key);
	__type(value, struct vtep);
} vteps_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VTEP_FRONT);
	__type(key, __u32);
	__type(value, __be32);
} vtep_front_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct gateway_key);
	__type(value, struct gateway);
} gateways_v1 SEC(".maps");

/* The entry itself says which gateway it is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GATEWAY_FRONT);
	__type(key, __u32);
	__type(value, struct gateway);
} gate_front_v2 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct entry);
} entries_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* row of entries */
	__type(value, struct gateway_name);
} names_v1 SEC(".maps");

/* One gateway of a VRF, for errors about packets that match no route. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_VRFS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);   /* VNI */
	__type(value, __u32); /* row of entries */
} speakers_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct served_key);
	__type(value, struct served);
} served_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct known_key);
	__type(value, struct known);
} known_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, __u32); /* row of entries */
	__type(value, struct asked);
} asked_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_HOSTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct host_key);
	__type(value, struct route);
} hosts_v1 SEC(".maps");

/*
 * Backends that no route of their VRF leads to: their networks are not exposed. Only
 * packets that are balanced find them, and only answers are accepted from them.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct host_key);
	__type(value, struct route);
} backend_routes_v1 SEC(".maps");

/* Mapped into the daemon, which writes a row of it for each route. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 524288); /* a power of 2 */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct route_front);
} route_front_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix4_key);
	__type(value, struct route);
} prefixes4_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix6_key);
	__type(value, struct route);
} prefixes6_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PREFIX_CACHE);
	__type(key, __u32);
	__type(value, struct prefix_cache);
} prefix_cache_v1 SEC(".maps");

/* One more after each change of a prefix; 0: nothing is cached. Mapped into the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u32);
} prefix_gen_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct nexthop);
} nexthops_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vtep_key);
	__type(value, struct path_mtu);
} path_mtus_v1 SEC(".maps");

/* The least of path_mtus: a smaller packet fits everywhere. 0: there is no row. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct path_mtu);
} path_least_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct group);
} groups_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_VIPS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vip_key);
	__type(value, struct vip);
} vips_v2 SEC(".maps");

/* Mapped into the daemon: to write a map into maglev waits for all programs that run. */
struct maglev_page {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_PAGE);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TABLE_PAGES);
	__type(key, __u32);
	__array(values, struct maglev_page);
} maglev_v2 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct backend);
} backends_v1 SEC(".maps");

/* struct balanced: for an inner map the compiler describes no more of a structure than its name. */
typedef __u64 balanced_words[sizeof(struct balanced) / sizeof(__u64)];

/* Mapped into the daemon. */
struct stats_page {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STATS_PAGE);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, balanced_words);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, STATS_PAGES);
	__type(key, __u32);
	__array(values, struct stats_page);
} vip_stats_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, STATS_PAGES);
	__type(key, __u32);
	__array(values, struct stats_page);
} backend_stats_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct vip_key);
	__type(value, struct answers);
} answers_v2 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BACKEND_FRONT / 64);
	__type(key, __u32);
	__type(value, __u64);
} backend_front_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct session_key);
	__type(value, struct session);
} sessions_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows_v4 SEC(".maps");

/* Mapped into the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOW_FRONT_STATE + 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} flow_front_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 + 2 * 65536);
	__type(key, __u32); /* row of vip_stats */
	__type(value, struct rate);
} rates_v1 SEC(".maps");

/* The latest of all times until when there may be flows without a row: see struct rate. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} unrecorded_v1 SEC(".maps");

/* Mapped into the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOW_MAPS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32); /* enum flow_map */
	__type(value, struct room);
} rooms_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct evictions);
} evictions_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct flow_key);
	__type(value, struct first_fragment);
} fragments_v3 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch_v2 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct client_key);
	__type(value, struct client);
} clients_v2 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct neighbor_key);
	__type(value, struct neighbor);
} neighbors_v1 SEC(".maps");

/* The backends that clients of VIPs with affinity had last: flow_key without the client's port. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct flow_key);
	__type(value, struct flow);
} affinity_v3 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * (MAX_VRFS + 1));
	__type(key, __u32);
	__type(value, struct counter);
} counters_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DROP_COUNT);
	__type(key, __u32); /* enum drop_reason */
	__type(value, __u64);
} drops_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} samples_v1 SEC(".maps");

/* When the next token is due, by the row of counters; row 0: samples. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * (MAX_VRFS + 1));
	__type(key, __u32);
	__type(value, __u64);
} buckets_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace);
} trace_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* ifindex */
	__type(value, struct guarded);
} guarded_v1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* ifindex */
	__type(value, struct underlay);
} underlay_v1 SEC(".maps");
