package metadata

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
