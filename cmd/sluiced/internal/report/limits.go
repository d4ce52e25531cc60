package report

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// addImports adds what the speaker says of the VRFs' imports.
func (n node) addImports(ctx context.Context, rows map[intent.VNI]*status.VRF) error {
	s, err := n.Speaker().Status(ctx)
	for vni, v := range s.VRFs {
		if row := rows[vni]; row != nil {
			row.Filtered, row.Waiting, row.MaxPrefixes = v.Filtered, v.Waiting, v.MaxPrefixes
		}
	}
	return err
}

func (n node) importMetrics() ([]nodemetrics.VRFImports, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s, err := n.Speaker().Status(ctx)
	var out []nodemetrics.VRFImports
	for vni, v := range s.VRFs {
		out = append(out, nodemetrics.VRFImports{VNI: vni, Imported: v.Imported, Filtered: v.Filtered, Waiting: v.Waiting,
			Refused: map[string]uint64{string(bgp.ReasonFiltered): v.FilteredTotal, string(bgp.ReasonMaxPrefixes): v.WaitingTotal}})
	}
	return out, err
}
