package evpn_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// steady is the node whose sluiced is never ended: it shows what grows.
const steady = "c1"

var (
	chaosNodes  = []string{"a1", "a2", "a3", "b1", "c1"}
	chaosClouds = []string{"a", "b", "c"}
)

// draw makes an event of any kind.
func (p *planner) draw() event {
	return pick(p,
		p.killSluiced, p.killSluiced, p.killSluiced, p.restartSluiced, p.restartSluiced, p.killReflector,
		p.killCentral, p.killCentral, p.killCentral, p.killController, p.stopController, p.killSwitch, p.killSwitchDatabase, p.flap,
		p.moveGateway, p.moveGateway, p.changeVNI, p.spoil, p.spoil,
		p.addGuest, p.addGuest, p.delGuest, p.moveGuest, p.addTenant, p.addTenant, p.delTenant, p.addNetwork, p.delNetwork, p.renumber,
	)()
}

// ends is a process that ends, and is started again after a while.
func (p *planner) ends(node, process string, how syscall.Signal, atMost time.Duration) event {
	pause := p.upTo(atMost)
	word := map[syscall.Signal]string{syscall.SIGKILL: "kill", syscall.SIGTERM: "stop"}[how]
	return event{
		text:    fmt.Sprintf("%s %s on %s, start it %d ms later", word, process, node, pause.Milliseconds()),
		kind:    word + " " + process,
		takes:   []string{process + ":" + node},
		touches: nobody, lasts: pause,
		do: func(ctx context.Context, w *world) error {
			pr, err := w.Process(node, process)
			if err != nil {
				return err
			}
			end := pr.Kill
			if how == syscall.SIGTERM {
				end = pr.Stop
			}
			if err := end(); err != nil {
				return err
			}
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			return pr.Start()
		},
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// What forwards is in the kernel.
func (p *planner) killSluiced() event {
	return p.ends(pick(p, "a1", "a1", "a2", "a3", "b1"), "sluiced", syscall.SIGKILL, 3*time.Second)
}

// As an upgrade does it: the neighbours keep the routes (RFC 4724).
func (p *planner) restartSluiced() event {
	return p.ends(pick(p, "a1", "a1", "a2", "b1"), "sluiced", syscall.SIGTERM, 3*time.Second)
}

// The nodes keep the routes.
func (p *planner) killReflector() event {
	return p.ends("rr", "bgpd", syscall.SIGKILL, 4*time.Second)
}

// OVN's nodes and Sluice go on with what they have read.
func (p *planner) killCentral() event {
	cloud, db := pick(p, chaosClouds...), pick(p, "nb", "sb", "northd")
	e := p.ends(cloud+"-central", db, syscall.SIGKILL, 3*time.Second)
	if db == "nb" {
		e.takes = append(e.takes, "nb:"+cloud)
	}
	return e
}

// A new ovn-controller clears the flows of br-int and writes them anew.
func (p *planner) killController() event {
	return p.onTheWay(p.ends(pick(p, chaosNodes...), "controller", syscall.SIGKILL, 3*time.Second))
}

// One that ends in order takes its chassis out of the Southbound database: gateway
// ports go elsewhere, and tunnels are deleted.
func (p *planner) stopController() event {
	return p.onTheWay(p.ends(pick(p, chaosNodes...), "controller", syscall.SIGTERM, 3*time.Second))
}

// The userspace datapath is the process.
func (p *planner) killSwitch() event {
	e := p.onTheWay(p.ends(pick(p, chaosNodes...), "vswitchd", syscall.SIGKILL, 3*time.Second))
	_, node, _ := strings.Cut(e.takes[0], ":")
	e.needs = []string{"ovsdb:" + node}
	return e
}

// ovs-vswitchd stands still for a second, and ovn-controller claims its ports anew,
// when they connect again: the event lasts until both have done what is written then.
func (p *planner) killSwitchDatabase() event {
	node := pick(p, chaosNodes...)
	e := p.onTheWay(p.ends(node, "ovsdb", syscall.SIGKILL, 3*time.Second))
	kill, name := e.do, fmt.Sprintf("host%d", p.next())
	e.do = func(ctx context.Context, w *world) error {
		if err := kill(ctx, w); err != nil {
			return err
		}
		return w.WaitFor(ctx, "what is written into the new database of "+node, func() error {
			if _, err := w.Exec(ctx, node, "ovs-vsctl", "--timeout=20", "set", "Open_vSwitch", ".", "external_ids:hostname="+name); err != nil {
				return err
			}
			found, err := w.SB(ctx, node[:1], "--timeout=5", "--bare", "--columns=name", "find", "Chassis", "hostname="+name)
			if err == nil && strings.TrimSpace(found) != node {
				err = fmt.Errorf("no chassis has hostname %s", name)
			}
			return err
		})
	}
	return e
}

// onTheWay makes an event one that costs the pairs through its node their packets.
func (p *planner) onTheWay(e event) event {
	_, node, _ := strings.Cut(e.takes[0], ":")
	e.loses, e.touches = all, p.passes(node)
	return e
}

// flap takes a node off the fabric for a moment, for longer at times than the
// neighbours hold a session (9 s).
func (p *planner) flap() event {
	node, pause := pick(p, "a1", "a2", "b1", "c1"), p.upTo(pick(p, 2*time.Second, 2*time.Second, 12*time.Second))
	return event{
		text:  fmt.Sprintf("link %s of %s down for %d ms", lab.UnderlayLink, node, pause.Milliseconds()),
		kind:  "underlay down",
		takes: []string{"underlay:" + node}, loses: all, touches: p.leaves(node), lasts: pause,
		do: func(ctx context.Context, w *world) error {
			if _, err := w.Exec(ctx, node, "ip", "link", "set", lab.UnderlayLink, "down"); err != nil {
				return err
			}
			return sleepThen(ctx, pause, func() error { return w.linkUp(ctx, node) })
		},
	}
}

func sleepThen(ctx context.Context, d time.Duration, then func() error) error {
	if err := sleep(ctx, d); err != nil {
		return err
	}
	return then()
}
