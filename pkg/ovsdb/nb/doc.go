// Package nb holds the rows of OVN's Northbound database as Go structs, one
// type a table that code uses (-tables), generated from ../schema/ovn-nb.ovsschema. The schema is the newest
// that Sluice knows; a column that the running server lacks keeps its zero
// value (see ovsdb.Session.Has).
package nb

//go:generate go run ../../../tools/ovsdbmodels -package nb -tables ACL,DHCP_Options,Load_Balancer,Load_Balancer_Group,Load_Balancer_Health_Check,Logical_Router,Logical_Router_Port,Logical_Router_Static_Route,Logical_Switch,Logical_Switch_Port,NAT,NB_Global,Port_Group ../schema/ovn-nb.ovsschema
