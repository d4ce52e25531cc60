package ovn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// PublishPrefix begins the keys of Chassis_Private.external_ids that are ours.
const PublishPrefix = "sluice-"

// publisher keeps our keys in this chassis' Chassis_Private row. It writes when
// the row differs from what is wanted, so a key that somebody removes comes back.
type publisher struct {
	wake loop.Signal

	mu sync.Mutex
	// session is nil while there is none.
	session   transactor
	connected bool
	systemID  string
	rows      map[string]*sb.ChassisPrivate
	pairs     map[string]string
	// asked: Publish was called; before, our keys of an earlier run stay.
	asked bool
	agent agentState
	err   error
}

// transactor is what is needed of a session.
type transactor interface {
	Transact(context.Context, ...ovsdb.Operation) ([]ovsdb.Result, error)
}

// A write that failed is tried again after this long, and then after twice this,
// and so on: what refuses it, such as RBAC, is changed by people.
const (
	publishRetryMin = 5 * time.Second
	publishRetryMax = 5 * time.Minute
)

func newPublisher() *publisher {
	return &publisher{wake: loop.NewSignal(), rows: map[string]*sb.ChassisPrivate{},
		agent: agentState{chassis: map[string]*sb.Chassis{}, spread: cfgSpread}}
}

func (p *publisher) want(pairs map[string]string) error {
	for k := range pairs {
		if !strings.HasPrefix(k, PublishPrefix) {
			return fmt.Errorf("publish %q in Chassis_Private: only keys %s* are Sluice's", k, PublishPrefix)
		}
	}
	p.mu.Lock()
	p.pairs, p.asked = maps.Clone(pairs), true
	p.mu.Unlock()
	p.wake.Send()
	return nil
}

func (p *publisher) identify(systemID string) {
	p.mu.Lock()
	if p.systemID != systemID {
		p.systemID = systemID
		p.wake.Send() // the row may be known already, as one of another member of a group
	}
	p.mu.Unlock()
}

// take notes the row as the session has it.
func (p *publisher) take(from transactor, b ovsdb.Batch) {
	p.mu.Lock()
	if from != p.session {
		p.session, p.connected, p.rows = from, false, map[string]*sb.ChassisPrivate{}
		p.agent.chassis, p.agent.known = map[string]*sb.Chassis{}, false
	}
	changed := false
	for _, c := range b.Changes {
		if c.Table != sb.ChassisPrivateTable {
			changed = p.agent.take(c) || changed
			continue
		}
		changed = true
		if row, ok := c.New.(*sb.ChassisPrivate); ok {
			p.rows[c.UUID] = row
		} else {
			delete(p.rows, c.UUID)
		}
	}
	back := b.Connected && !p.connected
	p.connected = b.Connected
	p.mu.Unlock()
	if changed || back {
		p.wake.Send()
	}
}

func (p *publisher) lastError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// published tells whether the rows that were read lack nothing of what is to be written.
func (p *publisher) published() bool {
	session, own, chassis, _ := p.plan()
	return session != nil && len(own)+len(chassis) == 0
}

func (p *publisher) run(ctx context.Context) error {
	retry := time.NewTimer(publishRetryMin)
	retry.Stop()
	defer retry.Stop()
	wait := publishRetryMin
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-retry.C:
		}
		ok, later := p.write(ctx)
		if ok {
			wait = publishRetryMin
			retry.Stop()
			if later > 0 {
				retry.Reset(later)
			}
			continue
		}
		retry.Reset(wait)
		wait = min(2*wait, publishRetryMax)
	}
}

// write makes our keys as wanted, in one transaction a table, and tells whether they
// are, and how long until there is more to write. What is refused is kept as the error
// of this, which the component's state tells and logs; it is tried again after a while, when the row changes, or when the session is
// back. Without a session everything stays as it is until then.
func (p *publisher) write(ctx context.Context) (ok bool, later time.Duration) {
	session, own, chassis, later := p.plan()
	if session == nil {
		return true, 0
	}
	// RBAC may allow the one and refuse the other.
	err := errors.Join(transact(ctx, session, sb.ChassisPrivateTable, own), transact(ctx, session, sb.ChassisTable, chassis))
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	return err == nil, later
}

// transact writes keys of this chassis' row of a table.
func transact(ctx context.Context, session transactor, table string, ops []ovsdb.Operation) error {
	if len(ops) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := session.Transact(ctx, ops...)
	var denied *ovsdb.PermissionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &denied):
		return fmt.Errorf("write external_ids of %s: the Southbound database's RBAC refuses this node's certificate (its CN has to be the system-id): %w", table, err)
	}
	return fmt.Errorf("write external_ids of %s: %w", table, err)
}

// plan lists the operations that are needed now, in Chassis_Private and in Chassis, and
// how long until there are more; the session is nil while there is none, or nothing to
// publish.
func (p *publisher) plan() (session transactor, own, chassis []ovsdb.Operation, later time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked && !p.agent.asked || p.session == nil || !p.connected {
		return nil, nil, nil, 0
	}
	for _, id := range slices.Sorted(maps.Keys(p.rows)) {
		row := p.rows[id]
		if row.Name != p.systemID {
			continue
		}
		stale, fresh := p.pairsOf(row.ExternalIDs)
		later = max(later, p.agent.pairs(row.ExternalIDs, fresh))
		if len(stale) > 0 {
			own = append(own, ovsdb.DeleteKeys(sb.ChassisPrivateTable, id, "external_ids", stale...))
		}
		if len(fresh) > 0 {
			own = append(own, ovsdb.SetKeys(sb.ChassisPrivateTable, id, "external_ids", fresh))
		}
	}
	return p.session, own, p.agent.operations(p.systemID), later
}

// pairsOf are our keys that a row has and should not have, and those that it should.
func (p *publisher) pairsOf(has map[string]string) (stale []string, fresh map[string]string) {
	fresh = map[string]string{}
	if !p.asked {
		return nil, fresh
	}
	for k := range has {
		if _, wanted := p.pairs[k]; strings.HasPrefix(k, PublishPrefix) && !wanted {
			stale = append(stale, k)
		}
	}
	for k, v := range p.pairs {
		if have, ok := has[k]; !ok || have != v {
			fresh[k] = v
		}
	}
	slices.Sort(stale)
	return stale, fresh
}
