// Package rowform reads and writes Load_Balancer rows in the form of ovn-octavia-provider 8.0.0:
// one row for each transport protocol of a load balancer, all with its ID as their name; its
// listeners and pools as keys of external_ids, and vips computed from these.
//
// Keys that the form does not have are kept as they are. Rows of older providers, which have no
// "enabled" and bare endpoints in their pools, are read, and become rows of this form when they are
// written.
package rowform
