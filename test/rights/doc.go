// Package rights runs sluiced as the systemd unit does, and with each of its capabilities taken away:
// what breaks is what the unit's comment says of it.
//
// It owns one lab with a load balancer and metadata, whose node a1 starts over pins with VIPs each time.
package rights
