package lab

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// dbPorts are what a member of a central database listens on: for clients, for
// clients without a role where RBAC is on, and for the other members.
type dbPorts struct{ client, plain, raft int }

var (
	dbNames = map[string]string{"nb": "OVN_Northbound", "sb": "OVN_Southbound"}
	ports   = map[string]dbPorts{"nb": {6641, 16641, 6643}, "sb": {6642, 16642, 6644}}
)

func (c Cloud) central() string { return c.Name + "-central" }

// members are the nodes that serve the databases.
func (c Cloud) members() []string {
	out := []string{c.central()}
	for i := 2; i <= c.Central.Members; i++ {
		out = append(out, c.central()+strconv.Itoa(i))
	}
	return out
}

func (c Cloud) relays() []string {
	if !c.Central.Relay {
		return nil
	}
	return []string{c.Name + "-relay"}
}

// startCentral starts a cloud's databases, what stands before them, and ovn-northd.
func (l *Lab) startCentral(ctx context.Context, c Cloud) error {
	if err := l.wrapPrograms(c); err != nil {
		return err
	}
	if err := l.issueCertificates(c); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for db := range dbNames {
		g.Go(func() error { return l.startCluster(gctx, c, db) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	g, gctx = errgroup.WithContext(ctx)
	for _, r := range c.relays() {
		g.Go(func() error { return l.startRelay(gctx, c, r) })
	}
	g.Go(func() error { return l.startNorthd(gctx, c) })
	return g.Wait()
}

func (l *Lab) startNorthd(ctx context.Context, c Cloud) error {
	n, err := l.Node(c.central())
	if err != nil {
		return err
	}
	ctl := filepath.Join(n.Dir, "northd.ctl")
	_, err = l.spawn(ctx, n, spec{name: "northd", ready: listening(ctl), argv: []string{
		"ovn-northd", "--ovnnb-db=" + l.sockets(c.Name, "nb"), "--ovnsb-db=" + l.sockets(c.Name, "sb"),
		"--unixctl=" + ctl, "-vconsole:info",
	}})
	return err
}

// startCluster serves one database of a cloud: on one node, or as a RAFT cluster.
func (l *Lab) startCluster(ctx context.Context, c Cloud, db string) error {
	members := c.members()
	if err := l.startMember(ctx, c, db, members[0]); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, m := range members[1:] {
		g.Go(func() error { return l.startMember(gctx, c, db, m) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if _, err := l.Exec(ctx, c.central(), "ovn-"+db+"ctl", "init"); err != nil {
		return err
	}
	if db != "sb" || !c.Central.RBAC {
		return nil
	}
	_, err := l.SB(ctx, c.Name, "set-connection", "role=ovn-controller", fmt.Sprintf("pssl:%d:[::]", ports[db].client))
	return err
}

func (l *Lab) startMember(ctx context.Context, c Cloud, db, name string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	schema := c.schema("ovn-" + db)
	if c.Central.Schemas != "" {
		schema = filepath.Join(c.Central.Schemas, "ovn-"+db+".ovsschema")
	}
	d := database{process: db, stem: db, listen: c.listen(db), tls: c.Central.TLS}
	create := []string{"create", schema}
	if c.Central.Members > 1 {
		first, err := l.Node(c.central())
		if err != nil {
			return err
		}
		create = []string{"create-cluster", schema, c.raft(first, db)}
		if n.Name != first.Name {
			create = []string{"join-cluster", dbNames[db], c.raft(n, db), c.raft(first, db)}
		}
	}
	if err := l.createDatabase(ctx, n, d, create[0], create[1:]...); err != nil {
		return err
	}
	if err := l.serveDatabase(ctx, n, d); err != nil || c.Central.Members < 2 {
		return err
	}
	return l.WaitMember(ctx, name, db)
}

// listen is what a member of a database listens on over the network. With RBAC
// the role is a column of the Connection table, so that the client's port is
// there and not on the command line.
func (c Cloud) listen(db string) []string {
	p := ports[db]
	switch {
	case !c.Central.TLS:
		return []string{fmt.Sprintf("ptcp:%d:[::]", p.client)}
	case c.Central.RBAC && db == "sb":
		return []string{"db:OVN_Southbound,SB_Global,connections", fmt.Sprintf("pssl:%d:[::]", p.plain)}
	}
	return []string{fmt.Sprintf("pssl:%d:[::]", p.client)}
}

func (c Cloud) scheme() string {
	if c.Central.TLS {
		return "ssl"
	}
	return "tcp"
}

func (c Cloud) raft(n Node, db string) string {
	return endpoint(c.scheme(), n.VTEP4.String(), ports[db].raft)
}

func endpoint(scheme, host string, port int) string {
	return scheme + ":" + net.JoinHostPort(host, strconv.Itoa(port))
}

// Endpoints are the database nb or sb of a cloud as its chassis reach it.
func (l *Lab) Endpoints(cloud, db string) (string, error) {
	c, err := l.cloud(cloud)
	if err != nil {
		return "", err
	}
	return l.endpoints(c, db), nil
}

func (l *Lab) endpoints(c Cloud, db string) string {
	switch {
	case !c.RemoteTCP && c.Central == Central{}:
		return l.sockets(c.Name, db)
	case c.Central.Relay && db == "sb":
		return l.endpointsOf(c.scheme(), c.relays(), ports[db].client)
	}
	return l.endpointsOf(c.scheme(), c.members(), ports[db].client)
}

// endpointsOf gives every second node by its IPv6 address.
func (l *Lab) endpointsOf(scheme string, nodes []string, port int) string {
	var all []string
	for i, name := range nodes {
		n, err := l.Node(name)
		if err != nil {
			continue
		}
		addr := n.VTEP4
		if i%2 == 1 {
			addr = n.VTEP6
		}
		all = append(all, endpoint(scheme, addr.String(), port))
	}
	return strings.Join(all, ",")
}

// startRelay runs the server that stands before the Southbound database.
func (l *Lab) startRelay(ctx context.Context, c Cloud, name string) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	port := ports["sb"].client
	if c.Central.RBAC {
		port = ports["sb"].plain
	}
	d := database{
		process: "relay", stem: "sb", tls: c.Central.TLS, listen: c.listen("sb"),
		relayOf: "relay:" + dbNames["sb"] + ":" + l.endpointsOf(c.scheme(), c.members(), port),
	}
	return l.serveDatabase(ctx, n, d)
}
