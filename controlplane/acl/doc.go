// Package acl answers two questions of OVN's Northbound ACLs: do they let a packet out of
// a port, and do they say the same of a packet and of what it becomes when it is redirected?
// It is for what Sluice does in the place of OVN's own pipeline, where the ACLs are to hold
// all the same.
//
// It is pure, and knows three answers. What it does not understand, or what the packet
// does not say, is unknown; where the answer depends on that, it is unknown too. So a
// new field or action of OVN makes nobody reach what is forbidden.
//
// # What is read
//
// [Parse] reads the language of matches as Neutron and ovn-kubernetes write it: &&, ||, !
// and parentheses; comparisons of fields with numbers, addresses, prefixes, Ethernet
// addresses, names, sets of these, $address_sets and @port_groups; and fields alone, such
// as ip4. As in OVN, && and || do not mix without parentheses, and a comparison with a
// field of a protocol holds for packets of that protocol only, != and ! in front included.
//
// [Decide] goes by tier, then by priority. Of ACLs of one priority any may count, in
// OVN too: if they do not say the same, the answer is unknown.
//
// [Judge] looks at two packets that differ in their destination alone. A match may be met by
// neither, by one of them, or by both, and often more than one of these four may be: what is
// not known of the sender, or of the connection's state, is the same of both. From there it
// goes up the priorities and tiers as [Book.Decide] does, with pairs of answers, and tells
// apart those that are certainly two of a kind.
//
// Only the direction from-lport is looked at, and the first packet of a connection: what
// lets that out lets the rest pass, and the answers.
package acl
