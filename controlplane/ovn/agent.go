package ovn

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// The keys by which Neutron knows a metadata agent, in Chassis_Private.external_ids.
const (
	keyAgentID     = "neutron:ovn-metadata-id"
	keyAgentCfg    = "neutron:ovn-metadata-sb-cfg"
	keyAgentBridge = "neutron:ovn-bridge"
)

// In Chassis.external_ids: the networks that are served, which Neutron read until 2019,
// and that it was Sluice who wrote them. Somebody else's list is not taken away.
const (
	keyProxyNetworks = "neutron-metadata-proxy-networks"
	keyProxyOurs     = PublishPrefix + "metadata-networks"
)

// cfgSpread is over which time the nodes of a cloud answer a change of SB_Global.nb_cfg:
// what Neutron's agent takes with its agent_down_time of 75 s.
const cfgSpread = 10 * time.Second

// MetadataAgent is what this node tells Neutron of the metadata that it serves, in the
// place of neutron-ovn-metadata-agent. The zero value tells nothing.
type MetadataAgent struct {
	// ID is the agent's, written where there is none and never over another. Empty:
	// nothing is written of an agent, and what there is stays, as that of an agent that
	// was stopped.
	ID string
	// Bridge is the integration bridge.
	Bridge string
	// Alive: SB_Global.nb_cfg is repeated as it changes. An agent that does not is shown
	// as dead after a while.
	Alive bool
	// Networks are those that are served, with Publish; without, or when there are none,
	// the key is removed if Sluice wrote it.
	Publish  bool
	Networks []string
}

func (a MetadataAgent) equal(o MetadataAgent) bool {
	return a.ID == o.ID && a.Bridge == o.Bridge && a.Alive == o.Alive && a.Publish == o.Publish && slices.Equal(a.Networks, o.Networks)
}

// agentState is the publisher's part of it; the publisher's lock guards it.
type agentState struct {
	wanted MetadataAgent
	// asked: PublishMetadata was called; before, what an earlier run wrote stays.
	asked   bool
	chassis map[string]*sb.Chassis
	// nbCfg is SB_Global.nb_cfg, if known; seen: it was once, in this or another session.
	nbCfg       int
	known, seen bool
	// due is when a change of nbCfg is to be answered, within spread of it.
	due    time.Time
	spread time.Duration
}

func (p *publisher) wantAgent(a MetadataAgent) {
	a.Networks = slices.Compact(slices.Sorted(slices.Values(a.Networks)))
	p.mu.Lock()
	same := p.agent.asked && p.agent.wanted.equal(a)
	p.agent.wanted, p.agent.asked = a, true
	p.mu.Unlock()
	if !same {
		p.wake.Send()
	}
}

// agentNetworks are the networks in the key of this chassis, if it is Sluice's.
func (p *publisher) agentNetworks() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range p.agent.chassis {
		if _, ours := row.ExternalIDs[keyProxyOurs]; ours && row.Name == p.systemID {
			return strings.FieldsFunc(row.ExternalIDs[keyProxyNetworks], func(r rune) bool { return r == ',' })
		}
	}
	return nil
}

// take notes what a change says, and tells whether it matters here.
func (s *agentState) take(c ovsdb.Change) bool {
	switch c.Table {
	case sb.ChassisTable:
		if row, ok := c.New.(*sb.Chassis); ok {
			s.chassis[c.UUID] = row
		} else {
			delete(s.chassis, c.UUID)
		}
		return s.asked
	case sb.SBGlobalTable:
		row, ok := c.New.(*sb.SBGlobal)
		if !ok {
			return false
		}
		changed := !s.known || s.nbCfg != row.NbCfg
		s.known, s.nbCfg = true, row.NbCfg
		if now := time.Now(); changed && s.seen && !s.due.After(now) {
			s.due = now.Add(rand.N(s.spread))
		}
		s.seen = true
		return changed && s.wanted.Alive
	}
	return false
}

// pairs adds what is to be written of the agent to a row of Chassis_Private that has
// these keys. later is how long until there may be more.
func (s *agentState) pairs(has, fresh map[string]string) (later time.Duration) {
	if s.wanted.ID == "" {
		return 0
	}
	if has[keyAgentID] == "" {
		fresh[keyAgentID] = s.wanted.ID
	}
	if has[keyAgentBridge] != s.wanted.Bridge && s.wanted.Bridge != "" {
		fresh[keyAgentBridge] = s.wanted.Bridge
	}
	cfg := strconv.Itoa(s.nbCfg)
	if have, there := has[keyAgentCfg]; s.wanted.Alive && s.known && have != cfg {
		if wait := time.Until(s.due); there && wait > 0 {
			return wait
		}
		fresh[keyAgentCfg] = cfg
	}
	return 0
}

// operations lists what is to be written of the networks that are served.
func (s *agentState) operations(systemID string) (ops []ovsdb.Operation) {
	if !s.asked {
		return nil
	}
	list := ""
	if s.wanted.Publish {
		list = strings.Join(s.wanted.Networks, ",")
	}
	for _, id := range slices.Sorted(maps.Keys(s.chassis)) {
		row := s.chassis[id]
		_, ours := row.ExternalIDs[keyProxyOurs]
		switch {
		case row.Name != systemID:
		case list == "" && ours:
			ops = append(ops, ovsdb.DeleteKeys(sb.ChassisTable, id, "external_ids", keyProxyNetworks, keyProxyOurs))
		case list != "" && (!ours || row.ExternalIDs[keyProxyNetworks] != list):
			ops = append(ops, ovsdb.SetKeys(sb.ChassisTable, id, "external_ids", map[string]string{keyProxyNetworks: list, keyProxyOurs: "true"}))
		}
	}
	return ops
}
