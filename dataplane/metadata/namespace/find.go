package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

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

// find lists the networks of which a namespace or a device is Sluice's.
func (d *Networks) find() (map[string]struct{}, error) {
	out := map[string]struct{}{}
	spaces, err := d.named()
	if err != nil {
		return nil, err
	}
	for network := range spaces {
		_, ours, err := d.space(network).ours()
		if err != nil {
			return nil, err
		}
		if ours {
			out[network] = struct{}{}
		}
	}
	err = d.config.Node.Netlink(func(h *netlink.Handle) error {
		links, err := link.Dump(h.LinkList)
		if err != nil {
			return fmt.Errorf("listing links: %w", err)
		}
		for _, l := range links {
			if network, ok := networkOf(l.Attrs().AltNames); ok {
				out[network] = struct{}{}
			}
		}
		return nil
	})
	return out, err
}
