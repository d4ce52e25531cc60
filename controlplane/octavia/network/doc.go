// Package network reads the networks and subnets that OVN's Northbound database has, whoever
// wrote them, under the IDs that the API knows them by.
//
// A network is a Logical_Switch. It has the ID of the Neutron network after which it is named
// (neutron-<id>), else the row's UUID. Its subnets are, in this order, each prefix once:
//
//	Neutron's  the interfaces of routers (Logical_Router_Port, external_ids:neutron:subnet_ids)
//	OVN's      other_config:subnet and other_config:ipv6_prefix of the switch
//	derived    the networks of the router ports that the switch is connected to
//
// The IDs of subnets that Neutron does not know are made of the switch's UUID or the router port's
// name, and the prefix, and stay the same.
package network
