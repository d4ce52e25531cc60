package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// startAll runs what lies beside this program, until it is ready: sluiced on every chassis and, where there is
// a cloud with a stand-in for Nova, its metadata proxy; and the backends and the API of the scenario lb.
func (l *Lab) startAll(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	sluiced := filepath.Join(filepath.Dir(exe), "sluiced")
	rr, err := l.Node("rr")
	if err != nil {
		return err
	}
	for _, c := range l.Scenario().Clouds {
		s := Sluiced{Binary: sluiced, Config: fmt.Sprintf(Config, rr.VTEP4) + BalancingConfig}
		asked := len(c.NovaInstances()) > 0
		if asked {
			section, err := l.MetadataConfig(c.Name)
			if err != nil {
				return err
			}
			s.Config += section
		}
		for _, chassis := range c.Chassis {
			if _, err := l.StartSluiced(ctx, chassis.Name, s); err != nil {
				return err
			}
			if !asked {
				continue
			}
			if _, err := l.StartMetadata(ctx, chassis.Name, s); err != nil {
				return err
			}
		}
	}
	for _, n := range l.Nodes() {
		if n.Kind != KindChassis {
			continue
		}
		if err := l.WaitFor(ctx, "all of sluiced on "+n.Name+" is ready", func() error {
			return l.allReady(ctx, n.Name, filepath.Join(filepath.Dir(exe), "sluicectl"))
		}); err != nil {
			return err
		}
	}
	if _, err := l.Node(apiNode); err == nil {
		if err := l.StartAPI(ctx); err != nil {
			return err
		}
	}
	for i := 1; i <= Backends; i++ {
		name := fmt.Sprintf("be%d", i)
		if _, err := l.Node(name); err != nil {
			continue // another scenario
		}
		if _, err := l.StartBackend(ctx, name, exe); err != nil {
			return err
		}
	}
	return nil
}

// allReady tells what of a node's sluiced is not ready, its BGP too, which is no part of
// what the node's readiness waits for.
func (l *Lab) allReady(ctx context.Context, node, sluicectl string) error {
	out, err := l.Exec(ctx, node, sluicectl, "-o", "json", "status")
	if err != nil {
		return err
	}
	var is status.Status
	if err := json.Unmarshal([]byte(out), &is); err != nil {
		return err
	}
	for _, c := range is.Conditions {
		if !c.Ready {
			return fmt.Errorf("%s: %s %s", c.Name, c.Reason, c.Detail)
		}
	}
	return nil
}
