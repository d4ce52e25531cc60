// Package nb holds the rows of OVN's Northbound database as Go structs, one
// type a table, generated from ../schema/ovn-nb.ovsschema. The schema is the newest
// that Sluice knows; a column that the running server lacks keeps its zero
// value (see ovsdb.Session.Has).
package nb

//go:generate go run ../../../tools/ovsdbmodels -package nb ../schema/ovn-nb.ovsschema
