package nexthops

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// dropsLook is between two looks at the counts of devices.
const dropsLook = 5 * time.Second

// dropsStay is how long a device stays a problem after its counts last rose.
const dropsStay = time.Minute

// dropReports is the source of what is reported of devices that drop.
const dropReports = "device-drops"

// deviceDrops remembers what devices had dropped when they were last looked at.
type deviceDrops struct {
	mu   sync.Mutex
	last map[link.Drops]uint64 // without the count
	// rose is when a count last rose.
	rose map[link.Drops]time.Time
	// underlay are the devices that packets to VTEPs leave by.
	underlay []string
	said     bool
}

// watched are the devices of the node's path to the fabric.
func (h *NextHops) watched() []string {
	h.drops.mu.Lock()
	defer h.drops.mu.Unlock()
	return slices.Concat(h.node.Devices(), h.drops.underlay)
}

// setUnderlay takes the devices that packets to VTEPs leave by.
func (d *deviceDrops) setUnderlay(devices []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.underlay = devices
}

// lookAtDrops reports devices whose counts rise: nobody else would say why packets are lost.
func (h *NextHops) lookAtDrops() {
	counts, err := link.New(netns.Namespace{}).Drops(h.watched())
	if err != nil {
		h.log.Debug("the counts of devices cannot be read", "error", err)
		return
	}
	rising := h.drops.take(counts, time.Now())
	if len(rising) > 0 || h.drops.said {
		h.reg.Reporter(dropReports).Replace(droppingDevices(rising, h.suspects()))
	}
	h.drops.said = len(rising) > 0
}

// take notes the counts of now, and returns those that have risen lately, without the count.
func (d *deviceDrops) take(counts []link.Drops, now time.Time) []link.Drops {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, rose := map[link.Drops]uint64{}, map[link.Drops]time.Time{}
	var out []link.Drops
	for _, c := range counts {
		packets := c.Packets
		c.Packets = 0
		last[c] = packets
		at, risen := d.rose[c]
		if before, known := d.last[c]; known && packets > before && d.counts(c) {
			at, risen = now, true
		}
		if risen && now.Sub(at) < dropsStay {
			rose[c] = at
			out = append(out, c)
		}
	}
	d.last, d.rose = last, rose
	return out
}

// counts tells whether a count is of packets that somebody misses. A device of the underlay
// also drops what nobody on the node listens to.
func (d *deviceDrops) counts(c link.Drops) bool {
	return c.Direction != "rx" || c.Kind != "dropped" || !slices.Contains(d.underlay, c.Link)
}

// droppingDevices makes an object of each device. suspects are what is known of the paths
// that its packets may have been for. The numbers are in the metric: an object whose text
// changes is told of anew.
func droppingDevices(rising []link.Drops, suspects string) []status.Object {
	byDevice := map[string][]string{}
	for _, c := range rising {
		byDevice[c.Link] = append(byDevice[c.Link], c.Direction+" "+c.Kind)
	}
	var out []status.Object
	for _, name := range slices.Sorted(maps.Keys(byDevice)) {
		text := fmt.Sprintf("device %s does not deliver packets: it counts %s; see 'ip -s link show %s'", name, strings.Join(byDevice[name], ", "), name)
		if name == kernel.FabricName {
			text += "; rx errors are packets with VXLAN header bits that the kernel does not know (GBP or other extensions), tx errors are packets without a route"
		}
		out = append(out, status.Object{Kind: "device", Key: name, State: status.Warning, Reason: reason.DeviceDrops, Error: text + suspects})
	}
	return out
}

// suspects are the VTEPs whose packets may be those that are lost.
func (h *NextHops) suspects() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.routed {
		return "; the node has no route to any VTEP, or knows no VTEP"
	}
	var words []string
	for _, a := range slices.SortedFunc(maps.Keys(h.lost), netip.Addr.Compare) {
		words = append(words, fmt.Sprintf("%s (%s)", a, h.lost[a]))
	}
	for _, a := range slices.SortedFunc(maps.Keys(h.narrow), netip.Addr.Compare) {
		words = append(words, fmt.Sprintf("%s (MTU %d)", a, h.narrow[a].MTU))
	}
	const most = 8
	if more := len(words) - most; more > 0 {
		words = append(words[:most], fmt.Sprintf("%d more", more))
	}
	if len(words) > 0 {
		return "; VTEPs with a narrow path or none: " + strings.Join(words, ", ")
	}
	return "; the paths to all VTEPs carry whole packets, as far as the kernel knows"
}

// Drops are the counts of the devices that are watched.
func (h *NextHops) Drops() ([]link.Drops, error) {
	return link.New(netns.Namespace{}).Drops(h.watched())
}

// PathMTUs are those of narrow paths, by VTEP.
func (h *NextHops) PathMTUs() map[netip.Addr]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return mtusOf(h.narrow)
}
