package metadataproxy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/metadata/service"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// serving is the service that runs; nil: none does.
func (p *process) serving() *service.Service {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

func (p *process) alive(context.Context) error {
	if s := p.serving(); s != nil {
		return s.Alive()
	}
	return nil
}

func (p *process) runAdmin(ctx context.Context) error {
	s := admin.NewServer(nodeapi.Program, p.cfg.Metadata.Socket, p.log)
	admin.Handle(s, nodeapi.GetMetadataProxy, func(context.Context, admin.Nothing) (status.MetadataProxy, error) {
		p.look()
		return p.status(), nil
	})
	admin.Handle(s, nodeapi.ListMetadataRequests, func(context.Context, admin.Nothing) ([]status.MetadataRequest, error) { return p.journal.Latest(), nil })
	return s.Run(ctx)
}

func (p *process) status() status.MetadataProxy {
	out := status.MetadataProxy{
		Version: p.version, Started: p.started, Backend: string(p.cfg.Metadata.Backend), Conditions: p.reg.Conditions(),
		Listeners: []status.MetadataListener{}, Outcomes: p.journal.Outcomes(),
	}
	out.Ready, _ = p.reg.Ready()
	s := p.serving()
	if s == nil {
		return out
	}
	now := s.Status()
	out.Ports, out.Networks, out.FileErrors, out.Connections, out.Heartbeat = now.File.Ports, now.File.Networks, now.File.Errors, now.Connections, now.Heart.Last
	for _, l := range now.Listeners {
		out.Listeners = append(out.Listeners, status.MetadataListener{Network: l.Network, Namespace: l.Namespace, Address: l.Address, Serving: l.Serving, Since: l.Since, Error: l.Error})
	}
	return out
}

// lookInterval is between two looks at what makes no event.
const lookInterval = time.Second

// watch keeps the conditions up to date.
func (p *process) watch(ctx context.Context) error {
	return loop.Every(ctx, lookInterval, nil, p.look)
}

func (p *process) look() {
	s := p.serving()
	if s == nil {
		p.reg.SetCondition("metadata-proxy", true, reason.Idle, "")
		return
	}
	now := s.Status()
	switch {
	case now.File.Error != "":
		p.reg.SetCondition("identities", false, reason.NotRead, now.File.Error)
	case now.File.Read.IsZero():
		p.reg.SetCondition("identities", false, reason.Syncing, p.service.Identities+" is not there")
	default:
		p.reg.SetCondition("identities", true, reason.InSync, fmt.Sprintf("%d ports, %d networks", now.File.Ports, now.File.Networks))
	}
	if waits := waitingListeners(now.Listeners); len(waits) > 0 {
		p.reg.SetCondition("listeners", false, reason.Waiting, strings.Join(waits, "; "))
	} else {
		p.reg.SetCondition("listeners", true, reason.Listening, "")
	}
	switch {
	case p.service.OpenHeart == nil:
		p.reg.SetCondition("heartbeat", true, reason.Idle, "")
	case now.Heart.Error != "" || now.Heart.Last.IsZero():
		p.reg.SetCondition("heartbeat", false, reason.Waiting, now.Heart.Error)
	default:
		p.reg.SetCondition("heartbeat", true, reason.Beating, "")
	}
}

// shownListeners bounds what a condition names of them.
const shownListeners = 4

func waitingListeners(all []service.ListenerStatus) (out []string) {
	more := 0
	for _, l := range all {
		switch {
		case l.Serving:
		case len(out) == shownListeners:
			more++
		case l.Error != "":
			out = append(out, l.Error)
		default:
			out = append(out, l.Address+" in "+l.Namespace+" is not served yet")
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}
