package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest/pki"
)

// database is an ovsdb-server: its process name, the stem of its files, and what
// it listens on besides STEM.sock in the node's directory.
type database struct {
	process, stem string
	listen        []string
	// tls gives it the node's certificate.
	tls bool
	// relayOf is served instead of a file.
	relayOf string
}

func (d database) file(n Node) string { return filepath.Join(n.Dir, d.stem+".db") }

// createDatabase makes STEM.db by a command of ovsdb-tool: create,
// create-cluster or join-cluster.
func (l *Lab) createDatabase(ctx context.Context, n Node, d database, how string, more ...string) error {
	args := append([]string{"ovsdb-tool", how, d.file(n)}, more...)
	_, err := run(l.command(ctx, n, args...), strings.Join(args, " "))
	return err
}

func (l *Lab) serveDatabase(ctx context.Context, n Node, d database) error {
	content := d.relayOf
	if content == "" {
		content = d.file(n)
	}
	sock := filepath.Join(n.Dir, d.stem+".sock")
	argv := []string{
		"ovsdb-server", content, "--remote=punix:" + sock, "--unixctl=" + filepath.Join(n.Dir, d.stem+".ctl"), "-vconsole:info",
	}
	for _, remote := range d.listen {
		argv = append(argv, "--remote="+remote)
	}
	if d.tls {
		files := l.Certificate(n.Name)
		argv = append(argv, "--private-key="+files.Key, "--certificate="+files.Cert, "--ca-cert="+files.CA)
	}
	_, err := l.spawn(ctx, n, spec{name: d.process, argv: argv, ready: listening(sock)})
	return err
}

// WaitMember waits until a node's server of the database nb or sb has joined its
// cluster and knows a leader.
func (l *Lab) WaitMember(ctx context.Context, node, db string) error {
	return l.WaitFor(ctx, db+" on "+node+" to join its cluster", func() error {
		status, err := l.clusterStatus(ctx, node, db)
		if err == nil && (!strings.Contains(status, "Status: cluster member") || strings.Contains(status, "Leader: unknown")) {
			err = fmt.Errorf("its status: %s", tail(status, 500))
		}
		return err
	})
}

// Leader is the node whose server leads the cluster of the database nb or sb.
func (l *Lab) Leader(ctx context.Context, cloud, db string) (leader string, err error) {
	c, err := l.cloud(cloud)
	if err != nil {
		return "", err
	}
	err = l.WaitFor(ctx, "a leader of "+db+" in cloud "+cloud, func() error {
		for _, m := range c.members() {
			if status, err := l.clusterStatus(ctx, m, db); err == nil && strings.Contains(status, "Role: leader") {
				leader = m
				return nil
			}
		}
		return errors.New("no member says that it leads")
	})
	return leader, err
}

func (l *Lab) clusterStatus(ctx context.Context, node, db string) (string, error) {
	n, err := l.Node(node)
	if err != nil {
		return "", err
	}
	return l.Exec(ctx, node, "ovs-appctl", "-t", filepath.Join(n.Dir, db+".ctl"), "cluster/status", dbNames[db])
}

func (l *Lab) pkiDir() string { return filepath.Join(l.dir, "pki") }

// Certificate names the certificate files of a name, for example of a node of a
// cloud with TLS.
func (l *Lab) Certificate(name string) pki.Files { return pki.FilesIn(l.pkiDir(), name) }

// Issue makes a certificate for another name. The lab needs a cloud with TLS.
func (l *Lab) Issue(name string) (pki.Files, error) {
	a, err := pki.Open(l.pkiDir())
	if err != nil {
		return pki.Files{}, err
	}
	return a.Issue(name)
}

// makeAuthority makes the authority that all clouds with TLS share.
func (l *Lab) makeAuthority() error {
	for _, c := range l.Scenario().Clouds {
		if c.Central.TLS {
			if err := os.Mkdir(l.pkiDir(), 0o700); err != nil {
				return err
			}
			_, err := pki.New(l.pkiDir())
			return err
		}
	}
	return nil
}

// issueCertificates gives each node that speaks to a database a certificate.
func (l *Lab) issueCertificates(c Cloud) error {
	if !c.Central.TLS {
		return nil
	}
	names := append(c.members(), c.relays()...)
	for _, ch := range c.Chassis {
		names = append(names, ch.Name)
	}
	for _, name := range names {
		if _, err := l.Issue(name); err != nil {
			return err
		}
	}
	return nil
}
