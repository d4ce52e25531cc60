// Package sb holds the rows of OVN's Southbound database as Go structs, one
// type a table, generated from ../schema/ovn-sb.ovsschema. The schema is the newest
// that Sluice knows; a column that the running server lacks keeps its zero
// value (see ovsdb.Session.Has).
package sb

//go:generate go run ../../../tools/ovsdbmodels -package sb ../schema/ovn-sb.ovsschema
