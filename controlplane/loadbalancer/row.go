package loadbalancer

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/maglev"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Keys of Load_Balancer.options.
const (
	optionTemplate = "template"
	optionFamily   = "address-family"
	optionAffinity = "affinity_timeout"
	optionReject   = "reject"
	optionEvent    = "event"
	optionFlush    = "ct_flush"
	optionSkipSNAT = "skip_snat"
	optionFields   = "hash_fields"
	optionWeights  = "sluice-weights"
	optionSize     = "sluice-m"
	optionPath     = "sluice-path"
)

// Row is what is read of a row of SB Load_Balancer, or of one of Northbound.
type Row struct {
	// Protocol is tcp, udp, sctp, or empty, which is tcp.
	Protocol      string
	VIPs, Options map[string]string
	// Held are weights of backends, as options:sluice-weights, that are kept in another row: they
	// count for the backends that this option does not name.
	Held string
}

var protocols = map[string]intent.Protocol{"": intent.TCP, "tcp": intent.TCP, "udp": intent.UDP, "sctp": intent.SCTP}

// Backend is one of a VIP's.
type Backend struct {
	// Address has the port 0 where the VIP has none.
	Address netip.AddrPort
	// Weight is its share in relation to the others'; 0: it gets no new flows.
	Weight uint16
	// Down: it was probed, and does not answer. It gets no new flows.
	Down bool
}

// share is the weight that counts.
func (b Backend) share() uint16 {
	if b.Down {
		return 0
	}
	return b.Weight
}

// VIP is one of a row's.
type VIP struct {
	// Key is the VIP's key in the row.
	Key string
	// Address has the port 0 for all ports.
	Address  netip.AddrPort
	Protocol intent.Protocol
	// Backends are sorted by address.
	Backends []Backend
	// TableSize is the number of slots of its Maglev table: the whole row's backends decide,
	// whatever their health and weight, so that all nodes have the same.
	TableSize int
	// Affinity is how long a client keeps its backend without a packet; 0: not at all.
	Affinity time.Duration
	// ByAddress: the backend of a flow depends on its addresses, and not on its ports.
	ByAddress bool
	// Reject: without a backend, packets are answered with a reset or an ICMP error.
	Reject bool
	// Flush: the flows of a backend that is taken out of vips end with it.
	Flush bool
	// Event: OVN tells of packets to the VIP while it has no backend.
	Event bool
	// SkipSNAT: a router that gives balanced packets another source gives these none.
	SkipSNAT bool
	// Path is that of the row: PathOVN, or empty for whatever can.
	Path Path
	// Broken is why OVN balances it: an option of the row is wrong, for all of its VIPs, or its
	// backends have no room in the table.
	Broken error
}

// Wrong is what is wrong with one VIP of a row; with Key "" with all of them.
type Wrong struct {
	Key string // of vips
	Err error
}

// Parse reads a row. variables are those of Chassis_Template_Var for this chassis. size is
// options:sluice-m of NB_Global, or 0.
func Parse(r Row, variables map[string]string, size int) (vips []VIP, wrong []Wrong) {
	common, weights, broken := options(r, size)
	if common.Protocol == 0 {
		return nil, []Wrong{{Err: broken}}
	}
	// Those of VIPs without a variable are the same on all chassis, and so are their tables.
	backends, plain := map[netip.AddrPort]struct{}{}, map[netip.AddrPort]struct{}{}
	taken := map[netip.AddrPort]string{}
	for _, key := range slices.Sorted(maps.Keys(r.VIPs)) {
		v, err := common.parse(key, r, variables)
		for _, b := range v.Backends {
			backends[b.Address] = struct{}{}
			if !r.variable(key) {
				plain[b.Address] = struct{}{}
			}
		}
		if err == nil && taken[v.Address] != "" {
			err = fmt.Errorf("it is the VIP %q, too", taken[v.Address])
		}
		if err != nil {
			wrong = append(wrong, Wrong{key, err})
			continue
		}
		taken[v.Address], v.Key = key, key
		vips = append(vips, v)
	}
	slots := func(backends map[netip.AddrPort]struct{}) int {
		n, err := maglev.Size(len(backends), common.TableSize)
		if err != nil && broken == nil {
			broken = fmt.Errorf("%s: %w", optionSize, err)
		}
		return n
	}
	ofAll, ofPlain := slots(backends), slots(plain)
	if broken != nil {
		wrong = append(wrong, Wrong{Err: broken})
	}
	for _, err := range append(oddities(r), portless(vips, weights)...) {
		wrong = append(wrong, Wrong{Err: err})
	}
	for i := range vips {
		vips[i].TableSize, vips[i].Broken = ofAll, broken
		if !r.variable(vips[i].Key) {
			vips[i].TableSize = ofPlain
		}
		if n := len(vips[i].Backends); broken == nil && n > vips[i].TableSize {
			vips[i].Broken = fmt.Errorf("it has %d backends for a table of %d slots (options:%s)", n, vips[i].TableSize, optionSize)
			wrong = append(wrong, Wrong{vips[i].Key, vips[i].Broken})
		}
		for j, b := range vips[i].Backends {
			if w, ok := weights[b.Address]; ok {
				vips[i].Backends[j].Weight = w
			}
		}
	}
	return vips, wrong
}

