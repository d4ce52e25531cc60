package demo

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/ovn-sluice/sluice/test/lab"
)

// metadataNode has the VMs that ask for metadata.
const metadataNode = "a3"

// program is sluiced on a node, with its configuration.
func (t *tour) program(node string) (lab.Sluiced, error) {
	rr, err := t.lab.Node("rr")
	if err != nil {
		return lab.Sluiced{}, err
	}
	s := lab.Sluiced{Binary: t.binary, Config: fmt.Sprintf(lab.Config, rr.VTEP4) + lab.BalancingConfig}
	if node == metadataNode {
		section, err := t.lab.MetadataConfig("a")
		if err != nil {
			return s, err
		}
		s.Config += section
	}
	return s, nil
}

// metadata has two VMs with one address ask who they are.
func (t *tour) metadata(ctx context.Context) error {
	t.head("Two VMs with the same addresses ask who they are")
	t.say("m-red1 and m-blue1 are on %s. They have the same IP and MAC addresses, and neither network has a namespace or a proxy of its own.", metadataNode)
	t.say("The one proxy of the node knows by the tap who asks, and signs that for Nova, which here is a stand-in that checks it.")
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := t.lab.StartNova(ctx, "a", exe); err != nil {
		return err
	}
	program, err := t.program(metadataNode)
	if err != nil {
		return err
	}
	if _, err := t.lab.StartMetadata(ctx, metadataNode, program); err != nil {
		return err
	}
	const url = "http://169.254.169.254/latest/meta-data/instance-id"
	if err := t.lab.WaitFor(ctx, "m-red1 is told who it is", func() error {
		_, err := t.lab.Exec(ctx, "m-red1", "curl", "-sSf", "--max-time", "2", url)
		return err
	}); err != nil {
		return err
	}
	for _, vm := range []string{"m-red1", "m-blue1"} {
		instance := "inst-" + strings.TrimPrefix(vm, "m-")
		if _, err := t.show(ctx, vm, "ip", "-br", "addr", "show", "eth0"); err != nil {
			return err
		}
		for _, url := range []string{url, "http://[fe80::a9fe:a9fe%25eth0]/latest/meta-data/instance-id"} {
			out, err := t.show(ctx, vm, "curl", "-sSgf", "--max-time", "30", url)
			if err != nil {
				return err
			}
			if strings.TrimSpace(out) != instance {
				return fmt.Errorf("%s is told that it is %q, not %s", vm, out, instance)
			}
		}
	}
	for _, argv := range [][]string{{"ip", "netns"}, {"sluicectl", "metadata", "ports"}} {
		if _, err := t.show(ctx, metadataNode, argv...); err != nil {
			return err
		}
	}
	return nil
}
