package ovs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Before the database was read nothing may pass for gone.
func TestUnread(t *testing.T) {
	sw := ovs.New(ovs.Config{})
	d := ovs.NewSteering(sw)
	if err := sw.RemovePort(context.Background(), "br-ex"); !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("removing a port: %v", err)
	}
	errs := d.Delete(context.Background(), []intent.SteeringKey{{Gateway: intent.GatewayKey{Bridge: "br-ex"}}})
	if len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrNotReady) {
		t.Errorf("deleting: %v", errs)
	}
	if _, err := d.List(context.Background()); !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("listing: %v", err)
	}
}
