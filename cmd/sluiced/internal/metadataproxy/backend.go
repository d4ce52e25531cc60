package metadataproxy

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	identities "github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/dataplane/metadata/service"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/config"
)

// openHeart opens what the programs on taps look at.
func openHeart(bpffs string) (service.Beater, error) {
	h, err := taps.OpenHeartbeat(owned.MetadataPins(bpffs))
	if err != nil {
		return nil, err // a nil *taps.Heartbeat would be a Beater
	}
	return h, nil
}

// newBackend makes the one that the configuration names.
func newBackend(m config.Metadata, log *slog.Logger) (proxy.Backend, error) {
	switch n := m.Nova; m.Backend {
	case config.BackendNova:
		return proxy.NewNova(proxy.NovaConfig{
			Hosts: n.Hosts, Port: int(n.Port), HTTPS: n.Protocol == config.ProtocolHTTPS, Insecure: n.Insecure,
			CA: n.CACert, Certificate: n.ClientCert, Key: n.ClientKey, Secret: n.SecretFile,
			ConnectTimeout: n.ConnectTimeout.Duration, Timeout: n.Timeout.Duration, Log: log,
		})
	case config.BackendFiles:
		return proxy.NewStatic(m.Files, log)
	case config.BackendTemplate:
		return proxy.NewTemplate(m.Template, 0, log)
	}
	return nil, fmt.Errorf("metadata.backend: nothing answers for %s", m.Backend)
}

// Check tells whether the proxy could begin: what is in the files, too, has to be
// of use.
func Check(m config.Metadata) error {
	if !m.Used() {
		return nil
	}
	backend, err := newBackend(m, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if c, ok := backend.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// answerTime is how long an answer may take on its way to the guest, after the backend's
// own time.
const answerTime = time.Minute

// serviceConfig is what the service is made of, but what it tells of requests.
func serviceConfig(cfg *config.Config, o options, log *slog.Logger) (service.Config, error) {
	m := cfg.Metadata
	backend, err := newBackend(m, log)
	if err != nil {
		return service.Config{}, err
	}
	c := service.Config{
		Identities: identities.Path(cfg.StateDir), Namespaces: o.namespaces, Steered: m.Path != config.MetadataNamespace, Log: log,
		Proxy: proxy.Config{
			Backend: backend, Log: log, MaxConnections: int(m.Limits.Connections), Rate: rate.Limit(m.Limits.Rate), Burst: int(m.Limits.Burst),
			WriteTimeout: m.Nova.Timeout.Duration + answerTime,
		},
	}
	c.OpenHeart = func() (service.Beater, error) { return openHeart(cfg.Dataplane.BPFFS) }
	return c, nil
}