// Reading is what a row says, whatever the health of its backends.
type Reading struct {
	vips []VIP
	// Wrong is what is wrong with the row, or with its VIPs.
	Wrong []error
}

// Read is Parse, once for many changes of the backends' health.
func Read(r Row, variables map[string]string, size int) (out Reading) {
	var wrong []Wrong
	out.vips, wrong = Parse(r, variables, size)
	for _, w := range wrong {
		err := w.Err
		if w.Key != "" {
			err = fmt.Errorf("VIP %s: %w", w.Key, err)
		}
		out.Wrong = append(out.Wrong, err)
	}
	return out
}

// Probed are the VIPs with what is known of their backends' health, by
// Service_Monitor.status.
func (r Reading) Probed(health func(v VIP, backend netip.AddrPort) string) []VIP {
	out := slices.Clone(r.vips)
	for i, v := range out {
		out[i].Backends = slices.Clone(v.Backends)
		out[i].probed(func(b netip.AddrPort) string { return health(v, b) })
	}
	return out
}

// Templated tells whether a row is another one on each chassis.
func (r Row) Templated() bool { return ovsdb.Bool(r.Options, optionTemplate) }

// variable tells whether a VIP, by its key of vips, is another one on each chassis.
func (r Row) variable(key string) bool {
	return r.Templated() && strings.Contains(key+r.VIPs[key], "^")
}

// parse reads one VIP of a row, whose options v has.
func (v VIP) parse(key string, r Row, variables map[string]string) (VIP, error) {
	address, list := key, r.VIPs[key]
	if r.Templated() {
		var errs [2]error
		address, errs[0] = expandVIP(address, r.Options[optionFamily] == "ipv6", variables)
		list, errs[1] = expand(list, variables)
		if err := errors.Join(errs[:]...); err != nil {
			return v, err
		}
	}
	var err error
	if v.Address, err = parseAddress(address); err != nil {
		return v, err
	}
	addresses, err := parseBackends(list, v.Address)
	if err != nil {
		return v, err
	}
	slices.SortFunc(addresses, netip.AddrPort.Compare)
	for _, a := range addresses {
		v.Backends = append(v.Backends, Backend{Address: a, Weight: 1})
	}
	return v, nil
}

