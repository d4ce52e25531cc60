package ovsdb

import "github.com/ovn-org/libovsdb/model"

// Row is a pointer to a generated struct, such as *sb.PortBinding.
type Row interface {
	OVSDBTable() string
	GetUUID() string
	model.CloneableModel
	model.ComparableModel
}

// Change is what happened to one row. Old is nil for a row that is new to the
// handler, New is nil for one that is gone (deleted, or no longer matched by the
// conditions).
type Change struct {
	Table    string
	UUID     string
	Old, New Row
}

// Batch is what one call of the handler gets. Its changes are one consistent
// step: before and after it, the handler's copy is a state that the server had.
// A batch without changes tells that InSync, Connected or Locks changed.
type Batch struct {
	// Changes are sorted by table and UUID; a row is in it once.
	Changes []Change
	// InSync: connected, and the content is complete for all conditions asked
	// so far.
	InSync bool
	// Generation counts the SetConditions that changed something before the batch was made: a
	// handler that has called SetConditions since tells by it which conditions InSync speaks of.
	Generation uint64
	Connected  bool
	// Locks are those of Config.Locks that this connection holds, sorted.
	Locks []string
	// Endpoint is the server's, as in the configuration; empty if not connected.
	Endpoint string
}

// Handler is called from the goroutine of Session.Run. While it runs, echo
// requests are answered and transactions go on.
type Handler func(Batch)
