package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
)

func metricsPage(w *bytes.Buffer) {
	w.WriteString("# Metrics of sluiced\n\nServed at `/metrics` of `http.listen`, with the usual `go_*` and `process_*` metrics beside them.\n\n")
	w.WriteString("| name | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range nodemetrics.List() {
		labels := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(labels, ", "), m.Help)
	}
}
