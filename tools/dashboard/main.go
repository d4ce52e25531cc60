// Command dashboard writes what is shown of the metrics of pkg/metrics: the dashboard for Grafana,
// and the page that lists its panels.
//
//	dashboard DASHBOARD PAGE
package main

//go:generate go run . ../../deploy/grafana/sluice.json ../../docs/dashboard.md

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: dashboard DASHBOARD PAGE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

func run(dashboard, page string) error {
	made, err := grafana()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return err
	}
	list, err := pageOf()
	if err != nil {
		return err
	}
	if err := os.WriteFile(dashboard, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(page, list, 0o644)
}
