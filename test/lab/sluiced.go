package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ovn-sluice/sluice/test/nova"
)

// NodeConfig is what a configuration of sluiced says of the node that it is on: where
// its databases are and where its own files go. BGP and the rest come before it.
const NodeConfig = `ovn:
  vswitch: unix:${OVS_RUNDIR}/db.sock
  nb: ${OVN_NB_DB}
ovs:
  runDir: ${OVS_RUNDIR}
dataplane:
  bpffs: ${SLUICE_BPFFS}
admin:
  socket: ${SLUICE_SOCKET}
stateDir: ${OVS_RUNDIR}/sluice
`

// VTEPLinger is how long a tunnel endpoint stays known in a lab after its last route.
const VTEPLinger = 3 * time.Second

// Times are BGP's times in a lab, shorter than the defaults: what a test would wait for.
const Times = `  vtepLinger: 3s
  connectRetry: 1s
`

// Config is a whole configuration of sluiced in a lab, but for the neighbour.
const Config = `bgp:
` + Times + `  asn: 64512
  neighbors:
    - address: %s
` + NodeConfig

// BalancingConfig comes after it where sluiced balances load.
const BalancingConfig = "loadBalancing:\n  enabled: true\n"

// Sluiced says how to run sluiced on a node.
type Sluiced struct {
	// Binary is the program's path.
	Binary string
	// Config is the YAML text; it is written to sluiced.yaml in the node's
	// directory and passed as --config. ${NAME} is replaced from the node's
	// environment, for example ${SLUICE_SOCKET}, ${SLUICE_BPFFS} and ${OVS_RUNDIR}.
	Config string
	// Args follow.
	Args []string
	// Ready tells when it is of use; nil: as soon as it runs.
	Ready func() error
}

// StartSluiced runs sluiced on a chassis, as its process "sluiced". A running
// one is left alone.
func (l *Lab) StartSluiced(ctx context.Context, node string, s Sluiced) (*Process, error) {
	n, err := l.Node(node)
	if err != nil {
		return nil, err
	}
	if n.BPFFS == "" {
		return nil, fmt.Errorf("%s is a %s: sluiced runs on a chassis or peer", node, n.Kind)
	}
	if p, err := l.Process(node, "sluiced"); err == nil && p.Running() {
		return p, nil
	}
	file, err := l.writeConfig(n, "sluiced.yaml", s.Config)
	if err != nil {
		return nil, err
	}
	argv := append([]string{s.Binary, "--config", file}, s.Args...)
	return l.spawn(ctx, n, spec{name: "sluiced", argv: argv, ready: s.Ready})
}

// StartSluiceds runs sluiced on every chassis, with a session to the route reflector rr; more
// is for its configuration.
func (l *Lab) StartSluiceds(ctx context.Context, binary, more string) error {
	rr, err := l.Node("rr")
	if err != nil {
		return err
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	for _, n := range l.Nodes() {
		if n.Kind != KindChassis {
			continue
		}
		if _, err := l.StartSluiced(ctx, n.Name, Sluiced{Binary: binary, Config: fmt.Sprintf(Config, rr.VTEP4) + more}); err != nil {
			return err
		}
	}
	return nil
}

// StartMetadata runs the metadata proxy, "sluiced metadata", on a chassis as its process
// "metadata", beside sluiced and with the same configuration. A running one is left alone.
func (l *Lab) StartMetadata(ctx context.Context, node string, s Sluiced) (*Process, error) {
	n, err := l.Node(node)
	if err != nil {
		return nil, err
	}
	if p, err := l.Process(node, "metadata"); err == nil && p.Running() {
		return p, nil
	}
	file, err := l.writeConfig(n, "sluiced.yaml", s.Config)
	if err != nil {
		return nil, err
	}
	argv := append([]string{s.Binary, "metadata", "--config", file}, s.Args...)
	return l.spawn(ctx, n, spec{name: "metadata", argv: argv, ready: s.Ready})
}

// StartNova runs the stand-in for Nova of a cloud, as the process "nova" on the node of
// its databases. It knows the VMs that are instances now. Binary is sluice-lab.
func (l *Lab) StartNova(ctx context.Context, cloud, binary string) (*Process, error) {
	c, err := l.cloud(cloud)
	if err != nil {
		return nil, err
	}
	n, err := l.Node(c.central())
	if err != nil {
		return nil, err
	}
	address, err := l.NovaAddress(cloud)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(nova.Config{Secret: NovaSecret, Instances: c.NovaInstances()})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(n.Dir, "nova.json")
	if err := writeFile(file, b); err != nil {
		return nil, err
	}
	return l.spawn(ctx, n, spec{name: "nova", argv: []string{binary, "nova", file, address}, ready: func() error {
		_, err := run(l.command(ctx, n, "curl", "-sSf", "--max-time", "5", "http://"+address+"/"), "asking Nova")
		return err
	}})
}

// writeConfig writes a file of the node, with what it names of the node's environment.
func (l *Lab) writeConfig(n Node, name, text string) (string, error) {
	file := filepath.Join(n.Dir, name)
	env := l.env(n)
	text = os.Expand(text, func(name string) string { return lookup(env, name) })
	return file, writeFile(file, []byte(text)) // in one step: a program may be reading it
}

// lookup finds NAME=VALUE in an environment.
func lookup(env []string, name string) string {
	for _, kv := range env {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:]
		}
	}
	return ""
}
