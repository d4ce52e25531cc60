package ovn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// PublishPrefix begins the keys of Chassis_Private.external_ids that are ours.
const PublishPrefix = "sluice-"

// publisher keeps our keys in this chassis' Chassis_Private row. It writes when
// the row differs from what is wanted, so a key that somebody removes comes back.
type publisher struct {
	log  *slog.Logger
	wake chan struct{}

	mu sync.Mutex
	// session is nil while there is none.
	session   transactor
	connected bool
	systemID  string
	rows      map[string]*sb.ChassisPrivate
	pairs     map[string]string
	// asked: Publish was called; before, our keys of an earlier run stay.
	asked bool
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

func newPublisher(log *slog.Logger) *publisher {
	return &publisher{log: log, wake: make(chan struct{}, 1), rows: map[string]*sb.ChassisPrivate{}}
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
	p.poke()
	return nil
}

func (p *publisher) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *publisher) identify(systemID string) {
	p.mu.Lock()
	p.systemID = systemID
	p.mu.Unlock()
}

// take notes the row as the session has it.
func (p *publisher) take(from transactor, b ovsdb.Batch) {
	p.mu.Lock()
	if from != p.session {
		p.session, p.connected, p.rows = from, false, map[string]*sb.ChassisPrivate{}
	}
	changed := false
	for _, c := range b.Changes {
		if c.Table != "Chassis_Private" {
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
		p.poke()
	}
}

func (p *publisher) lastError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
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
		if p.write(ctx) {
			wait = publishRetryMin
			retry.Stop()
			continue
		}
		retry.Reset(wait)
		wait = min(2*wait, publishRetryMax)
	}
}

// write makes our keys as wanted, in one transaction, and tells whether they are.
// What is refused is kept as the error of this; it is tried again after a while,
// when the row changes, or when the session is back. Without a session everything
// stays as it is until then.
func (p *publisher) write(ctx context.Context) bool {
	session, ops := p.plan()
	if session == nil {
		return true
	}
	var err error
	if len(ops) > 0 {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err = session.Transact(ctx, ops...)
	}
	var denied *ovsdb.PermissionError
	if errors.As(err, &denied) {
		err = fmt.Errorf("write external_ids:%s* of Chassis_Private: the Southbound database's RBAC refuses this node's certificate (its CN has to be the system-id): %w", PublishPrefix, err)
	} else if err != nil {
		err = fmt.Errorf("write external_ids:%s* of Chassis_Private: %w", PublishPrefix, err)
	}
	p.mu.Lock()
	again := p.err != nil && err != nil && p.err.Error() == err.Error()
	p.err = err
	p.mu.Unlock()
	if err != nil && !again && ctx.Err() == nil {
		p.log.Warn("chassis facts not published", "error", err)
	}
	return err == nil
}

// plan lists the operations that are needed now; the session is nil while there
// is none, or nothing to publish.
func (p *publisher) plan() (transactor, []ovsdb.Operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked || p.session == nil || !p.connected {
		return nil, nil
	}
	var ops []ovsdb.Operation
	for _, id := range slices.Sorted(maps.Keys(p.rows)) {
		row := p.rows[id]
		if row.Name != p.systemID {
			continue
		}
		var stale []string
		for k := range row.ExternalIDs {
			if _, wanted := p.pairs[k]; strings.HasPrefix(k, PublishPrefix) && !wanted {
				stale = append(stale, k)
			}
		}
		fresh := map[string]string{}
		for k, v := range p.pairs {
			if have, ok := row.ExternalIDs[k]; !ok || have != v {
				fresh[k] = v
			}
		}
		if len(stale) > 0 {
			slices.Sort(stale)
			ops = append(ops, ovsdb.DeleteKeys("Chassis_Private", id, "external_ids", stale...))
		}
		if len(fresh) > 0 {
			ops = append(ops, ovsdb.SetKeys("Chassis_Private", id, "external_ids", fresh))
		}
	}
	return p.session, ops
}
