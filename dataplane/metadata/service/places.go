package service

import (
	"net/netip"
	"path/filepath"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
)

// lookAtFile tells whether the file says something else than before.
func (s *Service) lookAtFile(now time.Time) bool {
	table, err := s.reader.Table()
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.file.Error
	s.file.Error = ""
	if err != nil {
		s.file.Error = err.Error()
	}
	if s.file.Error != was {
		if err != nil {
			s.file.Errors++
			s.cfg.Log.Error("the metadata identities cannot be read; the last ones stay in use", "error", err)
		} else {
			s.cfg.Log.Info("the metadata identities can be read again")
		}
	}
	first := s.places == nil
	if table == s.table && !first {
		return false
	}
	s.table = table
	if table != nil {
		s.file.Read, s.file.Ports, s.file.Networks = now, len(table.Ports()), len(table.Networks())
	}
	return true
}

// setPlaces works out where to listen. Nothing that is open is closed before the file has
// been read. Ports that are steered are served also where the configuration says that none
// are: the daemon may have another one by now.
func (s *Service) setPlaces() {
	places, six := []place{}, hasIPv6()
	if s.cfg.Steered || len(s.table.Ports()) > 0 {
		places = append(places, place{socket: "steered4", path: s.steeredIn, addr: steered4})
		if six {
			places = append(places, place{socket: "steered6", path: s.steeredIn, addr: steered6})
		}
	}
	for _, n := range s.table.Networks() {
		path := filepath.Join(s.cfg.Namespaces, n.Namespace)
		places = append(places, place{socket: "network4-" + n.Namespace, network: n.Name, path: path, addr: proxy.Address4})
		if n.IPv6 && six {
			places = append(places, place{socket: "network6-" + n.Namespace, network: n.Name, path: path, addr: proxy.Address6, device: n.Device})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places = places
}

// hasIPv6 is another one in a test.
var hasIPv6 = namespace.HasIPv6

func (s *Service) steered(_, remote netip.AddrPort) (proxy.Identity, bool) {
	table, _ := s.reader.Table() // an error is reported by the loop
	return who(table.Find(remote.Addr()))
}

func (s *Service) on(network string) proxy.Resolver {
	return func(_, remote netip.AddrPort) (proxy.Identity, bool) {
		table, _ := s.reader.Table() // as above
		return who(table.FindOn(network, remote.Addr()))
	}
}

func who(p identity.Port, guest netip.Addr, ok bool) (proxy.Identity, bool) {
	return proxy.Identity{Port: p.Name, Instance: p.Instance, Project: p.Project, Network: p.Network, Address: guest, Assigned: p.Assigned(guest)}, ok
}
