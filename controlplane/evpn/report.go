package evpn

import (
	"strings"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Complaints is another number whenever Objects has changed.
func (t *Translator) Complaints() uint64 { return t.complaints }

// Objects is what is wrong, or held back, in what OVN asks for. What is said
// twice of one object is one report; errors come first.
func (t *Translator) Objects() []status.Object {
	type name struct{ kind, key string }
	var out []status.Object
	at := map[name]int{}
	add := func(o status.Object) {
		k := name{o.Kind, o.Key}
		i, said := at[k]
		switch {
		case !said:
			at[k] = len(out)
			out = append(out, o)
		case !strings.Contains(out[i].Error, o.Error):
			out[i].Error += "; " + o.Error
		}
	}
	for _, e := range t.Errors() {
		add(status.Object{Kind: e.Kind, Key: e.Name, State: status.Error, Reason: e.Reason, Error: e.Err.Error()})
	}
	for _, n := range t.Notes() {
		add(status.Object{Kind: n.Kind, Key: n.Name, State: n.state(), Reason: n.Reason, Error: n.Detail})
	}
	return out
}

// state: an address that is kept back is withheld; a fact that cannot be seen, or
// that another place contradicts, is a warning, since the object is served all the
// same. A node may have as many gateway ports that may come as others have together:
// that is as it should be.
func (n Note) state() status.State {
	switch n.Reason {
	case reason.NATUnknown, reason.OtherVNI, reason.BalancersUnknown:
		return status.Warning
	case reason.Standby:
		return status.OK
	}
	return status.Withheld
}
