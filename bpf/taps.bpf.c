// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* No program: the pinned maps of tap_in and proxy_in alone, as maps.bpf.c has those of the others. */
#include "lib/metadata.h"

char _license[] SEC("license") = "Dual BSD/GPL";
