package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/metrics/controllermetrics"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
)

// metricsOf are the metrics that have a page, by their program.
var metricsOf = map[string]func() metrics.List{"sluiced": nodemetrics.List, "sluice-controller": controllermetrics.List}

func metricsPage(w *bytes.Buffer, program string) {
	w.WriteString("# Metrics of " + program + "\n\nWhat each metric counts. They are served at `/metrics` of `http.listen`, beside the usual `go_*` and `process_*`.\n\n")
	w.WriteString("| name | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range metricsOf[program]() {
		labels := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(labels, ", "), m.Help)
	}
}
