// Package openstack runs the real openstack command and openstacksdk against two replicas of
// sluice-controller, at one real Northbound database.
//
// The clients have a root directory of their own (tools/openstack.sh). Needs root.
package openstack
