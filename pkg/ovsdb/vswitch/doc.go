// Package vswitch holds the rows of a node's Open vSwitch database as Go structs, one
// type a table, generated from ../schema/vswitch.ovsschema. The schema is the newest
// that Sluice knows; a column that the running server lacks keeps its zero
// value (see ovsdb.Session.Has).
package vswitch

//go:generate go run ../../../tools/ovsdbmodels -package vswitch ../schema/vswitch.ovsschema
