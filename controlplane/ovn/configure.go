package ovn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// setting is where a database is and how to talk to it.
type setting struct {
	remote string
	tls    ovsdb.TLSFiles
}

// trouble is why a database is not followed as it is set. The session that there
// was goes on.
type trouble struct {
	// refused is the setting that settingErr speaks of.
	refused                   setting
	settingErr, conditionsErr error
}

func (t *trouble) err() error { return errors.Join(t.settingErr, t.conditionsErr) }

// note keeps an error, and logs it when it is another one than before.
func (f *Follower) note(at *error, err error) {
	if err != nil && (*at == nil || (*at).Error() != err.Error()) {
		f.log.Error("cannot follow OVN", "error", err)
	}
	*at = err
}

// configure follows the settings in the vswitch database.
func (f *Follower) configure(ctx context.Context, group *errgroup.Group) {
	f.publisher.identify(f.rows.SystemID())
	tls := f.tls()
	if f.cfg.Northbound != "" {
		f.use(f.nb, &f.nbTrouble, setting{f.cfg.Northbound, tls}, func(s setting) error { return f.startNB(ctx, group, s) })
	}
	remote := f.cfg.Southbound
	if remote == "" {
		remote = f.rows.External("ovn-remote")
	}
	if remote == "" {
		f.sbTrouble.settingErr = nil // what was followed still is
		return
	}
	f.use(f.sb, &f.sbTrouble, setting{remote, tls}, func(s setting) error { return f.startSB(ctx, group, s) })
}

// use starts a session with a setting, unless one runs with it or it has been
// refused: whether it can be followed is the same each time.
func (f *Follower) use(running *source, t *trouble, s setting, start func(setting) error) {
	if !strings.Contains(s.remote, "ssl:") {
		s.tls = ovsdb.TLSFiles{} // nothing reads them
	}
	switch {
	case running != nil && running.setting == s:
		t.settingErr = nil
	case t.settingErr != nil && t.refused == s:
	default:
		t.refused = s
		f.note(&t.settingErr, start(s))
	}
}

// tls are the configured files, or those that ovs-vsctl set-ssl wrote down.
func (f *Follower) tls() ovsdb.TLSFiles {
	if f.cfg.TLS != (ovsdb.TLSFiles{}) {
		return f.cfg.TLS
	}
	var files ovsdb.TLSFiles
	var best UUID
	for id, s := range f.rows.ssl {
		if best == "" || id < best {
			best, files = id, ovsdb.TLSFiles{Cert: s.Certificate, Key: s.PrivateKey, CA: s.CACert}
		}
	}
	return files
}

func (f *Follower) startSB(ctx context.Context, group *errgroup.Group, s setting) error {
	loading := f.loading
	if f.sb != nil {
		loading = f.rows.withoutSB()
	}
	tables, keys := southbound(f.cfg.Needs, f.cfg.balancesBySouthbound())
	next, err := f.start(ctx, group, ovsdb.Config{
		Database: sb.Database(), Endpoints: s.remote, TLS: s.tls, Tables: tables, Keys: keys,
		Conditions: Discover(loading, f.cfg.Needs).SB,
	})
	if err != nil {
		return fmt.Errorf("Southbound database %q (Open_vSwitch external_ids:ovn-remote): %w", s.remote, err)
	}
	if f.sb != nil {
		f.log.Info("the Southbound database changes", "from", f.sb.remote, "to", s.remote)
		f.sb.cancel()
	}
	f.sb, f.loading, f.sbTrouble.conditionsErr = next, loading, nil
	return nil
}

func (f *Follower) startNB(ctx context.Context, group *errgroup.Group, s setting) error {
	tables, keys := northboundColumns(f.cfg.Needs)
	next, err := f.start(ctx, group, ovsdb.Config{
		Database: nb.Database(), Endpoints: s.remote, TLS: s.tls, Tables: tables, Keys: keys,
		Conditions: f.wanted().NB,
	})
	if err != nil {
		return fmt.Errorf("Northbound database %q: %w", s.remote, err)
	}
	if f.nb != nil {
		next.takesOver = true
		f.nb.cancel()
	}
	f.nb, f.nbTrouble.conditionsErr = next, nil
	return nil
}
