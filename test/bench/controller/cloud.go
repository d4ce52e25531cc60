package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
	"github.com/ovn-sluice/sluice/test/openstack"
)

// cloud is a Northbound database and a controller at it.
type cloud struct {
	dir        string
	database   *exec.Cmd
	controller *openstack.Controller
	client     *http.Client
}

// begin starts both. What it has started is there to be ended also with an error.
func begin(ctx context.Context, program string) (c *cloud, err error) {
	c = &cloud{client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: mostCallers}}}
	if c.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return c, err
	}
	if err := os.WriteFile(c.path("schema"), schema.Northbound, 0o600); err != nil {
		return c, err
	}
	if out, err := exec.CommandContext(ctx, "ovsdb-tool", "create", c.path("db"), c.path("schema")).CombinedOutput(); err != nil {
		return c, fmt.Errorf("ovsdb-tool: %w: %s", err, out)
	}
	c.database = exec.Command("ovsdb-server", "--no-chdir", "--unixctl="+c.path("ctl"), "-vconsole:off", "-vsyslog:off",
		"--remote=punix:"+c.path("sock"), c.path("db"))
	if err := c.database.Start(); err != nil {
		c.database = nil
		return c, err
	}
	if err := until(ctx, "ovsdb-server", func() error { _, err := os.Stat(c.path("sock")); return err }); err != nil {
		return c, err
	}
	address, err := freeAddress()
	if err != nil {
		return c, err
	}
	controller, err := openstack.StartController(program, c.dir, address, "unix:"+c.path("sock"))
	if err != nil {
		return c, err
	}
	c.controller = controller
	return c, until(ctx, "sluice-controller", func() error { return c.call(ctx, http.MethodGet, "/readyz", "", nil) })
}

func (c *cloud) path(name string) string { return filepath.Join(c.dir, name) }

// end ends what runs and removes its files.
func (c *cloud) end() (err error) {
	c.client.CloseIdleConnections()
	if c.controller != nil {
		err = c.controller.Stop()
	}
	if c.database != nil {
		if out, failed := exec.Command("ovs-appctl", "-t", c.path("ctl"), "exit").CombinedOutput(); failed != nil {
			err = errors.Join(err, fmt.Errorf("ovs-appctl: %w: %s", failed, out), c.database.Process.Kill())
		}
		err = errors.Join(err, c.database.Wait())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// until waits until there is no error.
func until(ctx context.Context, what string, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// network is a network at a router of its own.
type network struct {
	number int
	subnet string // an ID
}

// networks makes them, with the ports of so many VMs in each.
func (c *cloud) networks(ctx context.Context, n, vms int) (made []network, err error) {
	for i := range n {
		raw, err := json.Marshal(append([]any{"OVN_Northbound"}, operations(i, vms)...))
		if err != nil {
			return nil, err
		}
		out, err := exec.CommandContext(ctx, "ovsdb-client", "transact", "unix:"+c.path("sock"), string(raw)).CombinedOutput()
		if err != nil || strings.Contains(string(out), `"error"`) {
			return nil, fmt.Errorf("ovsdb-client: %w: %s", err, out)
		}
	}
	for i := range n {
		var list struct{ Subnets []struct{ ID string } }
		if err := c.call(ctx, http.MethodGet, "/v2.0/subnets?name=N"+strconv.Itoa(i)+"-4", "", &list); err != nil {
			return nil, err
		}
		if len(list.Subnets) != 1 {
			return nil, fmt.Errorf("network N%d has the subnets %v", i, list.Subnets)
		}
		made = append(made, network{i, list.Subnets[0].ID})
	}
	return made, nil
}

// operations insert a network, RFC 7047 section 5.2.
func operations(number, vms int) (ops []any) {
	type row = map[string]any
	insert := func(table, name string, columns row) []string {
		ops = append(ops, row{"op": "insert", "table": table, "uuid-name": name, "row": columns})
		return []string{"named-uuid", name}
	}
	one := func(key, value string) []any { return []any{"map", [][]string{{key, value}}} }
	lrp := fmt.Sprintf("lrp-%d", number)
	insert("Logical_Router", "router", row{"name": fmt.Sprintf("R%d", number), "ports": insert("Logical_Router_Port", "interface", row{
		"name": lrp, "mac": fmt.Sprintf("02:00:00:00:00:%02x", number), "networks": fmt.Sprintf("10.%d.0.1/16", number),
	})})
	ports := [][]string{insert("Logical_Switch_Port", "port", row{
		"name": "to-" + lrp, "type": "router", "addresses": "router", "options": one("router-port", lrp),
	})}
	for vm := range vms {
		ports = append(ports, insert("Logical_Switch_Port", fmt.Sprintf("vm%d", vm), row{
			"name":         fmt.Sprintf("vm-%d-%d", number, vm),
			"addresses":    fmt.Sprintf("02:01:%02x:%02x:%02x:00 10.%d.254.%d", number, vm/256, vm%256, number, vm),
			"external_ids": one("neutron:device_owner", "compute:nova"),
		}))
	}
	insert("Logical_Switch", "switch", row{"name": fmt.Sprintf("N%d", number), "ports": []any{"set", ports}})
	return ops
}

// member is the address of a pool's member.
func (n network) member(i int) string { return fmt.Sprintf("10.%d.255.%d", n.number, i+1) }
