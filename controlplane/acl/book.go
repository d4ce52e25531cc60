package acl

import (
	"net/netip"
	"slices"
	"strings"
)

// Book has matches and address sets that were read, since the same ones are asked of many
// ports. The zero value is empty. It is used by one goroutine at a time.
type Book struct {
	matches shelf[reading]
	sets    shelf[members]
}

// shelf is what was read, and what of it was asked for since the last turn.
type shelf[V any] struct{ read, used map[string]V }

func (s *shelf[V]) turn() { s.read, s.used = s.used, nil }

func (s *shelf[V]) find(key string) (V, bool) {
	if v, ok := s.used[key]; ok {
		return v, true
	}
	v, ok := s.read[key]
	if ok {
		s.put(key, v)
	}
	return v, ok
}

func (s *shelf[V]) put(key string, v V) {
	if s.used == nil {
		s.used = map[string]V{}
	}
	s.used[key] = v
}

// Turn forgets what was not asked for since the last turn.
func (b *Book) Turn() {
	b.matches.turn()
	b.sets.turn()
}

// reading is a match that was read.
type reading struct {
	Expr
	// bySource and namesPort are what the functions say.
	bySource, namesPort bool
}

func (b *Book) match(text string) reading {
	m, ok := b.matches.find(text)
	if !ok {
		// What cannot be read is the zero value, which is unknown.
		m.Expr, _ = Parse(text)
		m.bySource, m.namesPort = bySource(m.root), namesPort(m.root)
		b.matches.put(text, m)
	}
	return m
}

// members are those of an address set.
type members struct {
	text      []string
	addresses map[netip.Addr]struct{}
	prefixes  []netip.Prefix
	// odd: one of them is no address.
	odd bool
}

// reader has the members of address sets read once. A list that is another one is read anew.
func (b *Book) reader(sets func(name string) ([]string, bool)) func(netip.Addr, string) Truth {
	return func(a netip.Addr, set string) Truth {
		text, known := sets(set)
		if !known {
			return Unknown
		}
		m, read := b.sets.find(set)
		if !read || len(m.text) != len(text) || len(text) > 0 && &m.text[0] != &text[0] {
			m = readMembers(text)
			b.sets.put(set, m)
		}
		return m.have(a)
	}
}

func readMembers(text []string) members {
	m := members{text: text, addresses: map[netip.Addr]struct{}{}}
	for _, word := range text {
		switch v := parseConstant(strings.TrimSpace(word)); {
		case v.kind == isMAC:
		case v.kind != isPrefix:
			m.odd = true
		case v.prefix.IsSingleIP():
			m.addresses[v.prefix.Addr()] = struct{}{}
		default:
			m.prefixes = append(m.prefixes, v.prefix)
		}
	}
	return m
}

func (m members) have(a netip.Addr) Truth {
	_, yes := m.addresses[a]
	switch {
	case yes || slices.ContainsFunc(m.prefixes, func(p netip.Prefix) bool { return p.Contains(a) }):
		return Yes
	case m.odd:
		return Unknown
	}
	return No
}
