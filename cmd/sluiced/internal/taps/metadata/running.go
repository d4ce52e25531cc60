package metadata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	ebpftaps "github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
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

// Running is what there is of metadata on the node while it is served.
type Running struct {
	Taps   *ebpftaps.Taps
	Tables *tables.Metadata

	proxy    *namespace.Proxy
	steering *steering.Driver
	// broken says what is wrong with the proxy's namespace; nil or empty: nothing.
	broken atomic.Pointer[string]
}

const (
	condition = "metadata"
	// lookInterval is between two looks at the proxy's namespace and heartbeat.
	lookInterval = time.Second
)

// Failed reports a start that failed, or leftovers that cannot be removed.
func (m *Metadata) Failed(err error) {
	why, text := reason.StartFailed, plane.StartFailed(err, capability.SysAdmin)
	if !m.cfg.Used() {
		why, text = reason.Leftovers, err.Error()
	}
	m.reg.SetCondition(condition, false, why, text)
}

// Serve serves metadata until ctx ends, and leaves all that is programmed.
func (m *Metadata) Serve(ctx context.Context) error {
	r := m.Running()
	defer func() { _ = r.Taps.Close() }()
	defer m.run(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.Tables.Pipeline.Run(ctx) })
	group.Go(func() error { return r.readBack(ctx, m.sw) })
	group.Go(func() error { return r.steering.Watch(ctx, r.relist) })
	group.Go(func() error { return m.watch(ctx, r) })
	return group.Wait()
}

// Retire takes away what an earlier start made. It needs the local database, in which
// ports may be Sluice's.
func (m *Metadata) Retire(ctx context.Context) error {
	things, unlisted := owned.Metadata(ctx, m.sw, namespace.Names{}, m.cfg.Dir)
	var errs []error
	for _, t := range things {
		m.log.Info("metadata is not served; removing", "object", t.What)
		errs = append(errs, t.Remove(ctx))
	}
	if err := failure(append(errs, unlisted)); err != nil {
		return err
	}
	m.follower.PublishMetadata(ovn.MetadataAgent{}) // takes back what an earlier start told
	m.reg.SetCondition(condition, true, reason.Idle, m.cfg.Unused())
	return nil
}

// failure joins the errors that are not ErrNotReady, or all if each of them is: taps.Run takes an error
// that wraps ErrNotReady for no failure. Each of errs may be made by errors.Join.
func failure(errs []error) error {
	var failed []error
	for _, err := range errs {
		one := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			one = joined.Unwrap()
		}
		for _, err := range one {
			if err != nil && !errors.Is(err, reconcile.ErrNotReady) {
				failed = append(failed, err)
			}
		}
	}
	return cmp.Or(errors.Join(failed...), errors.Join(errs...))
}

// Start loads the programs, and makes the proxy's namespace.
func (m *Metadata) Start(ctx context.Context) error {
	loaded, err := ebpftaps.Load(ebpftaps.Config{Dir: m.cfg.Dir, StaleAfter: m.cfg.StaleAfter.Duration, Log: m.log})
	if err != nil {
		return fmt.Errorf("programs of taps: %w", err)
	}
	r := &Running{Taps: loaded}
	r.proxy = namespace.NewProxy(namespace.ProxyConfig{Attach: func(_ context.Context, p ebpftaps.Proxy) error {
		return errors.Join(loaded.AttachProxy(p.Host), loaded.SetProxy(p))
	}})
	if _, err := r.proxy.Ensure(ctx); err != nil {
		return errors.Join(err, loaded.Close())
	}
	file := identities.Path(m.cfg.StateDir)
	if err := begin(loaded, file); err != nil {
		return errors.Join(fmt.Errorf("identities of metadata: %w", err), loaded.Close())
	}
	r.steering = steering.New(steering.Config{Maps: loaded, File: file, Log: m.log})
	r.Tables = tables.NewMetadata(Drivers(namespace.NewNetworks(namespace.NetworksConfig{Ports: m.sw}), r.steering),
		m.inSync, m.published.inKey, tables.Options{Status: m.reg, Log: m.log})
	m.run(r)
	return nil
}

// Drivers are those of the tables.
func Drivers(networks reconcile.Driver[string, intent.MetadataNetwork], ports reconcile.Driver[string, intent.MetadataPort]) tables.Drivers {
	d := tables.Drivers{}
	tables.Drive(d, intent.MetadataNetworks, networks)
	tables.Drive(d, intent.MetadataPorts, ports)
	return d
}

// run makes r what OVN's events go to, and gives it what is known.
func (m *Metadata) run(r *Running) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = r
	if r == nil || !m.stepped {
		return
	}
	all := m.translator.Tables()
	r.Tables.Pipeline.Update(func() { r.Tables.Set(all) })
}

