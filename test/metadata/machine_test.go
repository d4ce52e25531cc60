//go:build !guest

package metadata_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ovn-sluice/sluice/test/lab"
)

// The tests run on this machine, with Open vSwitch's userspace datapath and hybrid plug.
var plainParams = lab.MetadataParams{}

// makePrograms builds the programs under test.
func makePrograms(dir string) error {
	for _, program := range []string{"sluiced", "sluicectl"} {
		build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, program), "../../cmd/"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", program, err, out)
		}
	}
	return nil
}
