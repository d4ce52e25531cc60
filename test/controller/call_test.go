package controller_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

const lbaas = "/v2.0/lbaas"

// call is a request to a replica, and what it means.
type call struct {
	method, path string
	body         any // as JSON; nil for none
	want         int
	// object is the key of the object in the answer; of a create, list and name find it where the
	// answer is lost.
	object, list, name string
	// apply changes the model as the call changes the rows; nil: it is refused. made is the object of a
	// create.
	apply func(m *model, made answer)
}

func (c call) String() string {
	body, err := json.Marshal(c.body)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s %s %s", c.method, strings.TrimPrefix(c.path, lbaas), body)
}

func (c call) creates() bool { return c.name != "" }

// fields are those of an object in a request.
type fields map[string]any

func create(object, name, path string, f fields, apply func(m *model, made answer)) call {
	f["name"] = name
	c := call{"POST", lbaas + path, map[string]fields{object: f}, 201, object, lbaas + path + "?name=" + name, name, apply}
	return c
}

func update(object, path string, f fields, apply func(m *model)) call {
	return call{method: "PUT", path: lbaas + path, body: map[string]fields{object: f}, want: 200, apply: func(m *model, _ answer) { apply(m) }}
}

func remove(path string, apply func(m *model)) call {
	return call{method: "DELETE", path: lbaas + path, want: 204, apply: func(m *model, _ answer) { apply(m) }}
}

// refused is a call that has to be answered with a status, and to change nothing.
func refused(c call, status int) call {
	c.want, c.apply, c.name = status, nil, ""
	return c
}

// createBalancer has its VIP in a subnet of a network; an address that is not valid is the API's choice.
func (w *world) createBalancer(network string, subnet int, vip netip.Addr) call {
	n := w.Networks[network]
	f := fields{"vip_subnet_id": n.Subnets[subnet]}
	if vip.IsValid() {
		f["vip_address"] = vip.String()
	}
	name := w.unique("lb")
	return create("loadbalancer", name, "/loadbalancers", f, func(m *model, made answer) {
		b := &balancer{ID: made.text("id"), Name: name, Up: true, Network: network, Port: made.text("vip_port_id"), Rows: map[string]*row{"": newRow()}}
		b.VIP, _ = netip.ParseAddr(made.text("vip_address")) // one that is none differs from the row's
		b.Rows[""].Counts[network] = 1
		m.Balancers[b.ID] = b
	})
}

func (w *world) unique(kind string) string {
	w.names++
	return fmt.Sprintf("%s%s-%d", w.prefix, kind, w.names)
}

func (w *world) updateBalancer(id string, up bool) call {
	name := w.unique("lb")
	return update("loadbalancer", "/loadbalancers/"+id, fields{"name": name, "description": "of " + name, "tags": []string{name}, "admin_state_up": up}, func(m *model) {
		b := m.Balancers[id]
		b.Name, b.Description, b.Tags, b.Up = name, "of "+name, []string{name}, up
	})
}

func (w *world) deleteBalancer(id string) call {
	return remove("/loadbalancers/"+id+"?cascade=true", func(m *model) { delete(m.Balancers, id) })
}

func (w *world) createListener(balancer, protocol string, port int, pool string) call {
	f := fields{"loadbalancer_id": balancer, "protocol": strings.ToUpper(protocol), "protocol_port": port}
	if pool != "" {
		f["default_pool_id"] = pool
	}
	name := w.unique("l")
	return create("listener", name, "/listeners", f, func(m *model, made answer) {
		m.Balancers[balancer].row(protocol).Listeners[made.text("id")] = &listener{Name: name, Pool: pool, Port: port, Up: true}
	})
}

// updateListener gives it another pool; "" is none.
func (w *world) updateListener(balancer, protocol, id, pool string, up bool) call {
	name := w.unique("l")
	f := fields{"name": name, "admin_state_up": up, "default_pool_id": nil}
	if pool != "" {
		f["default_pool_id"] = pool
	}
	return update("listener", "/listeners/"+id, f, func(m *model) {
		l := m.Balancers[balancer].Rows[protocol].Listeners[id]
		l.Name, l.Pool, l.Up = name, pool, up
	})
}

func (w *world) deleteListener(balancer, protocol, id string) call {
	return remove("/listeners/"+id, func(m *model) {
		delete(m.Balancers[balancer].Rows[protocol].Listeners, id)
		m.Balancers[balancer].tidy()
	})
}

// createPool is for a listener, or for none.
func (w *world) createPool(balancer, protocol, listener string) call {
	f := fields{"protocol": strings.ToUpper(protocol), "lb_algorithm": "SOURCE_IP_PORT"}
	if listener != "" {
		f["listener_id"] = listener
	} else {
		f["loadbalancer_id"] = balancer
	}
	name := w.unique("p")
	return create("pool", name, "/pools", f, func(m *model, made answer) {
		r := m.Balancers[balancer].row(protocol)
		r.Pools[made.text("id")] = &pool{Name: name, Up: true, Members: map[string]*member{}}
		if listener != "" {
			r.Listeners[listener].Pool = made.text("id")
		}
	})
}

func (w *world) updatePool(balancer, protocol, id string, up bool) call {
	name := w.unique("p")
	return update("pool", "/pools/"+id, fields{"name": name, "admin_state_up": up}, func(m *model) {
		p := m.Balancers[balancer].Rows[protocol].Pools[id]
		p.Name, p.Up = name, up
	})
}

func (w *world) deletePool(balancer, protocol, id string) call {
	return remove("/pools/"+id, func(m *model) { m.Balancers[balancer].removePool(protocol, id) })
}

func (w *world) createMember(balancer, protocol, pool, network string, subnet int, addr netip.AddrPort) call {
	name, id := w.unique("m"), w.Networks[network].Subnets[subnet]
	f := fields{"address": addr.Addr().String(), "protocol_port": addr.Port(), "subnet_id": id, "weight": 3}
	return create("member", name, "/pools/"+pool+"/members", f, func(m *model, made answer) {
		r := m.Balancers[balancer].Rows[protocol]
		r.Pools[pool].Members[made.text("id")] = &member{Name: name, Network: network, Subnet: id, Addr: addr, Weight: 3, Up: true}
		r.add(network, 1)
	})
}

func (w *world) updateMember(balancer, protocol, pool, id string, weight int, up bool) call {
	name := w.unique("m")
	return update("member", "/pools/"+pool+"/members/"+id, fields{"name": name, "weight": weight, "admin_state_up": up}, func(m *model) {
		x := m.Balancers[balancer].Rows[protocol].Pools[pool].Members[id]
		x.Name, x.Weight, x.Up = name, weight, up
	})
}

func (w *world) deleteMember(balancer, protocol, pool, id string) call {
	return remove("/pools/"+pool+"/members/"+id, func(m *model) { m.Balancers[balancer].Rows[protocol].removeMember(pool, id) })
}

// ask sends a call.
func (c call) ask(r *replica) (status int, out answer, err error) {
	body := ""
	if c.body != nil {
		raw, err := json.Marshal(c.body)
		if err != nil {
			return 0, nil, err
		}
		body = string(raw)
	}
	return r.ask(c.method, c.path, body)
}

// made is the object of an answer.
func (c call) made(out answer) answer {
	o, _ := out[c.object].(map[string]any)
	return o
}
