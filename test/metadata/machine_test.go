//go:build !guest

package metadata_test

import (
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/programs"
)

// The tests run on this machine, with Open vSwitch's userspace datapath and hybrid plug.
var plainParams = lab.MetadataParams{}

// makePrograms builds the programs under test.
func makePrograms(dir string) error { return programs.LinkInto(dir, "sluiced", "sluicectl") }
