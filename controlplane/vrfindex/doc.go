// Package vrfindex hands out the small number of each VRF: its slot in the
// counter map and the number in its route distinguisher (RFC 4364 section 4.2,
// type 1: an IPv4 address and 16 bits, which a VNI does not fit in).
//
// The numbers are kept in one JSON file, written to a temporary file and renamed,
// so that a crash leaves the old or the new one. [Store.Run] writes it: whoever asks for
// numbers does not wait for the disk, and neither programs nor announces one before it is
// [Store.Kept]. A number that is released is given out again only
// after all others that were free longer.
//
// Beside a number the file has the routers that named the VNI on this node, in the order in
// which they came to it: of two that cannot share it the first one keeps it, also over a
// restart ([Store.Seniority]).
//
// Losing the file means: the numbers that the pinned maps still show are taken
// over ([Open]'s seed); without those, numbers are given out anew, and BGP peers
// see each route withdrawn under the old route distinguisher and announced
// under the new one.
package vrfindex
