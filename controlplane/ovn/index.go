package ovn

import "github.com/ovn-sluice/sluice/pkg/multimap"

// index finds rows by a key. A set is kept per key since a name may be carried by
// two rows for a moment, between a deletion and an insertion in one batch.
type index[K comparable] = multimap.Map[K, UUID]
