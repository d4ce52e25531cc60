package steering

import (
	"context"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// name notes a tap to be watched.
func (d *Driver) name(t intent.Tap) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.Name != "" {
		d.names[t.Name] = struct{}{}
	}
}

// forgetNames has the names that are noted neither from now on nor were since the last time
// be watched no more: each row that waits is tried again in between.
func (d *Driver) forgetNames() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.named, d.names = d.names, map[string]struct{}{}
}

// Watch calls changed when a device may have come or gone that a row names, or named,
// until ctx ends: what List says may be another thing then. Several may be one call.
func (d *Driver) Watch(ctx context.Context, changed func()) error {
	return kernel.WatchNamed(ctx, d.config.Node, func(name string) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, now := d.names[name]
		_, before := d.named[name]
		return now || before
	}, changed)
}
