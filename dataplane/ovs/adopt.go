package ovs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
)

// AgentCookie is the cookie of the flows of ovn-bgp-agent's EVPN driver.
const AgentCookie = 998

// agentOpenFlow is what ovs-ofctl speaks when it is told nothing, as the agent does. Of
// its actions, strip_vlan without a match on a VLAN cannot be said in later versions.
const agentOpenFlow = "OpenFlow10"

var outputPort = regexp.MustCompile(`output:(\d+)`)

// AgentFlows are the flows under AgentCookie that lead to a port, by bridge, as
// ovs-ofctl writes them, without cookie. It reads only.
func (s *Switch) AgentFlows(ctx context.Context, ports map[string]bool) (map[string][]string, error) {
	bridges, err := s.Bridges()
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	var errs []error
	for _, b := range bridges {
		if b.Name == s.integrationBridge() {
			continue
		}
		text, err := s.ofctl(ctx, "", b.Name, []string{"-O", agentOpenFlow, "--no-stats", "--no-names", "dump-flows"}, fmt.Sprintf("cookie=%#x/-1", AgentCookie))
		if err != nil {
			errs = append(errs, fmt.Errorf("flows of bridge %s: %w", b.Name, err))
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			match, actions, ok := cutActions(strings.TrimSpace(lines.Text()))
			if !ok || cookieOf(match) != AgentCookie || !b.outputsTo(actions, ports) {
				continue
			}
			_, match, _ = strings.Cut(match, ",")
			out[b.Name] = append(out[b.Name], strings.TrimSpace(match)+",actions="+actions)
		}
	}
	return out, errors.Join(errs...)
}

func (b Bridge) outputsTo(actions string, ports map[string]bool) bool {
	for _, m := range outputPort.FindAllStringSubmatch(actions, -1) {
		n, _ := strconv.Atoi(m[1])
		if p, ok := b.numbered(n); ok && ports[p.Name] {
			return true
		}
	}
	return false
}

// AdoptFlows gives flows of a bridge that AgentFlows listed the cookie of steering
// flows. They do what they did; since no row has such a flow, they go in the same
// bundle as the next change of rows comes in.
func (s *Switch) AdoptFlows(ctx context.Context, bridge string, flows []string) error {
	var lines []string
	for _, f := range flows {
		lines = append(lines, fmt.Sprintf("add cookie=%#x,%s", cookieSteering, f))
	}
	// This version knows no bundles: one flow after the other takes the place of itself.
	if _, err := s.ofctl(ctx, strings.Join(lines, "\n")+"\n", bridge, []string{"-O", agentOpenFlow, "add-flows"}, "-"); err != nil {
		return fmt.Errorf("flows of bridge %s: %w", bridge, err)
	}
	return nil
}

// Strays counts the steering flows of each bridge that no row can have.
func (s *Steering) Strays(ctx context.Context) (map[string]int, error) {
	bridges, err := s.sw.Bridges()
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, b := range bridges {
		if b.Name == s.sw.integrationBridge() {
			continue
		}
		d, err := s.sw.dump(ctx, b.Name, cookieSteering)
		if err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("listing steering flows: %w", err)
			}
			continue // as in List
		}
		if _, unknown := byKey(b, d); len(unknown) > 0 {
			out[b.Name] = len(unknown)
		}
	}
	return out, nil
}

// RemoveStrays removes what Strays counts.
func (s *Steering) RemoveStrays(ctx context.Context, bridge string) error {
	bridges, err := s.sw.Bridges()
	if err != nil {
		return err
	}
	for _, b := range bridges {
		if b.Name != bridge {
			continue
		}
		d, err := s.sw.dump(ctx, bridge, cookieSteering)
		if err != nil {
			return err
		}
		_, lines := removable(b, d)
		return s.sw.bundle(ctx, bridge, lines)
	}
	return nil
}

// DropPort takes a port out of whatever bridge has it; none is no error. The caller
// knows that it is Sluice's to remove.
func (s *Switch) DropPort(ctx context.Context, name string) error {
	key, ok := s.HasPort(name)
	if !ok {
		return nil
	}
	b, err := s.Bridge(key)
	if err != nil {
		return err
	}
	p, ok := b.port(name)
	if !ok {
		return nil
	}
	if _, err := s.config.Transact(ctx,
		ovsdb.Comment("sluice: port "+name+" leaves bridge "+b.Name),
		ovsdb.RemoveMembers(vswitch.BridgeTable, b.uuid, "ports", ovsdb.UUID(p.portUUID))); err != nil {
		return fmt.Errorf("removing port %s from bridge %s: %w", name, b.Name, err)
	}
	return nil
}
