package lab

import (
	"context"
	"errors"
)

// migrating is what a machine's device is called at the chassis that it moves to, until it
// is there.
const migrating = "eth0-new"

// MigrateVM moves a VM to another chassis as a live migration does: what runs in it goes on,
// with its connections. As Neutron does it the port is bound to both chassis meanwhile, and
// plugged at the new one before the machine is there: prepared returns when it may come,
// which takes seconds where its memory is copied.
func (l *Lab) MigrateVM(ctx context.Context, name, chassis string, prepared func() error) error {
	c, was, err := l.findVM(name)
	if err != nil {
		return err
	}
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	request := func(list string) error {
		_, err := l.NB(ctx, c.Name, "set", "Logical_Switch_Port", name, "options:requested-chassis=\""+list+"\"")
		return err
	}
	if err := request(was.Chassis + "," + chassis); err != nil {
		return err
	}
	vm, err := l.assign(c, was, chassis)
	if err != nil {
		return err
	}
	if err := l.plugLinks(ctx, c, n, vm, migrating); err != nil {
		return err
	}
	if err := l.waitBound(ctx, c.Name, name, chassis, "additional_chassis"); err != nil {
		return err
	}
	if err := prepared(); err != nil {
		return err
	}
	// A machine is paused before it leaves: nothing reaches it on devices that are being taken away.
	if err := ipBatch(ctx, n.Netns, "link set eth0 down\n"); err != nil {
		return err
	}
	if err := l.unplugLinks(ctx, c, was); err != nil {
		return err
	}
	if err := ipBatch(ctx, n.Netns, "link set "+migrating+" name eth0\n"); err != nil {
		return err
	}
	if err := errors.Join(l.configureVM(ctx, c, n, vm), request(chassis)); err != nil {
		return err
	}
	return l.waitBound(ctx, c.Name, name, chassis, "chassis")
}
