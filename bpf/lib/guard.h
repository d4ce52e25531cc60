/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Rows of the devices that hand over to the routes of a VRF on the kernel path. */
#include "types.h"

enum guard_flags {
	GUARD_FROM_OVN = 1, /* the VRF's end of a pair to a provider bridge; else br-<vni> */
};

/* guarded: by ifindex. */
struct guarded {
	__u32 vni;
	__u32 flags;	     /* enum guard_flags */
	__u8 icmp6[16] WORDS; /* source of packet-too-big towards OVN, 0 for none */
};
ASSERT_SIZE(struct guarded, 24);

/* The metric of the routes of tenants, and of no other (dataplane/kernel, RouteMetric). */
#define TENANT_METRIC 173
