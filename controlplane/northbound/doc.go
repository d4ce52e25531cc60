// Package northbound is the store of what writes OVN's Northbound database: load balancers,
// and what they stand on.
//
//	store, err := northbound.New(northbound.Config{Endpoints: …})
//	go store.Run(ctx)
//	snapshot := store.Snapshot() // immutable: a list of 10,000 rows blocks nobody
//	for lb := range northbound.All[*nb.LoadBalancer](snapshot) { … }
//
//	err = store.Commit(ctx, "create load balancer", func(tx *northbound.Tx) error {
//		network, ok := northbound.One(tx, northbound.SwitchByName, "neutron-…", "name")
//		…
//		tx.Insert(&nb.LoadBalancer{UUID: northbound.NewUUID(), …})
//		tx.Add(network, "load_balancer", …)
//		return nil
//	})
//
// A transaction is a pure function of a snapshot. What it reads is recorded: the rows that it got,
// each with the columns that it named, and for a question to an index the set of rows that answer
// it. The store sends these as waits before what the transaction writes, so that a write never
// rests on rows that are not so any more. There is no other guard: two replicas, and ovn-nbctl
// beside them, are the normal case. After a conflict the function is called again, with a snapshot
// that has the rows which it conflicted with.
//
// A row that a transaction gets has the columns that were named and zero values in the others.
package northbound
