package lab

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// gobgpPath is a path as `gobgp global rib -j` prints it.
type gobgpPath struct {
	NLRI struct {
		Type  int `json:"type"`
		Value struct {
			Prefix string `json:"prefix"`
			Label  uint32 `json:"label"`
		} `json:"value"`
	} `json:"nlri"`
	Attrs []struct {
		Type    int             `json:"type"`
		NextHop string          `json:"nexthop"`
		Value   json.RawMessage `json:"value"`
	} `json:"attrs"`
}

type gobgpCommunity struct {
	Type    int             `json:"type"`
	Subtype int             `json:"subtype"`
	Value   json.RawMessage `json:"value"`
	MAC     string          `json:"mac"`
}

// Path attribute types and communities (RFC 4760, RFC 4360, RFC 9135).
const (
	attrMPReach     = 14
	attrExtended    = 16
	typePrefix      = 5
	subtypeTarget   = 2
	typeEVPN        = 6
	subtypeRouterMA = 3
)

func (p gobgpPath) route() (PeerRoute, bool, error) {
	if p.NLRI.Type != typePrefix {
		return PeerRoute{}, false, nil
	}
	prefix, err := netip.ParsePrefix(p.NLRI.Value.Prefix)
	if err != nil {
		return PeerRoute{}, false, err
	}
	r := PeerRoute{Prefix: prefix, Label: p.NLRI.Value.Label}
	for _, a := range p.Attrs {
		switch a.Type {
		case attrMPReach:
			if r.VTEP, err = netip.ParseAddr(a.NextHop); err != nil {
				return PeerRoute{}, false, err
			}
		case attrExtended:
			if err := r.communities(a.Value); err != nil {
				return PeerRoute{}, false, err
			}
		}
	}
	return r, true, nil
}

func (r *PeerRoute) communities(raw json.RawMessage) error {
	var list []gobgpCommunity
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("extended communities: %w", err)
	}
	for _, c := range list {
		switch {
		case c.Type <= 2 && c.Subtype == subtypeTarget:
			r.Targets = append(r.Targets, strings.Trim(string(c.Value), `"`))
		case c.Type == typeEVPN && c.Subtype == subtypeRouterMA:
			r.RouterMAC = c.MAC
		}
	}
	return nil
}

// targets tells whether the route has the automatic route target of a VNI, from
// any AS.
func (r PeerRoute) targets(vni uint32) bool {
	return slices.ContainsFunc(r.Targets, func(t string) bool { return strings.HasSuffix(t, fmt.Sprintf(":%d", vni)) })
}
