package lab

import (
	"fmt"
	"path/filepath"
)

// programs are those of OVN and Open vSwitch that a lab runs, and where Debian's
// packages have them when that is not usr/bin.
var programs = map[string]string{
	"ovn-northd": "", "ovn-controller": "", "ovn-nbctl": "", "ovn-sbctl": "", "ovn-appctl": "",
	"ovs-vsctl": "", "ovs-ofctl": "", "ovs-appctl": "", "ovsdb-client": "", "ovsdb-tool": "",
	"ovsdb-server": "usr/sbin", "ovs-vswitchd": "usr/lib/openvswitch-switch",
}

// libraries is where Debian's packages for amd64 have the loader and libraries.
const libraries = "usr/lib/x86_64-linux-gnu"

// wrapPrograms makes a cloud's nodes find its own programs before the machine's.
// They are run by their own loader, which finds their own libraries.
func (l *Lab) wrapPrograms(c Cloud) error {
	if c.Programs == "" {
		return nil
	}
	root, err := filepath.Abs(c.Programs)
	if err != nil {
		return err
	}
	lib := filepath.Join(root, libraries)
	for _, n := range l.Nodes() {
		if n.Cloud != c.Name {
			continue
		}
		for name, dir := range programs {
			if dir == "" {
				dir = "usr/bin"
			}
			script := fmt.Sprintf("exec '%s' --library-path '%s' '%s' \"$@\"",
				filepath.Join(lib, "ld-linux-x86-64.so.2"), lib, filepath.Join(root, dir, name))
			if err := writeWrapper(n, name, script); err != nil {
				return err
			}
		}
	}
	return nil
}

// schema is a schema file of the cloud's OVN or Open vSwitch.
func (c Cloud) schema(name string) string {
	root, dir := c.Programs, "ovn"
	if root == "" {
		root = "/"
	}
	if name == "vswitch" {
		dir = "openvswitch"
	}
	return filepath.Join(root, "usr/share", dir, name+".ovsschema")
}
