package nova

import (
	"slices"
)

// ec2Versions are those of nova/api/metadata/base.py.
var ec2Versions = []string{
	"1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01", "2009-04-04",
}

// ec2 is the tree of everything but /openstack.
func (i Instance) ec2(at []string) answer {
	if len(at) == 0 {
		return text(append(slices.Clone(ec2Versions), latest)...)
	}
	if at[0] != latest && !slices.Contains(ec2Versions, at[0]) {
		return notFound
	}
	top := []string{"meta-data/"}
	if i.UserData != nil {
		top = append(top, "user-data")
	}
	switch {
	case len(at) == 1:
		return text(top...)
	case at[1] == "user-data" && len(at) == 2 && i.UserData != nil:
		return found(mimeBinary, i.UserData)
	case at[1] != "meta-data" || len(at) > 3:
		return notFound
	}
	items := i.ec2Items()
	if len(at) == 3 {
		for _, item := range items {
			if item.name == at[2] {
				return text(item.value)
			}
		}
		return notFound
	}
	var names []string
	for _, item := range items {
		names = append(names, item.name)
	}
	return text(names...)
}

type ec2Item struct{ name, value string }

// ec2Items are sorted by name.
func (i Instance) ec2Items() []ec2Item {
	address := ""
	if i.Address.Is4() {
		address = i.Address.String()
	}
	return []ec2Item{
		{"ami-id", "ami-00000001"}, {"ami-launch-index", "0"}, {"ami-manifest-path", "FIXME"}, {"hostname", i.Name},
		{"instance-action", "none"}, {"instance-id", i.ID}, {"instance-type", "m1.tiny"}, {"local-hostname", i.Name},
		{"local-ipv4", address}, {"public-hostname", i.Name}, {"public-ipv4", ""}, {"reservation-id", "r-" + i.Name},
		{"security-groups", "default"},
	}
}
