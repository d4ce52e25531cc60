// Package sb holds the rows of OVN's Southbound database as Go structs, one
// type a table that code uses (-tables), generated from ../schema/ovn-sb.ovsschema. The schema is the newest
// that Sluice knows; a column that the running server lacks keeps its zero
// value (see ovsdb.Session.Has).
package sb

//go:generate go run ../../../tools/ovsdbmodels -package sb -tables Address_Set,Advertised_Route,Chassis,Chassis_Private,Chassis_Template_Var,Connection,Datapath_Binding,Encap,FDB,HA_Chassis,HA_Chassis_Group,IGMP_Group,Load_Balancer,Logical_DP_Group,MAC_Binding,Port_Binding,RBAC_Role,SB_Global,Service_Monitor ../schema/ovn-sb.ovsschema
