package bgp

import (
	"strings"

	api "github.com/osrg/gobgp/v3/api"
)

// Families is a set of address families of a session (RFC 4760).
type Families uint8

// The families. A session of none has EVPN.
const (
	FamilyEVPN Families = 1 << iota
	FamilyIPv4
	FamilyIPv6
)

var familyNames = map[Families]string{FamilyEVPN: "evpn", FamilyIPv4: "ipv4", FamilyIPv6: "ipv6"}

// Has tells whether all of some families are in the set.
func (f Families) Has(some Families) bool { return f&some == some }

func (f Families) unicast() Families { return f & (FamilyIPv4 | FamilyIPv6) }

// List gives the families one by one.
func (f Families) List() (out []Families) {
	for _, one := range []Families{FamilyEVPN, FamilyIPv4, FamilyIPv6} {
		if f.Has(one) {
			out = append(out, one)
		}
	}
	return out
}

func (f Families) String() string {
	var words []string
	for _, one := range f.List() {
		words = append(words, familyNames[one])
	}
	return strings.Join(words, " ")
}

// spelled lists the families as routers' configurations have them.
func (f Families) spelled() string {
	words := map[Families]string{FamilyEVPN: "l2vpn evpn", FamilyIPv4: "ipv4 unicast", FamilyIPv6: "ipv6 unicast"}
	var out []string
	for _, one := range f.List() {
		out = append(out, words[one])
	}
	return strings.Join(out, ", ")
}

// wire is a single family as the BGP server has it.
func (f Families) wire() *api.Family {
	switch f {
	case FamilyIPv4:
		return &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}
	case FamilyIPv6:
		return &api.Family{Afi: api.Family_AFI_IP6, Safi: api.Family_SAFI_UNICAST}
	}
	return evpnFamily()
}

// familyOf is that of a path or an End-of-RIB; 0 for one that is not used.
func familyOf(f *api.Family) Families {
	for _, one := range []Families{FamilyEVPN, FamilyIPv4, FamilyIPv6} {
		if w := one.wire(); w.Afi == f.GetAfi() && w.Safi == f.GetSafi() {
			return one
		}
	}
	return 0
}
