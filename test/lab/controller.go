package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ovn-sluice/sluice/test/openstack"
)

// Replicas are the addresses of the replicas of sluice-controller, on node api.
var Replicas = []string{"127.0.0.1:9876", "127.0.0.1:9877"}

// ControllerConfig is a whole configuration of sluice-controller in a lab, but for its address.
const ControllerConfig = `http: {listen: "%s"}
ovn: {nb: "${OVN_NB_DB}"}
`

// StartControllers runs the replicas of sluice-controller on node api, as its processes
// controller1 and controller2, and gives it the command openstack, which asks the first one. It
// returns when they are ready.
func (l *Lab) StartControllers(ctx context.Context, binary string, client openstack.Client) error {
	n, err := l.Node(apiNode)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.Dir, "bin", "openstack"), []byte(client.Script()), 0o755); err != nil {
		return err
	}
	for i, address := range Replicas {
		name := fmt.Sprintf("controller%d", i+1)
		file, err := l.writeConfig(n, name+".yaml", fmt.Sprintf(ControllerConfig, address))
		if err != nil {
			return err
		}
		if _, err := l.spawn(ctx, n, spec{name: name, argv: []string{binary, "--config", file}, ready: func() error {
			_, err := run(l.command(ctx, n, "curl", "-sSf", "--max-time", "5", "http://"+address+"/readyz"), "asking "+name)
			return err
		}}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) loopback(ctx context.Context, node string) error {
	n, err := l.Node(node)
	if err != nil {
		return err
	}
	return ipBatch(ctx, n.Netns, "link set lo up\n")
}