// options reads what all VIPs of a row have in common, and the weights of backends. What
// Sluice alone knows and is wrong is an error: flows would go where nobody wants them. What
// OVN reads is read as OVN does. Without a protocol there is nothing.
func options(r Row, size int) (VIP, map[netip.AddrPort]uint16, error) {
	p, ok := protocols[r.Protocol]
	if !ok {
		return VIP{}, nil, fmt.Errorf("protocol %q is none of tcp, udp and sctp", r.Protocol)
	}
	v := VIP{
		Protocol: p, TableSize: size,
		Reject: ovsdb.Bool(r.Options, optionReject), Flush: ovsdb.Bool(r.Options, optionFlush), Event: ovsdb.Bool(r.Options, optionEvent), SkipSNAT: ovsdb.Bool(r.Options, optionSkipSNAT),
	}
	if seconds, err := strconv.ParseUint(r.Options[optionAffinity], 10, 32); err == nil {
		v.Affinity = time.Duration(min(seconds, math.MaxUint16)) * time.Second
	}
	fields := strings.FieldsFunc(r.Options[optionFields], func(r rune) bool { return r == ',' || r == ' ' })
	v.ByAddress = len(fields) > 0 && !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "tp_") })
	if text, there := r.Options[optionSize]; there {
		n, err := parseSize(text)
		if err != nil {
			return v, nil, fmt.Errorf("options:%s: %w", optionSize, err)
		}
		v.TableSize = n
	}
	switch text := r.Options[optionPath]; text {
	case "", "auto":
	case string(PathOVN):
		v.Path = PathOVN
	default:
		return v, nil, fmt.Errorf("options:%s: %q is none of auto and ovn", optionPath, text)
	}
	weights, err := parseWeights(r.Options[optionWeights])
	if err != nil {
		return v, nil, fmt.Errorf("options:%s: %w", optionWeights, err)
	}
	held, err := parseWeights(r.Held)
	if err != nil {
		return v, nil, fmt.Errorf("weights held in NB_Global: %w", err)
	}
	maps.Copy(held, weights)
	return v, held, nil
}

// oddities are values of options that count for others, or for none, as they do in OVN.
func oddities(r Row) (out []error) {
	for _, option := range []string{optionTemplate, optionReject, optionEvent, optionFlush, optionSkipSNAT} {
		switch text, there := r.Options[option]; {
		case there && !strings.EqualFold(text, "true") && !strings.EqualFold(text, "false"):
			out = append(out, fmt.Errorf("options:%s: %q counts as false, as in OVN", option, text))
		}
	}
	text, there := r.Options[optionAffinity]
	if !there {
		return out
	}
	seconds, err := strconv.ParseUint(text, 10, 32)
	switch {
	case err != nil:
		out = append(out, fmt.Errorf("options:%s: %q is no number of seconds and counts as 0, as in OVN", optionAffinity, text))
	case seconds > math.MaxUint16:
		out = append(out, fmt.Errorf("options:%s: %d counts as %d, as in OVN", optionAffinity, seconds, math.MaxUint16))
	}
	return out
}

// portless are weights that say nothing of any backend there may be, since all VIPs have ports
// and they have none.
func portless(vips []VIP, weights map[netip.AddrPort]uint16) (out []error) {
	if len(vips) == 0 || slices.ContainsFunc(vips, func(v VIP) bool { return v.Address.Port() == 0 }) {
		return nil
	}
	for _, a := range slices.SortedFunc(maps.Keys(weights), netip.AddrPort.Compare) {
		if a.Port() == 0 {
			out = append(out, fmt.Errorf("options:%s: %s has no port, and backends of these VIPs have", optionWeights, a.Addr()))
		}
	}
	return out
}

// CloudSize reads options:sluice-m of NB_Global: the slots of all tables. 0: it is not set,
// or cannot be read.
func CloudSize(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := parseSize(text)
	if err != nil {
		return 0, fmt.Errorf("options:%s: %w; without it tables are as large as their backends need", optionSize, err)
	}
	return n, nil
}

func parseSize(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		err = fmt.Errorf("%q is no number of slots", text)
	} else if n == 0 {
		err = errors.New("0 slots")
	}
	if err == nil {
		_, err = maglev.Size(0, n)
	}
	return n, err
}

// parseWeights reads BACKEND=WEIGHT, separated by commas.
func parseWeights(list string) (map[netip.AddrPort]uint16, error) {
	out := map[netip.AddrPort]uint16{}
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		text, weight, _ := strings.Cut(word, "=")
		a, err := parseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("backend %w", err)
		}
		n, err := strconv.ParseUint(weight, 10, 16)
		if err != nil || n > maglev.MaxWeight {
			return nil, fmt.Errorf("%q: the weight is no number from 0 to %d", word, maglev.MaxWeight)
		}
		if _, twice := out[a]; twice {
			return nil, fmt.Errorf("%s has two weights", intent.FormatEndpoint(a.Addr(), a.Port()))
		}
		out[a] = uint16(n)
	}
	return out, nil
}
