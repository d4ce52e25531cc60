package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// fullVRFs are the VRFs that leave prefixes out.
func fullVRFs(s bgp.Status) []status.Object {
	var out []status.Object
	for _, vni := range slices.Sorted(maps.Keys(s.VRFs)) {
		if v := s.VRFs[vni]; v.Waiting > 0 {
			out = append(out, status.Object{Kind: "vrf", Key: vni.String(), State: status.Error, Reason: reason.RouteMaxPrefixes,
				Error: fmt.Sprintf("the VRF has imported as many prefixes as evpn.vrfs.%d.maxPrefixes allows, %d; those that came later are left out, see 'sluicectl vrf show %d'", vni, v.MaxPrefixes, vni)})
		}
	}
	return out
}

// addImports adds what the speaker says of the VRFs' imports.
func (n *node) addImports(ctx context.Context, rows map[intent.VNI]*status.VRF) error {
	s, err := n.speaker.Status(ctx)
	for vni, v := range s.VRFs {
		if row := rows[vni]; row != nil {
			row.Filtered, row.Waiting, row.MaxPrefixes = v.Filtered, v.Waiting, v.MaxPrefixes
		}
	}
	return err
}

func (n *node) importMetrics() ([]nodemetrics.VRFImports, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s, err := n.speaker.Status(ctx)
	var out []nodemetrics.VRFImports
	for vni, v := range s.VRFs {
		out = append(out, nodemetrics.VRFImports{VNI: vni, Imported: v.Imported, Filtered: v.Filtered, Waiting: v.Waiting,
			Refused: map[string]uint64{string(bgp.ReasonFiltered): v.FilteredTotal, string(bgp.ReasonMaxPrefixes): v.WaitingTotal}})
	}
	return out, err
}
