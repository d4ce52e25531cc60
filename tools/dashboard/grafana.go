package main

//lint:file-ignore SA1019 Grafana before 12 cannot read a dashboard of the second version

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// source is the Prometheus that the dashboard's variable names.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// Panels of three in a row; Grafana's grid has 24 columns.
const width, height = 8, 7

// grafana is the dashboard.
func grafana() (dashboard.Dashboard, error) {
	nodes := dashboard.NewQueryVariableBuilder("instance").Label("Node").Datasource(source).
		Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(sluice_build_info, instance)")}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*")
	b := dashboard.NewDashboardBuilder("Sluice").Uid("sluice").Tags([]string{"sluice", "ovn"}).
		Description("Made by tools/dashboard from the list of metrics; docs/dashboard.md lists the panels.").
		Time("now-1h", "now").Refresh("30s").Tooltip(dashboard.DashboardCursorSyncCrosshair).Readonly().
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus")).
		WithVariable(nodes)
	id := uint32(0)
	next := func() uint32 { id++; return id }
	for _, r := range rows {
		b.WithRow(dashboard.NewRowBuilder(r.title).Id(next()))
		for _, p := range r.panels {
			made, err := p.grafana(next())
			if err != nil {
				return dashboard.Dashboard{}, err
			}
			b.WithPanel(made)
		}
	}
	return b.Build()
}

func (p panel) grafana(id uint32) (cog.Builder[dashboard.Panel], error) {
	list, err := p.all()
	if err != nil {
		return nil, err
	}
	var targets []cog.Builder[variants.Dataquery]
	for i, e := range list {
		targets = append(targets, prometheus.NewDataqueryBuilder().Datasource(source).Expr(e.text).LegendFormat(e.legend).
			Range().RefId(string(rune('A'+i))))
	}
	legend := common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)
	tooltip := common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)
	if p.view == lines {
		return timeseries.NewPanelBuilder().Id(id).Legend(legend).Tooltip(tooltip).Title(p.title).Description(p.description()).Datasource(source).
			Span(width).Height(height).Unit(p.unit).Min(0).FillOpacity(10).ShowPoints(common.VisibilityModeNever).Targets(targets), nil
	}
	words := map[string]dashboard.ValueMappingResult{
		"0": {Text: cog.ToPtr("no"), Color: cog.ToPtr("red"), Index: cog.ToPtr[int32](0)},
		"1": {Text: cog.ToPtr("yes"), Color: cog.ToPtr("green"), Index: cog.ToPtr[int32](1)},
	}
	if p.view == faults {
		words["0"] = dashboard.ValueMappingResult{Text: cog.ToPtr("no"), Color: cog.ToPtr("green"), Index: cog.ToPtr[int32](0)}
		words["1"] = dashboard.ValueMappingResult{Text: cog.ToPtr("yes"), Color: cog.ToPtr("orange"), Index: cog.ToPtr[int32](1)}
	}
	return statetimeline.NewPanelBuilder().Id(id).Legend(legend).Tooltip(tooltip).Title(p.title).Description(p.description()).Datasource(source).
		Span(width).Height(height).ShowValue(common.VisibilityModeNever).Mappings([]dashboard.ValueMapping{{
		ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: words}}}).Targets(targets), nil
}
