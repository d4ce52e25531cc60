package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluice-controller/config"
	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/neutron"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/controlplane/openstack"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/serve"
)

// Limits of requests.
const (
	largestBody   = 112 << 10 // the default of oslo.middleware
	largestHeader = 64 << 10
	idleTimeout   = 2 * time.Minute
	// grace is how long requests may go on when the program is told to end.
	grace = 10 * time.Second
)

// run answers requests until ctx ends.
func run(ctx context.Context, c *config.Config, log *slog.Logger) error {
	auth, err := authenticator(c.Auth, log)
	if err != nil {
		return err
	}
	store, err := newStore(c.OVN, log)
	if err != nil {
		return err
	}
	ports, err := neutronPorts(c.Neutron)
	if err != nil {
		return err
	}
	apis := openstack.Config{Store: store, Auth: auth, Networks: c.Networks, Log: log}
	if ports != nil {
		apis.Ports = ports
		defer ports.Close()
	}
	probes, err := followProbes(c.OVN, log)
	if err != nil {
		return err
	}
	server := newServer(c.HTTP, log)
	seen, health := observe(store, log)
	server.MountHealth(serve.Health{Metrics: seen.Gatherer(), Status: health.registry, Alive: func(context.Context) error { return nil }})
	server.Mount("/", bounded(openstack.Routes(apis), c.HTTP.Timeout.Duration, seen, log))

	// The store outlives the requests that wait for it.
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	group, ctx := errgroup.WithContext(ctx)
	sessions := map[string]func() ovsdb.Status{"nb": store.Status}
	group.Go(func() error { return store.Run(base) })
	reactor := octavia.NewReactor(store, log)
	if probes != nil {
		reactor.Heed(probes)
		sessions["sb"] = probes.Status
		group.Go(func() error { return probes.Run(ctx) })
	}
	group.Go(func() error { return health.watch(ctx, sessions) })
	group.Go(func() error { return reactor.Run(ctx) })
	if ports != nil {
		group.Go(func() error { return octavia.NewSweeper(store, ports, 2*c.HTTP.Timeout.Duration, log).Run(ctx) })
	}
	group.Go(func() error {
		defer end()
		if err := server.Run(ctx); err != nil {
			return fmt.Errorf("http.%w", err)
		}
		return nil
	})
	return group.Wait()
}

// verify tells whether run could begin: what the configuration names can be read, and fits.
func verify(c *config.Config) error {
	log := slog.New(slog.DiscardHandler)
	_, authErr := authenticator(c.Auth, log)
	_, storeErr := newStore(c.OVN, log)
	_, probesErr := followProbes(c.OVN, log)
	ports, portsErr := neutronPorts(c.Neutron)
	if ports != nil {
		ports.Close()
	}
	var httpErr error
	if err := newServer(c.HTTP, log).Check(); err != nil {
		httpErr = fmt.Errorf("http.%w", err)
	}
	var tlsErr error
	if strings.Contains(c.OVN.NB+c.OVN.SB, "ssl:") {
		tlsErr = tlsFiles(c.OVN).Check()
	}
	return errors.Join(httpErr, storeErr, probesErr, tlsErr, authErr, portsErr)
}

func newServer(c config.HTTP, log *slog.Logger) *serve.Server {
	return serve.New(serve.Config{
		Listen: c.Listen, Certificate: c.Certificate, Key: c.PrivateKey, ClientCA: c.ClientCA,
		ReadTimeout: c.Timeout.Duration, WriteTimeout: 2 * c.Timeout.Duration, IdleTimeout: idleTimeout,
		LargestHeader: largestHeader, LargestBody: largestBody, MostRequests: c.MostRequests, Grace: grace,
	}, log)
}

func newStore(c config.OVN, log *slog.Logger) (*northbound.Store, error) {
	store, err := northbound.New(northbound.Config{Endpoints: c.NB, Logger: log, TLS: tlsFiles(c)})
	if err != nil {
		return nil, fmt.Errorf("ovn.nb: %w", err)
	}
	return store, nil
}

// neutronPorts is nil if Neutron's URL is not configured.
func neutronPorts(c config.Neutron) (*neutron.Client, error) {
	if c.URL == "" {
		return nil, nil
	}
	client, err := neutron.NewClient(neutron.ClientConfig{URL: c.URL, TokenFile: c.TokenFile, CA: c.CACert})
	if err != nil {
		return nil, fmt.Errorf("neutron.caCert: %w", err)
	}
	return client, nil
}

func tlsFiles(c config.OVN) ovsdb.TLSFiles {
	return ovsdb.TLSFiles{Cert: c.TLS.Certificate, Key: c.TLS.PrivateKey, CA: c.TLS.CACert}
}

// followProbes is nil without a Southbound database.
func followProbes(c config.OVN, log *slog.Logger) (*octavia.Probes, error) {
	if c.SB == "" {
		return nil, nil
	}
	probes, err := octavia.NewProbes(c.SB, tlsFiles(c), log)
	if err != nil {
		return nil, fmt.Errorf("ovn.sb: %w", err)
	}
	return probes, nil
}

func authenticator(c config.Auth, log *slog.Logger) (identity.Authenticator, error) {
	switch c.Mode {
	case config.ModeTokens:
		return identity.NewTokens(c.Tokens, log)
	case config.ModeNone:
		return identity.Anybody{Project: c.Project}, nil
	}
	return nil, errors.New("auth.mode is not known")
}
