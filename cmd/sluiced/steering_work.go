package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	identities "github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/metadata/steering"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/capability"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// metadataAtWork is what there is of metadata on the node while it is served.
type metadataAtWork struct {
	taps     *taps.Taps
	proxy    *namespace.Proxy
	steering *steering.Driver
	tables   *tables.Metadata
	// broken says what is wrong with the proxy's namespace; nil or empty: nothing.
	broken atomic.Pointer[string]
}

const (
	metadataCondition = "metadata"
	// metadataLook is between two looks at the proxy's namespace and heartbeat.
	metadataLook = time.Second
	// switchRetry is between two tries while the local database has not been read.
	switchRetry = 200 * time.Millisecond
)

// run serves metadata until ctx ends, and leaves all that is programmed. Where metadata is
// not to be served, it takes away what an earlier start made.
func (m *metadataPart) run(ctx context.Context) error {
	var work *metadataAtWork
	start := func() (err error) {
		if !m.d.cfg.Metadata.Used() {
			return m.retire(ctx)
		}
		work, err = m.start(ctx)
		return err
	}
	for err := start(); err != nil; err = start() {
		wait := startRetry
		if errors.Is(err, reconcile.ErrNotReady) {
			wait = switchRetry // the local database is still to be read
		} else {
			m.d.reg.SetCondition(metadataCondition, false, reason.StartFailed, startFailed(err, capability.SysAdmin))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
	if work == nil {
		m.d.follower.PublishMetadata(ovn.MetadataAgent{}) // takes back what an earlier start told
		m.d.reg.SetCondition(metadataCondition, true, reason.Idle, m.d.cfg.Metadata.Unused())
		return nil
	}
	defer func() { _ = work.taps.Close() }()
	m.adopt(work)
	defer m.adopt(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return work.tables.Pipeline.Run(ctx) })
	group.Go(func() error { return work.readBack(ctx, m.d.ovs) })
	group.Go(func() error { return work.steering.Watch(ctx, work.relist) })
	group.Go(func() error { return m.watch(ctx, work) })
	return ignoreEnd(group.Wait())
}

// retire takes away what an earlier start made. It needs the local database, in which
// ports may be Sluice's.
func (m *metadataPart) retire(ctx context.Context) error {
	things, err := owned.Metadata(ctx, m.d.ovs, namespace.Names{}, owned.MetadataPins(m.d.cfg.Dataplane.BPFFS))
	errs := []error{err}
	for _, t := range things {
		m.d.log.Info("metadata is not served; removing", "object", t.What)
		errs = append(errs, t.Remove(ctx))
	}
	return errors.Join(errs...)
}

func (m *metadataPart) start(ctx context.Context) (*metadataAtWork, error) {
	c := m.d.cfg
	loaded, err := taps.Load(taps.Config{Dir: owned.MetadataPins(c.Dataplane.BPFFS), StaleAfter: c.Metadata.StaleAfter.Duration, Log: m.d.log})
	if err != nil {
		return nil, fmt.Errorf("programs of taps: %w", err)
	}
	w := &metadataAtWork{taps: loaded}
	w.proxy = namespace.NewProxy(namespace.ProxyConfig{Attach: func(_ context.Context, p taps.Proxy) error {
		return errors.Join(loaded.AttachProxy(p.Host), loaded.SetProxy(p))
	}})
	if _, err := w.proxy.Ensure(ctx); err != nil {
		return nil, errors.Join(err, loaded.Close())
	}
	file := identities.Path(c.StateDir)
	if err := begin(loaded, file); err != nil {
		return nil, errors.Join(fmt.Errorf("identities of metadata: %w", err), loaded.Close())
	}
	w.steering = steering.New(steering.Config{Maps: loaded, File: file, Log: m.d.log})
	drivers := tables.Drivers{}
	tables.Drive(drivers, intent.MetadataNetworks, namespace.NewNetworks(namespace.NetworksConfig{Ports: m.d.ovs}))
	tables.Drive(drivers, intent.MetadataPorts, w.steering)
	w.tables = tables.NewMetadata(drivers, m.d.steps.OVNInSync, m.published.inKey, tables.Options{Status: m.d.reg, Log: m.d.log})
	return w, nil
}

// adopt makes w what OVN's events go to, and gives it what is known.
func (m *metadataPart) adopt(w *metadataAtWork) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	m.at = w
	if w == nil || !m.stepped {
		return
	}
	all := m.translator.Tables()
	w.tables.Pipeline.Update(func() { w.tables.Set(all) })
}

// patch hands a step to the tables. first: it is all that is wanted.
func (w *metadataAtWork) patch(d wanted.Difference, first bool) {
	if d.Empty() && !first {
		return
	}
	w.tables.Pipeline.Update(func() {
		if first {
			all := wanted.NewSet()
			all.Apply(d)
			w.tables.Set(all)
			return
		}
		w.tables.Update(d)
	})
}

