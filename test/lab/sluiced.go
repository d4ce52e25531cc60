package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	file := filepath.Join(n.Dir, "sluiced.yaml")
	env := l.env(n)
	text := os.Expand(s.Config, func(name string) string { return lookup(env, name) })
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	argv := append([]string{s.Binary, "--config", file}, s.Args...)
	return l.spawn(ctx, n, spec{name: "sluiced", argv: argv, ready: s.Ready})
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
