// Package ovsdb is a client of OVSDB servers: OVN's Southbound and Northbound
// databases and a node's Open vSwitch database.
//
// A Session keeps a local copy of the rows that its conditions ask for, over one
// connection with one monitor, and hands every change to one handler:
//
//	db := sb.Database() // pkg/ovsdb/sb, …/nb, …/vswitch: generated row types
//	s, err := ovsdb.NewSession(ovsdb.Config{
//		Database:   db,
//		Endpoints:  "ssl:[2001:db8::1]:6642,ssl:192.0.2.1:6642",
//		TLS:        ovsdb.TLSFiles{Cert: …, Key: …, CA: …},
//		Tables:     ovsdb.Tables{"Port_Binding": {"logical_port", "chassis"}, "Chassis": nil},
//		Conditions: ovsdb.Conditions{"Chassis": {ovsdb.All()}},
//		Handler:    func(b ovsdb.Batch) { … },
//		Logger:     logger,
//	})
//	err = s.Run(ctx) // blocks until ctx ends
//
// While it runs, from any goroutine (the handler's too):
//
//	s.SetConditions(ovsdb.Conditions{
//		"Port_Binding": {ovsdb.Equal("datapath", ovsdb.UUID(u)), ovsdb.Equal("type", "localnet")},
//		"Chassis":      {ovsdb.All()},
//	})
//	s.Has("IGMP_Group", "protocol") // does the server's schema have the column?
//	s.Transact(ctx, op, …)          // one transaction
//	s.Commit(ctx, op, …)            // the same, and the handler has its changes (not from the handler)
//	s.Status()
//
// What it promises:
//   - The handler is called from one goroutine, in order. One transaction of the
//     server is never split over two batches; several may be joined in one.
//   - Rows are pointers to the generated structs. They are shared: treat them and
//     what they refer to as read-only. Sets are sorted, empty sets and maps are
//     nil, so that rows compare with their EqualsModel.
//   - A lost connection deletes nothing. The first batch after a reconnect is the
//     exact difference between what the handler knows and what the server has.
//   - A reconnect does not take the rows back in time: a server is used when it has shown that its
//     content is as new as the rows handed on. Where none can, the first one is used
//     after Config.CatchUp, and Status.Behind says so.
//   - Batch.InSync is true only while connected, and only when the last
//     SetConditions has been answered and its rows are part of this batch or of
//     an earlier one.
//   - A clause on a column that the server's schema lacks matches nothing; such a
//     column reads as its zero value in all rows. Sluice's schemas are OVN 25.03's
//     and Open vSwitch 3.5's; older and newer servers work.
//   - A server that sends nonsense costs the connection, never the process.
//
// A writer guards what it computed with Wait, WaitExists and WaitNone: ErrConflict means that rows
// have changed since, and that the handler has the newer ones once Commit has returned. InsertAs
// makes a create that can be repeated. Assert binds a transaction to one of Config.Locks.
//
// It never retries a transaction, never interprets a row, and starts no goroutine
// outside Run. Why one monitor: docs/decisions/0002-one-monitor-per-session.md.
// libovsdb is imported in this tree only; its types that callers need have names
// here.
package ovsdb