// relist has devices, maps and programs read back.
func (w *metadataAtWork) relist() { w.tables.Pipeline.RelistAll() }

// readBack has the tables read back as soon as the local database has been read: the first
// try is mostly before that.
func (w *metadataAtWork) readBack(ctx context.Context, sw *ovs.Switch) error {
	if err := sw.WaitRead(ctx); err != nil {
		return nil // ctx has ended
	}
	w.relist()
	return nil
}

// watch mends the proxy's namespace, and says whether the proxy is alive.
func (m *metadataPart) watch(ctx context.Context, w *metadataAtWork) error {
	tick := time.NewTicker(metadataLook)
	defer tick.Stop()
	if m.d.cfg.Metadata.PublishNetworks == config.SwitchOn {
		tick.Reset(publishedLook)
	}
	var last time.Time
	for {
		if now := time.Now(); now.Sub(last) >= metadataLook-publishedLook/2 {
			m.lookAtProxy(ctx, w)
			last = now
		} else {
			m.settle(w)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// settle brings the key of published networks nearer to what it should be.
func (m *metadataPart) settle(w *metadataAtWork) {
	m.d.mu.Lock()
	soon, alive := m.settling.soon(time.Now()), m.alive
	m.d.mu.Unlock()
	if !soon {
		return
	}
	if alive { // else no network is to be in the key
		m.published.look(programmed(tables.Of(w.tables, intent.MetadataNetworks)))
	}
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.stepped {
		m.tellNeutron()
	}
}

func (m *metadataPart) lookAtProxy(ctx context.Context, w *metadataAtWork) {
	why, detail := reason.Serving, ""
	if differs, err := w.mend(ctx); err != nil {
		why, detail = reason.Broken, err.Error()
	} else if differs != "" {
		m.d.log.Warn("the namespace of the metadata proxy was mended", "was", differs)
	}
	w.broken.Store(&detail)
	if silent := w.silence(m.d.cfg.Metadata.StaleAfter.Duration); silent != "" && detail == "" {
		why, detail = reason.NoProxy, silent
	}
	if m.d.cfg.Metadata.PublishNetworks == config.SwitchOn && detail == "" {
		m.published.look(programmed(tables.Of(w.tables, intent.MetadataNetworks)))
	}
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	m.alive, m.looked = detail == "", true
	switch {
	case m.stepped:
		m.tellNeutron()
	case m.awaitsACLs:
		if detail == "" { // what is broken is said first
			why, detail = reason.Waiting, "for the ACLs of the Northbound database; what was served before stays"
		}
		if time.Since(m.began) >= aclPatience {
			m.d.follower.Again()
		}
	}
	m.d.reg.SetCondition(metadataCondition, detail == "", why, detail)
}

// mend makes again what somebody changed of the proxy's namespace, and says what that was.
func (w *metadataAtWork) mend(ctx context.Context) (string, error) {
	differs, err := w.proxy.Check()
	if err != nil {
		return "", err
	}
	if p, err := w.taps.Proxy(); err != nil {
		return "", err
	} else if ok, err := w.taps.ProxyAttached(p.Host); err != nil || !ok {
		differs = append(differs, "the program is not on "+namespace.ProxyHost)
	}
	if len(differs) == 0 {
		return "", nil
	}
	_, err = w.proxy.Ensure(ctx)
	return strings.Join(differs, "; "), err
}

// silence says since when nothing was heard of the proxy; empty: it is alive.
func (w *metadataAtWork) silence(staleAfter time.Duration) string {
	age, ever, err := w.taps.HeartbeatAge()
	switch {
	case err != nil:
		return err.Error()
	case !ever:
		return "the proxy has not served yet (sluiced metadata); requests are left to OVN"
	case age > staleAfter:
		return fmt.Sprintf("the proxy has not been heard of for %s (sluiced metadata); requests are left to OVN", age.Round(time.Second))
	}
	return ""
}

// tellNeutron publishes what is served. d.mu is held.
func (m *metadataPart) tellNeutron() {
	if m.dry {
		return
	}
	a := m.translator.Agent()
	a.Alive = m.alive
	if a.Publish {
		a.Networks = m.networks(a.Networks)
	}
	m.d.follower.PublishMetadata(a)
}

// begin writes an empty file of identities where there is none that can be read: without
// ports nobody else does, and the proxy waits for it. With rows of an earlier start it has
// to wait for theirs.
func begin(loaded *taps.Taps, file string) error {
	rows, err := loaded.Sources()
	if err != nil || len(rows) > 0 {
		return err
	}
	if _, err := identities.Read(file); err == nil {
		return nil
	}
	none, err := identities.NewTable(nil, nil)
	if err != nil {
		return err
	}
	return identities.Write(file, none)
}
