package metadata

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is left of metadata that is off is no start that failed.
func TestFailed(t *testing.T) {
	for backend, want := range map[config.Backend]string{config.BackendNova: reason.StartFailed, config.BackendNone: reason.Leftovers} {
		c := Config{Metadata: config.Default().Metadata}
		c.Backend = backend
		log := slog.New(slog.DiscardHandler)
		m := New(c, nil, nil, nil, nil, status.NewRegistry(log), log)
		m.Failed(errors.New("the directory is in use"))
		if got := m.reg.Conditions(); len(got) != 1 || got[0].Name != condition || got[0].Ready || got[0].Reason != want || got[0].Detail != "the directory is in use" {
			t.Errorf("backend %s: %+v", backend, got)
		}
	}
}

// A removal or a listing that failed is reported, also beside one that is not ready.
func TestFailureBesideNotReady(t *testing.T) {
	refused := errors.New("refused")
	early := fmt.Errorf("the local database: %w", reconcile.ErrNotReady)
	for name, tt := range map[string]struct {
		errs     []error
		notReady bool
		says     string
	}{
		"nothing":          {[]error{nil, errors.Join()}, false, "<nil>"},
		"not ready":        {[]error{nil, errors.Join(nil, early)}, true, early.Error()},
		"a removal failed": {[]error{refused, early}, false, "refused"},
		"a listing failed": {[]error{nil, errors.Join(refused, early)}, false, "refused"},
	} {
		if err := failure(tt.errs); errors.Is(err, reconcile.ErrNotReady) != tt.notReady || fmt.Sprint(err) != tt.says {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A start waits for ACLs where they are to be respected and may come, and not for ever.
func TestAwaitsACLs(t *testing.T) {
	for _, tt := range []struct {
		groups config.SecurityGroups
		nb     string
		inSync ovn.InSync
		age    time.Duration
		want   bool
	}{
		{groups: config.SecurityGroupsRespect, nb: "tcp:nb", want: true},
		{groups: config.SecurityGroupsRespect, nb: "tcp:nb", age: aclPatience - 1, want: true},
		{groups: config.SecurityGroupsRespect, nb: "tcp:nb", age: aclPatience},
		{groups: config.SecurityGroupsRespect, nb: "tcp:nb", inSync: ovn.InSync{NB: true}},
		{groups: config.SecurityGroupsRespect, nb: "tcp:nb", inSync: ovn.InSync{Recalled: true}.Remembered()},
		{groups: config.SecurityGroupsRespect},
		{groups: config.SecurityGroupsBypass, nb: "tcp:nb"},
	} {
		c := Config{Metadata: config.Default().Metadata, Northbound: tt.nb != ""}
		c.SecurityGroups = tt.groups
		if got := c.awaitsACLs(tt.inSync, tt.age); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
