//go:build guest

package kernelpath

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// ports stands for Open vSwitch: a bridge of the kernel of the same name.
type ports struct {
	made map[intent.VRFPortKey]string
}

func (p *ports) Datapath(intent.BridgeKey) (string, error) { return "system", nil }

func (p *ports) HasPort(name string) (intent.BridgeKey, bool) {
	for k, made := range p.made {
		if made == name {
			return k.Bridge, true
		}
	}
	return "", false
}

func (p *ports) OurVRFPorts() (map[intent.VRFPortKey]string, error) { return p.made, nil }

func node(script string) error {
	out, err := exec.Command("nsenter", "--net=/run/netns/node", "/usr/bin/sh", "-ec", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return nil
}

func (p *ports) EnsureVRFPort(_ context.Context, k intent.VRFPortKey, device string) error {
	if p.made == nil {
		p.made = map[intent.VRFPortKey]string{}
	}
	p.made[k] = device
	return node(fmt.Sprintf("ip link set %s master %s", device, k.Bridge))
}

func (p *ports) CheckVRFPort(_ context.Context, k intent.VRFPortKey, device string) error {
	out, err := exec.Command("nsenter", "--net=/run/netns/node", "/usr/bin/ip", "-o", "link", "show", device).Output()
	if err != nil || p.made[k] != device || !strings.Contains(string(out), "master "+string(k.Bridge)) {
		return errors.New("not a port")
	}
	return nil
}

func (p *ports) RemoveVRFPort(_ context.Context, k intent.VRFPortKey) error {
	device, ok := p.made[k]
	if !ok {
		return nil
	}
	delete(p.made, k)
	_ = node("ip link set " + device + " nomaster")
	return nil
}

func (p *ports) DropPort(_ context.Context, name string) error {
	return node(fmt.Sprintf("ip link set %s nomaster", name))
}
