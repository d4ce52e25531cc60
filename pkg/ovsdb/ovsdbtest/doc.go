// Package ovsdbtest runs real ovsdb-server processes for tests: a standalone
// database, a RAFT cluster, a relay, over unix sockets, TCP and TLS.
//
//	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound})
//	server.Endpoint()           // "unix:/tmp/…/0/db.sock"
//	server.Stop(); server.Run() // a restart with the same file and addresses
//
// Everything lives in the test's temporary directory and loopback ports, and is
// stopped by the test's cleanup. A missing program fails the test.
package ovsdbtest
