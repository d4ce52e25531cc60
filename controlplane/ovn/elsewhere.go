package ovn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// Gateway is a gateway port of any node, as the Southbound database shows it.
type Gateway struct {
	// Port is the name of the chassisredirect or l3gateway port, Router its datapath.
	Port   string
	Router UUID
	// Chassis is the name of the chassis that it is bound to; empty: to none.
	Chassis string
	// MACs are the columns mac of all ports of its router: their networks.
	MACs [][]string
}

// mostRouters bounds what one question reads.
const mostRouters = 256

// GatewaysWith asks the Southbound database for the gateway ports, on whichever
// node, of the routers next to a switch's port that has key=value among its
// external_ids. It is for questions that are rare: the server looks at every port.
func (f *Follower) GatewaysWith(ctx context.Context, key, value string) ([]Gateway, error) {
	f.mu.Lock()
	src := f.sb
	f.mu.Unlock()
	if src == nil {
		return nil, errors.New("there is no session with the Southbound database")
	}
	ask := asker{ctx, src.session}
	marked, err := ask.ports(ovsdb.IncludesPair("external_ids", key, value))
	if err != nil {
		return nil, err
	}
	routers := map[string]bool{}
	for _, p := range marked {
		peer, err := ask.ports(ovsdb.Equal("logical_port", p.Options["peer"]))
		if err != nil {
			return nil, err
		}
		for _, other := range peer {
			if other.Datapath != p.Datapath && len(routers) < mostRouters {
				routers[other.Datapath] = true
			}
		}
	}
	var out []Gateway
	for router := range routers {
		found, err := ask.gateways(router)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortFunc(out, func(a, b Gateway) int { return strings.Compare(a.Port, b.Port) })
	return out, nil
}

// asker reads single rows.
type asker struct {
	ctx     context.Context
	session *ovsdb.Session
}

func (a asker) ports(where ovsdb.Clause) ([]*sb.PortBinding, error) {
	columns := []string{"logical_port", "type", "datapath", "chassis", "mac", "options"}
	result, err := a.session.Transact(a.ctx, ovsdb.Select(sb.PortBindingTable, columns, where))
	if err != nil {
		return nil, fmt.Errorf("read Port_Binding with %s: %w", where, err)
	}
	var out []*sb.PortBinding
	for _, row := range result[0].Rows {
		if p, ok := row.(*sb.PortBinding); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

func (a asker) gateways(router string) ([]Gateway, error) {
	ports, err := a.ports(ovsdb.Equal("datapath", ovsdb.UUID(router)))
	if err != nil {
		return nil, err
	}
	var macs [][]string
	for _, p := range ports {
		if p.Type != TypeChassisRedirect {
			macs = append(macs, p.MAC)
		}
	}
	var out []Gateway
	for _, p := range ports {
		// All ports of a gateway router are bound to one chassis: the first says it.
		if p.Type != TypeChassisRedirect && (p.Type != TypeL3Gateway || len(out) > 0) {
			continue
		}
		chassis, err := a.chassis(value(p.Chassis))
		if err != nil {
			return nil, err
		}
		out = append(out, Gateway{Port: p.LogicalPort, Router: UUID(router), Chassis: chassis, MACs: macs})
	}
	return out, nil
}

func (a asker) chassis(uuid string) (string, error) {
	if uuid == "" {
		return "", nil
	}
	result, err := a.session.Transact(a.ctx, ovsdb.Select(sb.ChassisTable, []string{"name"}, ovsdb.Equal("_uuid", ovsdb.UUID(uuid))))
	if err != nil {
		return "", fmt.Errorf("read Chassis %s: %w", uuid, err)
	}
	for _, row := range result[0].Rows {
		if c, ok := row.(*sb.Chassis); ok {
			return c.Name, nil
		}
	}
	return "", nil
}
