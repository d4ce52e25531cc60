package northbound

// Memo is what f makes of a Snapshot, made once for a key; for a Tx it is made each time. f may peek
// only: nothing guards what it reads.
func Memo[V any](from Reader, key any, f func() V) V {
	s, _ := from.(*Snapshot)
	if t, is := from.(*Trace); is {
		s = t.snapshot
	}
	if s == nil {
		return f()
	}
	if v, made := s.memos.Load(key); made {
		return v.(V)
	}
	v := f()
	s.memos.Store(key, v)
	return v
}
