/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* Ethernet addresses. */
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

/* Ethernet addresses are compared as a word and a half. */
static __always_inline int mac_equal(const void *a, const volatile void *b)
{
	return *(const __u32 *)a == *(const volatile __u32 *)b &&
	       ((const __u16 *)a)[2] == ((const volatile __u16 *)b)[2];
}

/* The same for a place that is not aligned to a word. */
static __always_inline int mac_equal_half(const void *a, const void *b)
{
	const __u16 *x = a, *y = b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]));
}

static __always_inline void mac_copy(void *to, const volatile void *from)
{
	*(__u32 *)to = *(const volatile __u32 *)from;
	((__u16 *)to)[2] = ((const volatile __u16 *)from)[2];
}

/* The same for a place on the stack that is not aligned to a word. */
static __always_inline void mac_copy_half(void *to, const volatile void *from)
{
	const volatile __u16 *f = from;
	__u16 *t = to;

	t[0] = f[0];
	t[1] = f[1];
	t[2] = f[2];
}
