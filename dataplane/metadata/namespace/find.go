package namespace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// named lists the namespaces whose names are those of networks, by network.
func (d *Networks) named() (map[string]string, error) {
	entries, err := os.ReadDir(d.config.Names.dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing network namespaces: %w", err)
	}
	out := map[string]string{}
	for _, e := range entries {
		network, ok := strings.CutPrefix(e.Name(), d.config.Names.prefix())
		path := filepath.Join(d.config.Names.dir(), e.Name())
		if there, err := netns.Exists(path); ok && network != "" && err == nil && there {
			out[network] = path
		}
	}
	return out, nil
}

// seen is what was found of a network, with one look into its namespace.
type seen struct {
	outer netlink.Link
	// ours: the namespace is Sluice's.
	ours   bool
	joined bool
	inner  *found
	// neighbours are the permanent ones of the inner end.
	neighbours intent.PortAddressSet
}

// see looks at the networks of which a namespace or a device is Sluice's.
func (d *Networks) see(ctx context.Context) (map[string]*seen, error) {
	out := map[string]*seen{}
	spaces, err := d.named()
	if err != nil {
		return nil, err
	}
	err = d.config.Node.Netlink(func(h *netlink.Handle) error {
		links, err := link.Dump(h.LinkList)
		if err != nil {
			return fmt.Errorf("listing links: %w", err)
		}
		for _, l := range links {
			if network, ok := networkOf(l.Attrs().AltNames); ok {
				out[network] = &seen{outer: l}
			}
		}
		for network := range spaces {
			if err := ctx.Err(); err != nil {
				return err
			}
			s := out[network]
			if s == nil {
				s = &seen{}
			}
			if err := d.pair(network, intent.MAC{}).see(h, s); err != nil {
				return err
			}
			if s.ours {
				out[network] = s
			}
		}
		return nil
	})
	return out, err
}

// see looks into the namespace; h is of the node's.
func (p pair) see(h *netlink.Handle, s *seen) error {
	f, err := os.Open(p.space.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	err = p.space.namespace().Netlink(func(h *netlink.Handle) error {
		lo, err := h.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("reading lo: %w", err)
		}
		if s.ours = slices.Contains(lo.Attrs().AltNames, p.space.mark); !s.ours {
			return nil
		}
		if s.inner, err = look(h, p.inside); err != nil || s.inner == nil {
			return err
		}
		s.neighbours, err = neighboursOf(h, s.inner.link)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just gone
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.space, err)
	}
	if s.outer == nil || s.inner == nil || !ends(s.outer, s.inner.link) {
		return nil
	}
	id, err := h.GetNetNsIdByFd(int(f.Fd()))
	s.joined = err == nil && id >= 0 && id == s.outer.Attrs().NetNsID
	return nil
}
