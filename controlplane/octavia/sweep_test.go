package octavia

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// portList is Neutron's list of ports of VIPs.
type portList map[string]bool

func (p portList) VIPPorts(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(p)), nil
}

var errInUse = errors.New("in use")

func (p portList) DeletePort(_ context.Context, id string) error {
	if id == "in-use" {
		return errInUse
	}
	delete(p, id)
	return nil
}

// Ports at Neutron go when they have been without a load balancer for long, and no others.
func TestSweep(t *testing.T) {
	c := newCloud(t, schema.Northbound)
	ports := portList{"vip": true, "additional": true, "lost": true, "in-use": true, "elsewhere": true}
	c.commit(func(tx *northbound.Tx) error {
		ls := &nb.LogicalSwitch{UUID: uuidOf(1)}
		for i, name := range []string{"vip", "additional", "lost", "in-use", "late"} {
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(20 + i), Name: name})
			ls.Ports = append(ls.Ports, uuidOf(20+i))
		}
		tx.Update(ls, "ports")
		v, w := vip(1), vip(2)
		v.Port, w.Port = "vip", "additional"
		New(tx, "lb", uuidOf(11), c.network(tx, 1), v, w).Save()
		return nil
	})
	s := NewSweeper(c.store, ports, time.Hour, slog.New(slog.DiscardHandler))
	now := time.Now()
	s.now = func() time.Time { return now }
	look := func(want ...string) {
		t.Helper()
		if err := s.look(t.Context()); err != nil && !errors.Is(err, errInUse) {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(ports)); !slices.Equal(got, want) {
			t.Errorf("ports %q, want %q", got, want)
		}
	}
	all := []string{"additional", "elsewhere", "in-use", "lost", "vip"}
	look(all...)
	now = now.Add(30 * time.Minute)
	ports["late"] = true
	look("additional", "elsewhere", "in-use", "late", "lost", "vip")
	now = now.Add(31 * time.Minute)
	look("additional", "elsewhere", "in-use", "late", "vip")
	// The late one gets its load balancer; the other one loses its own.
	c.commit(func(tx *northbound.Tx) error {
		v := rowform.VIP{Address: vip(3).Address, Port: "late"}
		New(tx, "lb2", uuidOf(12), c.network(tx, 1), v).Save()
		b, err := Load(tx, "lb")
		if err == nil {
			b.Delete()
		}
		return err
	})
	now = now.Add(time.Hour)
	look("additional", "elsewhere", "in-use", "late", "vip")
	now = now.Add(time.Hour)
	look("elsewhere", "in-use", "late")
	if p := NewSweeper(c.store, ports, time.Second, s.log).patience; p != LeastPatience {
		t.Errorf("patience %s", p)
	}
}