// patch hands a step to the tables. first: it is all that is wanted.
func (r *Running) patch(d wanted.Difference, first bool) {
	if d.Empty() && !first {
		return
	}
	r.Tables.Pipeline.Update(func() {
		if first {
			all := wanted.NewSet()
			all.Apply(d)
			r.Tables.Set(all)
			return
		}
		r.Tables.Update(d)
	})
}

// relist has devices, maps and programs read back.
func (r *Running) relist() { r.Tables.Pipeline.RelistAll() }

// readBack has the tables read back as soon as the local database has been read: the first
// try is mostly before that.
func (r *Running) readBack(ctx context.Context, sw *ovs.Switch) error {
	if err := sw.WaitRead(ctx); err != nil {
		return nil // ctx has ended
	}
	r.relist()
	return nil
}

// watch mends the proxy's namespace, and says whether the proxy is alive.
func (m *Metadata) watch(ctx context.Context, r *Running) error {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	if m.cfg.PublishNetworks == config.SwitchOn {
		tick.Reset(publishedLook)
	}
	var last time.Time
	for {
		if now := time.Now(); now.Sub(last) >= lookInterval-publishedLook/2 {
			m.lookAtProxy(ctx, r)
			last = now
		} else {
			m.settle(r)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// settle brings the key of published networks nearer to what it should be.
func (m *Metadata) settle(r *Running) {
	m.mu.Lock()
	soon, alive := m.settling.soon(time.Now()), m.alive
	m.mu.Unlock()
	if !soon {
		return
	}
	if alive { // else no network is to be in the key
		m.published.look(programmed(tables.Of(r.Tables, intent.MetadataNetworks)))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stepped {
		m.tellNeutron()
	}
}

func (m *Metadata) lookAtProxy(ctx context.Context, r *Running) {
	why, detail := reason.Serving, ""
	if differs, err := r.mend(ctx); err != nil {
		why, detail = reason.Broken, err.Error()
	} else if differs != "" {
		m.log.Warn("the namespace of the metadata proxy was repaired", "was", differs)
	}
	r.broken.Store(&detail)
	if silent := r.silence(m.cfg.StaleAfter.Duration); silent != "" && detail == "" {
		why, detail = reason.NoProxy, silent
	}
	if m.cfg.PublishNetworks == config.SwitchOn && detail == "" {
		m.published.look(programmed(tables.Of(r.Tables, intent.MetadataNetworks)))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive, m.looked = detail == "", true
	switch {
	case m.stepped:
		m.tellNeutron()
	case m.awaitsACLs:
		if detail == "" { // what is broken is said first
			why, detail = reason.Waiting, "for the ACLs of the Northbound database; ports that were served stay so"
		}
		if time.Since(m.began) >= aclPatience {
			m.follower.Again()
		}
	}
	m.reg.SetCondition(condition, detail == "", why, detail)
}

// mend makes again what somebody changed of the proxy's namespace, and says what that was.
func (r *Running) mend(ctx context.Context) (string, error) {
	differs, err := r.proxy.Check()
	if err != nil {
		return "", err
	}
	if p, err := r.Taps.Proxy(); err != nil {
		return "", err
	} else if ok, err := r.Taps.ProxyAttached(p.Host); err != nil || !ok {
		differs = append(differs, "the program is not on "+namespace.ProxyHost)
	}
	if len(differs) == 0 {
		return "", nil
	}
	_, err = r.proxy.Ensure(ctx)
	return strings.Join(differs, "; "), err
}

// silence says since when nothing was heard of the proxy; empty: it is alive.
func (r *Running) silence(staleAfter time.Duration) string {
	age, ever, err := r.Taps.HeartbeatAge()
	switch {
	case err != nil:
		return err.Error()
	case !ever:
		return "the proxy has not served yet (sluiced metadata); requests are left to OVN"
	case age > staleAfter:
		return fmt.Sprintf("the proxy has sent no heartbeat for %s (sluiced metadata); requests are left to OVN", age.Round(time.Second))
	}
	return ""
}

// tellNeutron publishes what is served. m.mu is held.
func (m *Metadata) tellNeutron() {
	if m.cfg.Dry {
		return
	}
	a := m.translator.Agent()
	a.Alive = m.alive
	if a.Publish {
		a.Networks = m.networks(a.Networks)
	}
	m.follower.PublishMetadata(a)
}

// begin writes an empty file of identities where there is none that can be read: without
// ports nobody else does, and the proxy waits for it. With rows of an earlier start it has
// to wait for theirs.
func begin(loaded *ebpftaps.Taps, file string) error {
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

// Problem says why requests are not answered; empty: they are.
func (r *Running) Problem(staleAfter time.Duration) string {
	if broken := r.broken.Load(); broken != nil && *broken != "" {
		return *broken
	}
	return r.silence(staleAfter)
}
