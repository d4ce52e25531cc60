package ebpf

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Served drives the maps served and known.
type Served struct{ s *store }

// Served is the driver of the table Served.
func (d *Dataplane) Served() *Served { return &Served{d.store} }

// servedFixed are the bits of a key before the address.
const servedFixed = 64

func servedKernelKey(row uint32, p netip.Prefix) bpfServedKey {
	k := bpfServedKey{Entry: row, Family: 6, Prefixlen: servedFixed + uint32(p.Bits())}
	if p.Addr().Is4() {
		k.Family = 4
		b := p.Addr().As4()
		copy(k.Addr[:], b[:])
		return k
	}
	k.Addr = p.Addr().As16()
	return k
}

func servedPrefix(k bpfServedKey) netip.Prefix {
	a := netip.AddrFrom16(k.Addr)
	if k.Family == 4 {
		a = netip.AddrFrom4([4]byte(k.Addr[:4]))
	}
	return netip.PrefixFrom(a, int(k.Prefixlen)-servedFixed)
}

// List reads the map.
func (v *Served) List(context.Context) (map[intent.ServedKey]intent.Served, error) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	out := map[intent.ServedKey]intent.Served{}
	_, err := pinned.Walk(v.s.t[bpfMapServedV1], func(k bpfServedKey, value bpfServed) {
		key := intent.ServedKey{Gateway: v.s.entries.keys[k.Entry].gateway, Prefix: servedPrefix(k)}
		out[key] = intent.Served{Key: key, Answer: value.Answer != 0}
	})
	if err != nil {
		return nil, mapError(bpfMapServedV1, err)
	}
	return out, v.s.listKnown(out)
}

// adoptServed copies the map and counts its rows as references to entries. An entry
// that has lost its name is out of service.
func (s *store) adoptServed() error {
	n, err := pinned.Walk(s.t[bpfMapServedV1], func(k bpfServedKey, v bpfServed) {
		s.served[k] = v
		if _, named := s.entries.keys[k.Entry]; !named {
			s.entries.adopt(k.Entry, outOfService(k.Entry))
		}
		s.entries.retain(k.Entry)
	})
	s.rows[bpfMapServedV1] = n
	return mapError(bpfMapServedV1, err)
}

// Apply writes rows, each after its gateway.
func (v *Served) Apply(_ context.Context, rows []reconcile.Row[intent.ServedKey, intent.Served]) []error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	var out results
	// Known ports first: nobody answers for them in between.
	for _, segment := range []bool{true, false} {
		for i, r := range rows {
			if r.Key.Gateway.IsSegment() != segment {
				continue
			}
			apply := v.s.applyServed
			if segment {
				apply = v.s.applyKnown
			}
			if err := apply(r.Value); err != nil {
				out.set(len(rows), i, fmt.Errorf("served %s behind %s: %w", r.Key.Prefix, r.Key.Gateway, err))
			}
		}
	}
	return out
}

func (s *store) applyServed(r intent.Served) error {
	l, ok := s.live[r.Key.Gateway]
	if !ok {
		return fmt.Errorf("for the gateway: %w", reconcile.ErrNotReady)
	}
	if !r.Key.Prefix.IsValid() {
		return fmt.Errorf("%s is no prefix", r.Key.Prefix)
	}
	var value bpfServed
	switch {
	case r.Answer && r.Key.Prefix.IsSingleIP():
		value.Answer = uint32(bpfServedAnswerSERVED_LISTED)
	case r.Answer:
		value.Answer = uint32(bpfServedAnswerSERVED_ALL)
	}
	k := servedKernelKey(l.row, r.Key.Prefix)
	_, had := s.served[k]
	if err := putTrie(s, bpfMapServedV1, s.served, k, value); err != nil {
		return err
	}
	if !had {
		s.entries.retain(l.row)
	}
	return nil
}

// Delete removes rows.
func (v *Served) Delete(_ context.Context, keys []intent.ServedKey) []error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	var out results
	// Known ports last.
	for _, segment := range []bool{false, true} {
		for i, k := range keys {
			if k.Gateway.IsSegment() != segment {
				continue
			}
			remove := v.s.deleteServed
			if segment {
				remove = v.s.deleteKnown
			}
			if err := remove(k); err != nil {
				out.set(len(keys), i, fmt.Errorf("served %s behind %s: %w", k.Prefix, k.Gateway, err))
			}
		}
	}
	return out
}

// deleteServed removes the row behind the gateway's entry, in service or retired.
func (s *store) deleteServed(k intent.ServedKey) error {
	for row, e := range s.entries.keys {
		key := servedKernelKey(row, k.Prefix)
		if _, had := s.served[key]; e.gateway != k.Gateway || !had {
			continue
		}
		if err := dropTrie(s, bpfMapServedV1, s.served, key); err != nil {
			return err
		}
		if err := s.releaseEntry(row); err != nil {
			return err
		}
	}
	return nil
}

// moveServed gives an entry what is served behind another one.
func (s *store) moveServed(from, to uint32) error {
	for k, v := range s.served {
		if k.Entry != from {
			continue
		}
		moved := k
		moved.Entry = to
		if err := putTrie(s, bpfMapServedV1, s.served, moved, v); err != nil {
			return err
		}
		s.entries.retain(to)
		if err := dropTrie(s, bpfMapServedV1, s.served, k); err != nil {
			return err
		}
		if err := s.releaseEntry(from); err != nil {
			return err
		}
	}
	return nil
}
