package settings

import (
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// InactivityProbe is the setting as a session takes it, where 0 is the default.
func InactivityProbe(cfg *config.Config) time.Duration {
	if cfg.OVN.InactivityProbe.Duration == 0 {
		return -1
	}
	return cfg.OVN.InactivityProbe.Duration
}

// TLSFiles are those of a session with a database.
func TLSFiles(t config.TLS) ovsdb.TLSFiles {
	return ovsdb.TLSFiles{Cert: t.Certificate, Key: t.PrivateKey, CA: t.CACert}
}

// NorthboundPatience is how long after a start the Northbound database is waited for: less
// than the speaker waits with End-of-RIB, after which the neighbours give up what they kept.
const NorthboundPatience = bgp.DefaultDeferralTime * 2 / 3
