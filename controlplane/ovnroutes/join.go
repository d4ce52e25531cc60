package ovnroutes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Imports are the routes of all VRFs.
type Imports interface {
	// Imported tells whether a destination is behind another node, as BGP says, and
	// this node knows no nearer way to it.
	Imported(intent.RouteKey) bool
	// EachImported calls each for those that Imported tells of.
	EachImported(each func(intent.RouteKey))
}

// Join is the state of the translation.
type Join struct {
	imports  Imports
	learners map[intent.GatewayKey]intent.Learner
	kernel   map[intent.VNI]struct{}
	// served are the learners that get routes, by VRF.
	served map[intent.VNI][]learner
	// tables are theirs.
	tables  map[uint32]intent.VNI
	objects []status.Object
}

// learner is one that gets routes, with its networks read.
type learner struct {
	intent.Learner
	networks []netip.Prefix
}

// New is a translation without learners.
func New(imports Imports) *Join {
	return &Join{
		imports: imports, learners: map[intent.GatewayKey]intent.Learner{}, kernel: map[intent.VNI]struct{}{},
		served: map[intent.VNI][]learner{},
	}
}

// Rows are rows to put and keys to remove.
type Rows = wanted.Delta[intent.LearnedKey, intent.LearnedRoute]

// Change takes a step of the translation of OVN: its learners and its VRFs on the
// kernel path. The imports are those of now, and the rows given before theirs.
func (j *Join) Change(learners wanted.Delta[intent.GatewayKey, intent.Learner], kernel wanted.Delta[intent.VNI, intent.KernelVRF]) Rows {
	if learners.Empty() && (kernel.Empty() || len(j.learners) == 0) {
		j.takeKernel(kernel)
		return Rows{}
	}
	for _, k := range learners.Delete {
		delete(j.learners, k)
	}
	maps.Copy(j.learners, learners.Set)
	j.takeKernel(kernel)
	before := j.served
	j.serve()
	changed := map[intent.VNI]bool{}
	for _, served := range []map[intent.VNI][]learner{before, j.served} {
		for vni := range served {
			changed[vni] = !slices.EqualFunc(before[vni], j.served[vni], func(a, b learner) bool { return a.Learner == b.Learner })
		}
	}
	old, next := map[intent.LearnedKey]intent.LearnedRoute{}, map[intent.LearnedKey]intent.LearnedRoute{}
	j.imports.EachImported(func(k intent.RouteKey) {
		if changed[k.VNI] {
			rows(before[k.VNI], k, old)
			rows(j.served[k.VNI], k, next)
		}
	})
	out := Rows{Set: next}
	for k := range old {
		if _, still := next[k]; !still {
			out.Delete = append(out.Delete, k)
		}
	}
	return out
}

func (j *Join) takeKernel(d wanted.Delta[intent.VNI, intent.KernelVRF]) {
	for _, vni := range d.Delete {
		delete(j.kernel, vni)
	}
	for vni := range d.Set {
		j.kernel[vni] = struct{}{}
	}
}

// Touch takes destinations that may be imported now, or not any more.
func (j *Join) Touch(keys ...[]intent.RouteKey) Rows {
	out := Rows{Set: map[intent.LearnedKey]intent.LearnedRoute{}}
	for _, list := range keys {
		for _, k := range list {
			served := j.served[k.VNI]
			if len(served) == 0 {
				continue
			}
			if j.imports.Imported(k) {
				rows(served, k, out.Set)
				continue
			}
			for _, l := range served {
				out.Delete = append(out.Delete, intent.LearnedKey{Table: l.Table, Prefix: k.Prefix})
			}
		}
	}
	return out
}

// rows adds those of one destination.
func rows(served []learner, k intent.RouteKey, into map[intent.LearnedKey]intent.LearnedRoute) {
	for _, l := range served {
		if via := l.via(k.Prefix); via.IsValid() {
			key := intent.LearnedKey{Table: l.Table, Prefix: k.Prefix}
			into[key] = intent.LearnedRoute{Key: key, Via: via}
		}
	}
}

// via is the next hop of a destination; invalid if the router is not to have it.
// ovn-controller takes no link-local prefix.
func (l learner) via(p netip.Prefix) netip.Addr {
	a := p.Addr()
	if a.IsMulticast() || a.IsLoopback() || p.Bits() > 0 && a.IsLinkLocalUnicast() {
		return netip.Addr{}
	}
	if slices.ContainsFunc(l.networks, func(n netip.Prefix) bool { return n.Bits() <= p.Bits() && n.Contains(a) }) {
		return netip.Addr{}
	}
	if a.Is4() {
		return l.Via4
	}
	return l.Via6
}

// serve chooses the learners that get routes, and says what is wrong with the others.
func (j *Join) serve() {
	tables := map[uint32][]string{}
	for _, l := range j.learners {
		tables[l.Table] = append(tables[l.Table], l.Port)
	}
	j.served, j.tables, j.objects = map[intent.VNI][]learner{}, map[uint32]intent.VNI{}, nil
	for _, k := range slices.SortedFunc(maps.Keys(j.learners), func(a, b intent.GatewayKey) int { return strings.Compare(a.String(), b.String()) }) {
		l := j.learners[k]
		_, taken := j.kernel[intent.VNI(l.Table)]
		ports := slices.DeleteFunc(slices.Clone(tables[l.Table]), func(port string) bool { return port == l.Port })
		switch {
		case taken && intent.VNI(l.Table) == l.VNI:
			// The translation of the router says so, whatever is learned.
		case taken:
			j.complain(l, fmt.Errorf("ovn-controller has routing table %d for the router, and so has VNI %d on the kernel path: OVN would learn the routes of another tenant", l.Table, l.Table))
		case len(ports) > 0:
			slices.Sort(ports)
			j.complain(l, fmt.Errorf("ovn-controller has routing table %d for the router, and for that of %s", l.Table, strings.Join(ports, ", ")))
		default:
			j.served[l.VNI] = append(j.served[l.VNI], learner{l, l.Networks.All()})
			j.tables[l.Table] = l.VNI
		}
	}
}

func (j *Join) complain(l intent.Learner, err error) {
	j.objects = append(j.objects, status.Object{Kind: "gateway", Key: l.Port, State: status.Error, Reason: reason.OVNTable, Error: err.Error()})
}

// VRF is the one whose routes a routing table gets; false if it gets none.
func (j *Join) VRF(table uint32) (intent.VNI, bool) {
	vni, ok := j.tables[table]
	return vni, ok
}

// Objects are the learners that get nothing, and why.
func (j *Join) Objects() []status.Object { return j.objects }
