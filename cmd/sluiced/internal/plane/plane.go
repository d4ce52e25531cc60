// Package plane runs what each eBPF plane of the node has: programs that are replaced by this
// build's, maps that are promoted when they are filled, sessions that expire, and sampled drops.
//
// A start takes over what runs. Its order is: what is pinned is opened and compared, BGP
// connects, OVN is read, what it says is compared with the maps and announced, and only
// then the kernel's verifier gets programs that differ. docs/decisions/0025-start.md gives
// the reasons.
package plane

import (
	"context"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/capability"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

const (
	// Retry is between two tries of a start, or of a replacement.
	Retry = 5 * time.Second
	// promoteInterval is how often it is looked whether maps or programs can change over.
	promoteInterval = 200 * time.Millisecond
)

// Promotion is the pace of a change from maps of an older layout to this build's.
var Promotion = Pace{Every: promoteInterval, Pause: promoteInterval}

// StartFailed is the text of a start that failed, with the capabilities that it lacks where the
// kernel refused something.
func StartFailed(err error, more ...capability.Capability) string {
	return capability.Explain(err, append([]capability.Capability{capability.BPF, capability.Perfmon, capability.NetAdmin}, more...)...).Error()
}

// Written tells whether what the tables write has its effect, or waits for Promote alone.
func Written(dp *ebpf.Dataplane) bool {
	select {
	case <-dp.Used():
		return true
	default:
		return false
	}
}

// AwaitUsed waits until what is written has an effect; false: ctx ends first.
func AwaitUsed(ctx context.Context, dp *ebpf.Dataplane) bool {
	select {
	case <-ctx.Done():
		return false
	case <-dp.Used():
		return true
	}
}

// Effective tells whether the tables' rows have their effect on packets.
func Effective(dp *ebpf.Dataplane) bool { return Written(dp) && !dp.Staged() }

// Replace replaces the programs of an earlier start that differ from this one's, and tells
// whether it has. Where the tables wait for them they are loaded at once, else when the start is
// over for all that others wait for (calm): the verifier takes a processor. It tries again when
// that fails.
func Replace(ctx context.Context, dp *ebpf.Dataplane, calm func() bool, failed func(error), log *slog.Logger) (done bool) {
	if dp.Replaced() || !awaitCalm(ctx, dp, calm) {
		return false
	}
	for begin := time.Now(); ; {
		err := dp.Replace(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			log.Info("the programs of this build are loaded", "took", time.Since(begin))
			return true
		}
		failed(err)
		if !loop.Sleep(ctx, Retry) {
			return false
		}
	}
}

// awaitCalm waits until the verifier delays nobody. Where tables wait for the programs it returns
// at once. False: ctx ends first.
func awaitCalm(ctx context.Context, dp *ebpf.Dataplane, calm func() bool) bool {
	for begin := time.Now(); Effective(dp) && !calm() && time.Since(begin) < bgp.DefaultDeferralTime; {
		if !loop.Sleep(ctx, promoteInterval) {
			return false
		}
	}
	return ctx.Err() == nil
}
