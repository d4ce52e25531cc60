// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* No program: the pinned maps alone, so that the loader can make or adopt them first. */
#include "lib/maps.h"
#include "lib/node.h"

/* Types that no map mentions, for the daemon's Go types. */
const struct sample *sample_type __attribute__((unused));
const enum direction *direction_type __attribute__((unused));
const enum entry_flags *entry_flags_type __attribute__((unused));
const enum served_answer *served_answer_type __attribute__((unused));
const enum route_kind *route_kind_type __attribute__((unused));
const enum trace_what *trace_what_type __attribute__((unused));
const enum icmp_refusal *icmp_refusal_type __attribute__((unused));
const enum length_end *length_end_type __attribute__((unused));
const enum guard_flags *guard_flags_type __attribute__((unused));
const enum vip_flags *vip_flags_type __attribute__((unused));
const enum flow_kind *flow_kind_type __attribute__((unused));
const enum session_end *session_end_type __attribute__((unused));
const enum flow_state *flow_state_type __attribute__((unused));
const enum flow_front_state *flow_front_state_type __attribute__((unused));
const enum flow_map *flow_map_type __attribute__((unused));
const enum client_flags *client_flags_type __attribute__((unused));
const enum neighbor_flags *neighbor_flags_type __attribute__((unused));
const struct balanced *balanced_type __attribute__((unused));
const struct maglev_member *maglev_member_type __attribute__((unused));
const enum df_mode *df_mode_type __attribute__((unused));

char _license[] SEC("license") = "Dual BSD/GPL";
