package dryrun

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Write writes a plan for people.
func Write(w io.Writer, p status.Plan) error {
	output.Printf(w, "Dry run of sluiced %s on chassis %s: role %s (%s)\n", p.Version, p.Chassis, p.Role, p.RoleReason)
	if p.VTEP.IsValid() {
		output.Printf(w, "VTEP %s, router id %s, router MAC %s, underlay MTU %d\n", p.VTEP, p.RouterID, p.RouterMAC, p.UnderlayMTU)
	}
	if len(p.Changes) > 0 {
		fmt.Fprintln(w)
		if err := output.Changes(p.Changes).Write(w); err != nil {
			return err
		}
	}
	n := map[string]int{}
	for _, c := range p.Changes {
		n[c.Action]++
	}
	output.Printf(w, "\n%d to add, %d to change, %d to remove. Nothing was changed.\n", n["add"], n["change"], n["delete"])
	for _, u := range p.Unknown {
		output.Printf(w, "%s: %d %s.\n", u.Table, u.Rows, u.Why)
	}
	if err := writePlannedRoutes(w, p); err != nil {
		return err
	}
	for _, o := range p.Problems {
		output.Printf(w, "%s: %s %s: %s: %s\n", o.State, o.Kind, o.Key, o.Reason, o.Error)
	}
	return nil
}

func writePlannedRoutes(w io.Writer, p status.Plan) error {
	if p.Role != reason.RoleGateway {
		return nil
	}
	to := cmp.Or(strings.Join(p.Neighbors, ", "), "neighbours, of which none is configured")
	if len(p.UnderlayAnnouncements) > 0 {
		words := make([]string, len(p.UnderlayAnnouncements))
		for i, prefix := range p.UnderlayAnnouncements {
			words[i] = prefix.String()
		}
		output.Printf(w, "\nPrefixes that would be announced to %s as plain unicast: %s.\n", to, strings.Join(words, ", "))
	}
	if len(p.Announcements) == 0 {
		_, err := fmt.Fprintln(w, "\nBGP was not asked. No route would be announced.")
		return err
	}
	output.Printf(w, "\nBGP was not asked. Routes that would be announced to %s, or are already (%d):\n", to, len(p.Announcements))
	t := output.Table{Header: []string{"VNI", "PREFIX", "GATEWAY"}}
	for _, r := range p.Announcements {
		t.Add(r.VNI.String(), r.Prefix.String(), r.Gateway)
	}
	return t.Write(w)
}
