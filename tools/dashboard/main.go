// Command dashboard writes what is shown of the metrics of pkg/metrics: the dashboard for Grafana,
// and the page that lists its panels.
//
//	dashboard DASHBOARD PAGE VALUES
//
// VALUES has what each query gave in the lab; the test of test/dashboard records it.
package main

//go:generate go run . ../../deploy/grafana/sluice.json ../../docs/dashboard.md lab.json

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: dashboard DASHBOARD PAGE VALUES")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

func run(dashboard, page, values string) error {
	made, err := grafana()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return err
	}
	var seen map[string]string
	recorded, err := os.ReadFile(values)
	if err == nil {
		err = json.Unmarshal(recorded, &seen)
	}
	if err != nil {
		return err
	}
	list, err := pageOf(seen)
	if err != nil {
		return err
	}
	if err := os.WriteFile(dashboard, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(page, list, 0o644)
}
