package northbound_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// The store survives a conversion of the schema. A removed column reads as empty, and a write
// of it is refused by name; all others are written.
func TestSchemaChanges(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s := open(t, server.Endpoint())
	row := &nb.LoadBalancer{UUID: uuidOf(1), Name: "a", SelectionFields: []string{"ip_src"}, Vips: map[string]string{"192.0.2.1:80": "192.0.2.2:80"}}
	commit(t, s, func(tx *northbound.Tx) error { tx.Insert(row); return nil })
	stop, done := make(chan struct{}), make(chan int)
	go func() { // a caller who goes on all the while
		n := 0
		for {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			n++
			if err := s.Commit(deadline(t), "test", func(tx *northbound.Tx) error {
				lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuidOf(1), "external_ids")
				lb.ExternalIDs = map[string]string{"n": fmt.Sprint(n)}
				tx.Update(lb, "external_ids")
				return nil
			}); err != nil {
				t.Errorf("write %d: %v", n, err)
			}
		}
	}()
	less := bytes.Replace(schema.Northbound, []byte(`"selection_fields"`), []byte(`"selected_fields"`), 1)
	server.Convert(less)
	until(t, "the column to be gone", func() bool {
		lb, ok := northbound.Get[*nb.LoadBalancer](barrier(t, s), uuidOf(1))
		return ok && len(lb.SelectionFields) == 0
	})
	err := s.Commit(deadline(t), "test", func(tx *northbound.Tx) error {
		lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuidOf(1), "selection_fields", "vips")
		lb.SelectionFields = []string{"ip_dst"}
		tx.Update(lb, "selection_fields")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "selection_fields") {
		t.Errorf("a write of a column that went: %v", err)
	}
	commit(t, s, func(tx *northbound.Tx) error {
		lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuidOf(1), "selection_fields", "vips")
		lb.Vips = nil
		tx.Update(lb, "vips", "selection_fields")
		return nil
	})
	server.Convert(schema.Northbound)
	commitEventually(t, s, func(tx *northbound.Tx) error {
		lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuidOf(1), "selection_fields")
		lb.SelectionFields = []string{"ip_dst"}
		tx.Update(lb, "selection_fields")
		return nil
	})
	close(stop)
	n := <-done
	lb, _ := northbound.Get[*nb.LoadBalancer](barrier(t, s), uuidOf(1))
	if !maps.Equal(lb.ExternalIDs, map[string]string{"n": fmt.Sprint(n)}) || len(lb.Vips) != 0 || !slices.Equal(lb.SelectionFields, []string{"ip_dst"}) {
		t.Errorf("after %d writes: %+v", n, lb)
	}
	sameAsServer(t, s, server)
}

// commitEventually tries until the store knows the schema that has the column.
func commitEventually(t *testing.T, s *northbound.Store, f func(tx *northbound.Tx) error) {
	t.Helper()
	until(t, "the column to be back", func() bool { return s.Commit(deadline(t), "test", f) == nil })
}
