package lab

import (
	"context"
	"os"
	"path/filepath"

	"github.com/ovn-sluice/sluice/test/openstack"
)

// StartAPI runs the replicas of sluice-controller that lies beside this program, with the client
// that tools/openstack.sh makes.
func (l *Lab) StartAPI(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Dir(exe)
	end := l.Slow("a Debian root with OpenStack's client: tools/openstack.sh makes it once, and downloads some 170 MB")
	defer end()
	client, err := openstack.NewClient(ctx, filepath.Join(bin, "..", "tools", "openstack.sh"))
	if err != nil {
		return err
	}
	return l.StartControllers(ctx, filepath.Join(bin, "sluice-controller"), client)
}
