package lab

import (
	"context"
	"fmt"
	"slices"
)

// AddTenant adds a tenant to a running cloud. Its gateway port has the index-th
// addresses of the provider network; the tenants of the scenario have the first.
func (l *Lab) AddTenant(ctx context.Context, cloud string, t Tenant, index int) error {
	c, err := l.cloud(cloud)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(c.Tenants, func(o Tenant) bool { return o.Name == t.Name }) {
		return fmt.Errorf("there is already a tenant %q", t.Name)
	}
	var b ctlBatch
	if err := b.addTenant(c, t, index); err != nil {
		return err
	}
	if err := b.run(ctx, l.NB, cloud); err != nil {
		return err
	}
	return l.updateCloud(cloud, func(c *Cloud) { c.Tenants = append(slices.Clone(c.Tenants), t) })
}

// DelTenant deletes a tenant's router and networks. It has no virtual machine any more.
func (l *Lab) DelTenant(ctx context.Context, cloud, tenant string) error {
	return l.changeTenant(ctx, cloud, tenant, func(b *ctlBatch, c *Cloud, at int) error {
		t := c.Tenants[at]
		if !t.NoRouter {
			b.add("lr-del", RouterName(t.Name))
		}
		for _, n := range t.Networks {
			b.add("ls-del", n.Switch(t.Name))
		}
		if t.Provider != "" {
			b.add("lsp-del", GatewaySwitchPort(t.Name))
		}
		c.Tenants = slices.Delete(slices.Clone(c.Tenants), at, at+1)
		return nil
	})
}

// AddNetwork adds a network to a tenant of a running cloud.
func (l *Lab) AddNetwork(ctx context.Context, cloud, tenant string, n Network) error {
	return l.changeTenant(ctx, cloud, tenant, func(b *ctlBatch, c *Cloud, at int) error {
		c.Tenants = slices.Clone(c.Tenants)
		t := &c.Tenants[at]
		b.addNetwork(*t, n)
		t.Networks = append(slices.Clone(t.Networks), n)
		return nil
	})
}

// DelNetwork deletes a network that has no virtual machine any more.
func (l *Lab) DelNetwork(ctx context.Context, cloud, tenant, network string) error {
	return l.changeTenant(ctx, cloud, tenant, func(b *ctlBatch, c *Cloud, at int) error {
		c.Tenants = slices.Clone(c.Tenants)
		t := &c.Tenants[at]
		i := slices.IndexFunc(t.Networks, func(n Network) bool { return n.Name == network })
		if i < 0 {
			return fmt.Errorf("there is no network %q of tenant %q", network, tenant)
		}
		if !t.NoRouter {
			b.add("lrp-del", InterfacePort(tenant, network))
		}
		b.add("ls-del", t.Networks[i].Switch(tenant))
		t.Networks = slices.Delete(slices.Clone(t.Networks), i, i+1)
		return nil
	})
}

// changeTenant runs the commands that change collects, and then records the cloud
// as change left it.
func (l *Lab) changeTenant(ctx context.Context, cloud, tenant string, change func(*ctlBatch, *Cloud, int) error) error {
	c, err := l.cloud(cloud)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(c.Tenants, func(t Tenant) bool { return t.Name == tenant })
	if at < 0 {
		return fmt.Errorf("there is no tenant %q", tenant)
	}
	var b ctlBatch
	if err := change(&b, &c, at); err != nil {
		return err
	}
	if err := b.run(ctx, l.NB, cloud); err != nil {
		return err
	}
	return l.updateCloud(cloud, func(old *Cloud) { old.Tenants = c.Tenants })
}
