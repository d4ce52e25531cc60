package ovs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
)

// AgentCookie is the cookie of the flows of ovn-bgp-agent's EVPN driver.
const AgentCookie = 998

// agentOpenFlow is what ovs-ofctl speaks when it is told nothing, as the agent does. Of
// its actions, strip_vlan without a match on a VLAN cannot be said in later versions.
const agentOpenFlow = "OpenFlow10"

var outputPort = regexp.MustCompile(`output:(\d+)`)

// AgentFlow is a flow of ovn-bgp-agent's.
type AgentFlow struct {
	// Port is the one that it leads to.
	Port string
	// line is the flow as ovs-ofctl writes it, without cookie.
	line string
}

// AgentFlows are the flows under AgentCookie that lead to one of the ports, by bridge.
// It reads only.
func (s *Switch) AgentFlows(ctx context.Context, ports map[string]bool) (map[string][]AgentFlow, error) {
	bridges, err := s.Bridges()
	if err != nil {
		return nil, err
	}
	out := map[string][]AgentFlow{}
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
		if flows := b.agentFlows(string(text), ports); len(flows) > 0 {
			out[b.Name] = flows
		}
	}
	return out, errors.Join(errs...)
}

// agentFlows reads what ovs-ofctl says; a flow may be longer than any buffer.
func (b Bridge) agentFlows(text string, ports map[string]bool) (out []AgentFlow) {
	for line := range strings.Lines(text) {
		match, actions, ok := cutActions(strings.TrimSpace(line))
		if !ok || cookieOf(match) != AgentCookie {
			continue
		}
		if port := b.outputTo(actions, ports); port != "" {
			_, match, _ = strings.Cut(match, ",")
			out = append(out, AgentFlow{port, strings.TrimSpace(match) + ",actions=" + actions})
		}
	}
	return out
}

func (b Bridge) outputTo(actions string, ports map[string]bool) string {
	for _, m := range outputPort.FindAllStringSubmatch(actions, -1) {
		n, _ := strconv.Atoi(m[1])
		if p, ok := b.numbered(n); ok && ports[p.Name] {
			return p.Name
		}
	}
	return ""
}

// AdoptFlows gives flows of a bridge that AgentFlows listed the cookie of steering
// flows. They do what they did; since no row has such a flow, each goes in the same
// bundle as the first row comes in that steers the same packets.
func (s *Switch) AdoptFlows(ctx context.Context, bridge string, flows []AgentFlow) error {
	var lines []string
	for _, f := range flows {
		lines = append(lines, fmt.Sprintf("add cookie=%#x,%s", cookieSteering, f.line))
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

// replacedBy removes the strays whose place a row takes: adopted flows of the same
// sources, of the same gateway if they say which. Those of other VRFs go on to do what
// they do until their own row comes. What nobody adopts goes with any row.
func replacedBy(strays []string, k intent.SteeringKey) (lines []string) {
	for _, stray := range strays {
		m, err := parseMatch(stray)
		if err == nil && m.kind == matchIP && (k.Kind != intent.SteerSource || !k.Prefix.Overlaps(m.prefix) ||
			!m.src.IsZero() && m.src != k.Gateway.MAC) {
			continue
		}
		lines = append(lines, deleteLine(cookieSteering, stray))
	}
	return lines
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
		_, strays := byKey(b, d)
		var lines []string
		for _, m := range strays {
			lines = append(lines, deleteLine(cookieSteering, m))
		}
		return s.sw.bundle(ctx, bridge, lines)
	}
	return nil
}

// DropPort takes a port out of whatever bridge has it; none is no error. An internal
// port's device is gone after it. The caller knows that it is Sluice's to remove.
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
	return s.awaitGone(ctx, b.Name, p)
}
