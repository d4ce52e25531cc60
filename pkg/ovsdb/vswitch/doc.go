// Package vswitch holds the rows of a node's Open vSwitch database as Go structs, one
// type a table that code uses (-tables), generated from ../schema/vswitch.ovsschema. The schema is the newest
// that Sluice knows; a column that the running server lacks keeps its zero
// value (see ovsdb.Session.Has).
package vswitch

//go:generate go run ../../../tools/ovsdbmodels -package vswitch -tables Bridge,Interface,Open_vSwitch,Port,QoS,Queue,SSL ../schema/vswitch.ovsschema
