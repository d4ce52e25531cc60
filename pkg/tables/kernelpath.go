package tables

import "github.com/ovn-sluice/sluice/pkg/intent"

// RelistKernelPath has all of the kernel path read back: what can be mended is.
func (t *Tables) RelistKernelPath() {
	t.Pipeline.Update(t.relistKernelPath)
}

func (t *Tables) relistKernelPath() {
	Of(t, intent.KernelVRFs).Relist()
	Of(t, intent.KernelGateways).Relist()
	Of(t, intent.KernelRoutes).Relist() // the kernel removes routes of a device that goes
}

// RelistDevices has the devices of the kernel path, and what is given to OVN, read back after a
// change of any device, as far as there are any.
func (t *Tables) RelistDevices() {
	t.Pipeline.Update(func() {
		learned, kernel := false, false
		Of(t, intent.LearnedRoutes).EachLocked(func(intent.LearnedKey, intent.LearnedRoute) { learned = true })
		Of(t, intent.KernelVRFs).EachLocked(func(intent.VNI, intent.KernelVRF) { kernel = true })
		if learned {
			Of(t, intent.LearnedRoutes).Relist()
		}
		if kernel {
			t.relistKernelPath()
		}
	})
}

// RelistSwitch has flows and ports of Open vSwitch read back.
func (t *Tables) RelistSwitch() {
	t.Pipeline.Update(func() {
		Of(t, intent.Bridges).Relist()
		Of(t, intent.SteeringFlows).Relist()
	})
}
