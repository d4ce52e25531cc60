package metadataproxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/metadata/service"
	"github.com/ovn-sluice/sluice/pkg/systemd"
)

// nextProcess is what the metadata proxy becomes when it starts itself anew: the program
// that is installed then in the place of this one.
type nextProcess struct{ path, config string }

func newNextProcess(config string) (nextProcess, error) {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		// As after a start by a name that is in no search path of this process.
		if path, err = os.Executable(); err != nil {
			return nextProcess{}, fmt.Errorf("finding the own program: %w", err)
		}
	}
	return nextProcess{path, config}, nil
}

// checkTime is far more than reading a configuration takes.
const checkTime = 20 * time.Second

// check tells whether the program can be started, and takes the configuration.
func (n nextProcess) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c := exec.CommandContext(ctx, n.path, "--check", n.config)
	var said strings.Builder
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s --check %s: %w: %s", n.path, n.config, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// socketsOfBefore are those of the process that this one was before, or else those that
// the service manager has kept.
func socketsOfBefore() ([]service.Socket, error) {
	sockets, err := service.Inherit()
	stored, storeErr := systemd.Stored()
	for _, d := range stored {
		sockets = append(sockets, service.Socket{Name: d.Name, FD: d.FD})
	}
	return sockets, errors.Join(err, storeErr)
}
