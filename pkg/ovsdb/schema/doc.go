// Package schema holds the OVSDB schemas that the generated models are made
// from: OVN 25.03's and Open vSwitch 3.5's. Tests create databases from them, and from OVN
// 23.03's.
//
// No program reads them: which tables and columns a server has, package ovsdb
// asks it at each connect.
package schema
