package main

import (
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
)

// A start waits for ACLs where they are to be respected and may come, and not for ever.
func TestAwaitsACLs(t *testing.T) {
	for _, tt := range []struct {
		groups        config.SecurityGroups
		expects, know bool
		age           time.Duration
		want          bool
	}{
		{groups: config.SecurityGroupsRespect, expects: true, want: true},
		{groups: config.SecurityGroupsRespect, expects: true, age: aclPatience - 1, want: true},
		{groups: config.SecurityGroupsRespect, expects: true, age: aclPatience},
		{groups: config.SecurityGroupsRespect, expects: true, know: true},
		{groups: config.SecurityGroupsRespect},
		{groups: config.SecurityGroupsBypass, expects: true},
	} {
		e := ovn.Event{Rows: ovn.NewRows(), InSync: ovn.InSync{NB: tt.know}}
		e.Rows.ExpectNB(tt.expects)
		if got := awaitsACLs(config.Metadata{SecurityGroups: tt.groups}, e, tt.age); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
