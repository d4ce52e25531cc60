package loadbalancer

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/maglev"
)

// OptionWeights is the key of Load_Balancer.options that has the weights.
const OptionWeights = optionWeights

// ErrNoSuchBackend means that none of a row's VIPs has the backend, nor is there a weight of
// it to be taken out.
var ErrNoSuchBackend = errors.New("no such backend")

// ErrBadWeight means that a weight is too large.
var ErrBadWeight = errors.New("bad weight")

// Weigh is options:sluice-weights of a row with another weight of one of its backends; nil
// takes it out. It is sorted by address.
func Weigh(r Row, variables map[string]string, backend netip.AddrPort, weight *uint16) (string, error) {
	if weight != nil && *weight > maglev.MaxWeight {
		return "", fmt.Errorf("%w: %d is none from 0 to %d", ErrBadWeight, *weight, maglev.MaxWeight)
	}
	weights, err := parseWeights(r.Options[optionWeights])
	if err != nil {
		return "", fmt.Errorf("options:%s: %w", optionWeights, err)
	}
	held, err := parseWeights(r.Held)
	if err != nil {
		held = nil // what cannot be read holds nothing
	}
	vips, _ := Parse(r, variables, 0)
	// The weight of one that has left its VIPs is there still, and may be taken back.
	_, weighed := weights[backend]
	_, kept := held[backend]
	if !((weighed || kept) && weight == nil) && !slices.ContainsFunc(vips, func(v VIP) bool {
		return slices.ContainsFunc(v.Backends, func(b Backend) bool { return b.Address == backend })
	}) {
		return "", ErrNoSuchBackend
	}
	if weight == nil {
		delete(weights, backend)
	} else {
		weights[backend] = *weight
	}
	var words []string
	for _, a := range slices.SortedFunc(maps.Keys(weights), netip.AddrPort.Compare) {
		words = append(words, fmt.Sprintf("%s=%d", intent.FormatEndpoint(a.Addr(), a.Port()), weights[a]))
	}
	return strings.Join(words, ","), nil
}

// ParseBackend reads a backend as Load_Balancer.vips has it.
func ParseBackend(text string) (netip.AddrPort, error) { return parseAddress(text) }
