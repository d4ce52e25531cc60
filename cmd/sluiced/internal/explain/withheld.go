package explain

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// unannouncedRoute is the longest route to an address that the node is to announce and does not,
// with what keeps it back.
func (n node) unannouncedRoute(vni intent.VNI, a netip.Addr) (p netip.Prefix, why string) {
	wanted, _ := tables.Of(n.Tables(), intent.Announcements).Rows()
	k, found := intent.LongestMatch(netip.PrefixFrom(a, a.BitLen()), func(p netip.Prefix) (intent.RouteKey, bool) {
		k := intent.NewRouteKey(vni, p)
		_, ok := wanted[k]
		return k, ok
	})
	if !found {
		return netip.Prefix{}, ""
	}
	told, err := tables.Of(n.Tables(), intent.Announcements).State(k)
	if told || err == nil {
		return netip.Prefix{}, ""
	}
	_, word, text := n.UnannouncedState(k, err)
	return k.Prefix, withReason(word, text)
}

// withReason has the word of a reason before its text. The words of a drain are in the text.
func withReason(word, text string) string {
	switch word {
	case reason.NoVTEP, reason.Broken, reason.SameRouterID, reason.SameVTEP, reason.CutOff:
		return word + ": " + text
	}
	return text
}

// explainWithheld has the steps of BGP name what keeps the node's own announcements back, and
// those of a route that is missing the problems by which the fabric may lose it.
func (n node) explainWithheld(q status.Query, steps []status.Step) {
	problems := n.fabricProblems()
	_, all, _ := n.Withheld(q.VRF)
	for i := range steps {
		s := &steps[i]
		bgp := s.Layer == status.LayerBGP
		switch {
		case bgp && strings.HasPrefix(s.Object, "announcement of ") && (all != "" || !s.Found):
			p, why := n.unannouncedRoute(q.VRF, q.Src)
			if why != "" {
				s.Found, s.Detail = false, p.String()+" is not announced: "+why
			}
			if why != "" && all != "" {
				s.Hint = "" // the text says what to do
			}
		case s.Found:
		case bgp && strings.HasPrefix(s.Object, "route to "):
			if p, why := n.unannouncedRoute(q.VRF, q.Dst); why != "" {
				s.Found, s.Detail, s.Hint = true, "behind this node; "+p.String()+" is not announced: "+why, ""
				continue
			}
			fallthrough
		case s.Layer == status.LayerDataplane && strings.HasPrefix(s.Object, "route to destination "):
			if len(problems) > 0 {
				s.Detail, s.Hint = s.Detail+"; "+strings.Join(problems, "; "), ""
			}
		}
	}
}

// fabricProblems are the problems that take routes or packets of every VRF away, with their reasons.
func (n node) fabricProblems() (texts []string) {
	for _, o := range n.reg.Objects(func(o status.Object) bool {
		return o.Kind == "vtep" && o.State == status.Error && slices.Contains([]string{reason.NoVTEP, reason.SameRouterID, reason.SameVTEP, reason.CutOff}, o.Reason)
	}) {
		texts = append(texts, withReason(o.Reason, o.Error))
	}
	return texts
}

// fabricNotes are the problems of the fabric that no step of an explanation names.
func (n node) fabricNotes(steps []status.Step) []string {
	return slices.DeleteFunc(n.fabricProblems(), func(text string) bool {
		return slices.ContainsFunc(steps, func(s status.Step) bool { return strings.Contains(s.Detail, text) })
	})
}
