package report

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// mostSessions bounds an answer.
const mostSessions = 10000

// sessionChoice chooses which sessions an answer lists, and counts those that it is about.
type sessionChoice struct {
	vni          intent.VNI // 0: all
	most, listed int
	known        int
}

// takes is asked of each session once.
func (c *sessionChoice) takes(f ebpf.Flow) bool {
	if !f.ToVIP || c.vni != 0 && f.Key.VNI != c.vni {
		return false
	}
	if c.known++; c.listed == c.most {
		return false
	}
	c.listed++
	return true
}

// Sessions lists the sessions of one VRF or switch, or of all for 0, as far as an answer has
// room, and tells how many there are.
func (r *Report) Sessions(vni intent.VNI) (status.Sessions, error) {
	all, err := r.balancersOf(vni)
	out, c := status.Sessions{Sessions: []status.Session{}}, sessionChoice{vni: vni, most: mostSessions}
	for _, b := range all {
		list, failed := b.dp.Reader().Flows(math.MaxInt, c.takes)
		err = errors.Join(err, failed)
		names := b.switches()
		for _, f := range list {
			out.Sessions = append(out.Sessions, sessionOf(f, names[f.Key.VNI]))
		}
	}
	out.Total = c.known
	slices.SortFunc(out.Sessions, func(a, b status.Session) int {
		return cmp.Or(cmp.Compare(a.VNI, b.VNI), a.VIP.Compare(b.VIP), a.Client.Compare(b.Client), cmp.Compare(a.Protocol, b.Protocol))
	})
	return out, err
}

// switches are the names of those with VIPs.
func (b balancer) switches() map[intent.VNI]string {
	out := map[intent.VNI]string{}
	for _, one := range b.vips {
		if one.Switch != "" {
			out[one.VIP.Key.VNI] = one.Switch
		}
	}
	return out
}

// sessionOf is a session of a VIP; on is its switch.
func sessionOf(f ebpf.Flow, on string) status.Session {
	state := "opening"
	switch {
	case f.Ending:
		state = "ending"
	case f.Open:
		state = "open"
	}
	return status.Session{
		VNI: f.Key.VNI, Switch: on, Protocol: f.Key.Protocol, Client: f.Key.Src, VIP: f.Key.Dst, Backend: f.Becomes, State: state, Idle: uint32(f.Idle / time.Second),
	}
}
