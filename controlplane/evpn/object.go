package evpn

import (
	"cmp"
	"fmt"
	"slices"
)

// ObjectError is what is wrong with one object of OVN or of the node.
type ObjectError struct {
	// Kind is gateway, interface, host, vrf, load-balancer or node.
	Kind string
	// Name is the Port_Binding's logical_port, the Load_Balancer's name, or the VNI.
	Name string
	// Reason is a short word for metrics and programs.
	Reason string
	Err    error
}

func (e ObjectError) Error() string {
	return fmt.Sprintf("%s %s: %s: %v", e.Kind, e.Name, e.Reason, e.Err)
}

// Unwrap gives the cause.
func (e ObjectError) Unwrap() error { return e.Err }

// Note is something about an object that is no fault: a fact that cannot be
// seen, a rule that keeps an address back.
type Note struct {
	Kind, Name string
	// Reason is a short word: nat-unknown, nat, snat-source, opted-out …
	Reason string
	Detail string
}

// Kinds of object.
const (
	kindGateway   = "gateway"
	kindInterface = "interface"
	kindHost      = "host"
	kindVRF       = "vrf"
	kindNode      = "node"
	kindBalancer  = "load-balancer"
)

func sameErrors(a, b []ObjectError) bool {
	return slices.EqualFunc(a, b, func(x, y ObjectError) bool { return x.Error() == y.Error() })
}

func sortErrors(errs []ObjectError) {
	slices.SortFunc(errs, func(a, b ObjectError) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Err.Error(), b.Err.Error()))
	})
}

func sortNotes(notes []Note) {
	slices.SortFunc(notes, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Detail, b.Detail))
	})
}
