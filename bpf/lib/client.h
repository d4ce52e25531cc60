/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/*
 * Machines on their taps, whose connections to VIPs are balanced right there: the tables
 * are those of the machine's switch. What is not theirs to balance goes on as it came, to
 * other programs of the tap, and to Open vSwitch or to the machine.
 */
#include "parse.h"

static __always_inline const struct neighbor *neighbor_of(const struct run *r, const struct address *a)
{
	struct neighbor_key k = {.scope = r->vni};

	words_copy4(k.addr, a->addr);
	return bpf_map_lookup_elem(&neighbors_v1, &k);
}

/* client_parse reads a packet to or from a machine. 0: it is not for programs, but for whoever is next. */
static __always_inline int client_parse(struct __sk_buff *skb, struct packet *p)
{
	void *data = frame(skb, ETH_HLEN);

	if (!data)
		return 0;
	switch (((struct ethhdr *)data)->h_proto) {
	case bpf_htons(ETH_P_IP):
		return !parse4(skb, p);
	case bpf_htons(ETH_P_IPV6):
		return !parse6(skb, p) && !check6(p);
	}
	return 0;
}

#ifdef CLIENT
/* client_find finds the machine of a frame. 0: nothing of it is balanced. */
static __always_inline int client_find(struct run *r)
{
	r->tap = (struct client_key){.ifindex = r->skb->ifindex, .vlan = vlan_of(r->skb)};
	/* A service tag (802.1ad) of the same number is another network. */
	if (r->skb->vlan_present && r->skb->vlan_proto != bpf_htons(ETH_P_8021Q))
		return 0;
	r->client = bpf_map_lookup_elem(&clients_v2, &r->tap);
	if (!r->client)
		return 0;
	r->vni = r->client->scope;
	r->unknown = r->client->unknown;
	return 1;
}

/* client_neighbor finds the MAC address of the backend that was chosen. 0: there is none. */
static __always_inline int client_neighbor(struct run *r)
{
	const struct neighbor *n = neighbor_of(r, &r->to);

	if (!n)
		return 0;
	mac_copy(r->mac, n->mac);
	return 1;
}
#endif
