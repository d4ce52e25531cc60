package metadata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/measure"
	"github.com/ovn-sluice/sluice/test/lab"
)

// bindingGoal is what may pass between the binding of a port and its first answer, in
// milliseconds.
const bindingGoal = 50

// bindings times ports from their binding, as the Southbound database has it, to their
// first answer.
func (s *sluiceSide) bindings(ctx context.Context) (err error) {
	vm := s.lab.Scenario().Clouds[0].VMs[0]
	db, err := s.lab.OpenDatabase(ctx, cloud, "sb")
	if err != nil {
		return err
	}
	defer db.Close()
	// ovn-northd would take the cores of the node for each binding, where in a cloud it
	// runs on another machine.
	if err := s.northd(ctx, "pause"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.northd(ctx, "resume")) }()
	c := s.clients(1)[0]
	var all []time.Duration
	for range s.Bindings {
		took, err := s.binding(ctx, db, vm.Name, c)
		if err != nil {
			return fmt.Errorf("binding of %s: %w", vm.Name, err)
		}
		all = append(all, took)
	}
	if len(all) == 0 {
		return nil
	}
	s.add("metadata binding to first answer p50", measure.Quantile(all, 0.5), "ms", nil, fmt.Sprintf("%d bindings, %d networks", len(all), s.networks))
	s.add("metadata binding to first answer p99", measure.Quantile(all, 0.99), "ms", measure.AtMost(bindingGoal), "")
	return nil
}

func (s *sluiceSide) northd(ctx context.Context, command string) error {
	n, err := s.lab.Node(cloud + "-central")
	if err != nil {
		return err
	}
	_, err = s.lab.Exec(ctx, n.Name, "ovs-appctl", "-t", filepath.Join(n.Dir, "northd.ctl"), command)
	return err
}

// binding unbinds a port, waits until it is not answered any more, and binds it again.
func (s *sluiceSide) binding(ctx context.Context, db *lab.Database, port string, c client) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	link := "qvo" + lab.TapName(port)[len("tap"):]
	if _, err := s.lab.Exec(ctx, chassis, "ovs-vsctl", "remove", "Interface", link, "external_ids", "iface-id"); err != nil {
		return 0, err
	}
	if err := s.bound(ctx, db, port, false); err != nil {
		return 0, err
	}
	for {
		if _, err := c.hasty().ask(ctx, attempt); err != nil {
			break
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return 0, errors.Join(errors.New("it is answered without a binding"), err)
		}
	}
	answered := make(chan error, 1)
	var at time.Time
	go func() {
		err := s.first(ctx, c)
		at = time.Now()
		answered <- err
	}()
	if _, err := s.lab.Exec(ctx, chassis, "ovs-vsctl", "--no-wait", "set", "Interface", link, "external_ids:iface-id="+port); err != nil {
		return 0, err
	}
	if err := s.bound(ctx, db, port, true); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := <-answered; err != nil {
		return 0, err
	}
	// The database is looked at every other moment, and an answer may be there before.
	return max(0, at.Sub(begin)), nil
}

// bound waits until a port has a chassis, or has none.
func (s *sluiceSide) bound(ctx context.Context, db *lab.Database, port string, want bool) error {
	for {
		var row struct {
			Rows []struct {
				Chassis [2]json.RawMessage `json:"chassis"`
			}
		}
		if err := db.Transact(&row, fmt.Sprintf(`{"op":"select","table":"Port_Binding","where":[["logical_port","==",%q]],"columns":["chassis"]}`, port)); err != nil {
			return err
		}
		if len(row.Rows) == 1 && (string(row.Rows[0].Chassis[0]) == `"uuid"`) == want {
			return nil
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
