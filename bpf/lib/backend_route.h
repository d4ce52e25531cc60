/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Backends of VIPs that no route of their VRF leads to. */
#include "lookup.h"

/* backend_route is the way to a backend that no route of the VRF leads to; 0: there is none. */
static __noinline __u64 backend_route(struct run *r, const struct address *a)
{
	struct host_key k = {.vni = r->vni};

	words_copy4(k.addr, a->addr);
	__u64 route = route_word(bpf_map_lookup_elem(&backend_routes_v1, &k));

	if (route)
		STEP(r, STEP_HOST, route_kind(route), a->addr);
	return route;
}
