package octavia

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// Attributes are what Octavia keeps in a database of its own, and Sluice in external_ids of the
// Load_Balancer row, under keys that no parser of the provider's takes for one of its own:
// "sluice:lb", and "sluice:" with l, p or m and the ID of a listener, pool or member. Objects that
// the provider wrote have none.
type Attributes struct {
	// Version is that of this form.
	Version     int      `json:"v"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Project     string   `json:"project,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	// Created and Updated are UTC, without a zone.
	Created string `json:"created,omitempty"`
	Updated string `json:"updated,omitempty"`
	// Subnet and Network are the VIP's; AdditionalSubnets those of the additional VIPs.
	Subnet            string   `json:"subnet,omitempty"`
	Network           string   `json:"network,omitempty"`
	AdditionalSubnets []string `json:"additional_subnets,omitempty"`
	// OwnPort: the API made the VIP's port.
	OwnPort bool `json:"own_port,omitempty"`
	// NeutronPorts are the ports of VIPs that the API had Neutron make.
	NeutronPorts []string `json:"neutron_ports,omitempty"`
	// Algorithm and Persistence are a pool's.
	Algorithm   string          `json:"algorithm,omitempty"`
	Persistence json.RawMessage `json:"persistence,omitempty"`
	// Weight and Backup are a member's; no weight is 1.
	Weight *int `json:"weight,omitempty"`
	Backup bool `json:"backup,omitempty"`
	// AnySubnet: a member was made without a subnet. The row has the one in which its address is.
	AnySubnet bool `json:"any_subnet,omitempty"`
	// Limits are a listener's numbers, by attribute, where they are not the default.
	Limits map[string]int `json:"limits,omitempty"`
}

const (
	attributesVersion = 1

	keyBalancer    = "sluice:lb"
	keyOwnListener = "sluice:l:"
	keyOwnPool     = "sluice:p:"
	keyOwnMember   = "sluice:m:"
)

// attributes reads those under a key. What cannot be read is as if it were not there: it is no
// reason to refuse the object.
func attributes(r *rowform.Row, key string) (a Attributes) {
	if json.Unmarshal([]byte(r.Other[key]), &a) != nil || a.Version != attributesVersion {
		return Attributes{}
	}
	return a
}

func setAttributes(r *rowform.Row, key string, a Attributes) {
	a.Version = attributesVersion
	raw, err := json.Marshal(a)
	if err != nil {
		return // strings, numbers and JSON that was read always marshal
	}
	r.Other = maps.Clone(r.Other)
	if r.Other == nil {
		r.Other = map[string]string{}
	}
	r.Other[key] = string(raw)
}

func dropAttributes(r *rowform.Row, key string) {
	r.Other = maps.Clone(r.Other)
	delete(r.Other, key)
}

// Attributes are the load balancer's.
func (b *Balancer) Attributes() Attributes {
	for _, r := range b.Rows {
		if a := attributes(r, keyBalancer); a.Version != 0 {
			return a
		}
	}
	return Attributes{}
}

// Ours tells whether the API made the load balancer, or changed what is its own. One that the provider wrote, and
// of which the API changed listeners, pools and members at most, is left to the provider.
func (b *Balancer) Ours() bool { return b.Attributes().Version != 0 }

// SetAttributes gives the load balancer some: each of its rows has them.
func (b *Balancer) SetAttributes(a Attributes) {
	for _, r := range b.Rows {
		setAttributes(r, keyBalancer, a)
	}
}

// Found is a listener, pool or member of a load balancer: its row, and where it is there.
type Found struct {
	Row   *rowform.Row
	Index int
}

// Listener finds a listener.
func (b *Balancer) Listener(id string) (Found, bool) {
	return b.find(func(r *rowform.Row) int {
		return slices.IndexFunc(r.Listeners, func(l rowform.Listener) bool { return l.ID == id })
	})
}

