// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * client_out: egress of a machine's tap. What a backend sends to the machine on a flow
 * that client_in has balanced comes from the VIP. All else goes on as it came.
 */
#define ANSWERS
#define CLIENT
#include "lib/client.h"
#include "lib/vip_error.h"

SEC("tc")
int client_out(struct __sk_buff *skb)
{
	struct run r;
	struct work *w = work_of();

	run_start(&r, skb, TO_FABRIC);
	if (!client_find(&r) || !w || !client_parse(skb, &w->packet))
		return TC_ACT_UNSPEC;
	struct packet *p = &w->packet;
	__u32 reason = answer_may(&r, p) ? answer_apply(&r, p) : DROP_NONE;

	return reason ? drop(&r, reason) : TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual BSD/GPL";