// Pool finds a pool.
func (b *Balancer) Pool(id string) (Found, bool) {
	return b.find(func(r *rowform.Row) int {
		return slices.IndexFunc(r.Pools, func(p rowform.Pool) bool { return p.ID == id })
	})
}

func (b *Balancer) find(index func(*rowform.Row) int) (Found, bool) {
	for _, r := range b.Rows {
		if i := index(r); i >= 0 {
			return Found{r, i}, true
		}
	}
	return Found{}, false
}

// ListenerAttributes, PoolAttributes and MemberAttributes are those of an object in a row.
func ListenerAttributes(r *rowform.Row, id string) Attributes {
	return attributes(r, keyOwnListener+id)
}

// PoolAttributes are a pool's.
func PoolAttributes(r *rowform.Row, id string) Attributes { return attributes(r, keyOwnPool+id) }

// MemberAttributes are a member's.
func MemberAttributes(r *rowform.Row, id string) Attributes { return attributes(r, keyOwnMember+id) }

// SetListenerAttributes writes a listener's.
func SetListenerAttributes(r *rowform.Row, id string, a Attributes) {
	setAttributes(r, keyOwnListener+id, a)
}

// SetPoolAttributes writes a pool's.
func SetPoolAttributes(r *rowform.Row, id string, a Attributes) { setAttributes(r, keyOwnPool+id, a) }

// SetMemberAttributes writes a member's.
func SetMemberAttributes(r *rowform.Row, id string, a Attributes) {
	setAttributes(r, keyOwnMember+id, a)
}

// RemoveListener takes a listener away.
func (b *Balancer) RemoveListener(f Found) {
	dropAttributes(f.Row, keyOwnListener+f.Row.Listeners[f.Index].ID)
	f.Row.Listeners = slices.Delete(f.Row.Listeners, f.Index, f.Index+1)
}

// RemovePool takes a pool away that has no member any more, and from the listeners that used it.
func (b *Balancer) RemovePool(f Found) {
	id := f.Row.Pools[f.Index].ID
	dropAttributes(f.Row, keyOwnPool+id)
	f.Row.Pools = slices.Delete(f.Row.Pools, f.Index, f.Index+1)
	for i := range f.Row.Listeners {
		if l := &f.Row.Listeners[i]; l.Pool == id {
			l.Pool = ""
		}
	}
	// The row's pools share it.
	if !slices.ContainsFunc(f.Row.Pools, func(p rowform.Pool) bool {
		kept := PoolAttributes(f.Row, p.ID).Persistence
		return len(kept) > 0 && string(kept) != "null"
	}) {
		f.Row.Affinity = ""
	}
}

// The kinds of children that BalancerOf finds.
const (
	KindListener = "listener"
	KindPool     = "pool"
)

// children finds the rows of listeners and pools.
var children = northbound.Declare("external_ids", func(row *nb.LoadBalancer) (keys []string) {
	for k := range row.ExternalIDs {
		for _, kind := range []string{KindListener, KindPool} {
			if id, is := strings.CutPrefix(k, kind+"_"); is {
				keys = append(keys, kind+" "+strings.TrimSuffix(id, ":D"))
			}
		}
	}
	return keys
}, nil)

// BalancerOf is the ID of the load balancer that a listener or pool is of.
func BalancerOf(from northbound.Reader, kind, id string) (balancer string, ok bool) {
	for _, row := range northbound.Find(from, children, kind+" "+id, "name", "external_ids") {
		if rowform.Is(row) {
			return row.Name, true
		}
	}
	return "", false
}

// IDs are those of all load balancers, each once.
func IDs(s *northbound.Snapshot) (ids []string) {
	seen := map[string]bool{}
	for row := range northbound.All[*nb.LoadBalancer](s) {
		if rowform.Is(row) && !seen[row.Name] {
			seen[row.Name] = true
			ids = append(ids, row.Name)
		}
	}
	return ids
}
