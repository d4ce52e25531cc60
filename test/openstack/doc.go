// Package openstack runs the real openstack command against two replicas of sluice-controller, at
// one real Northbound database.
//
// The command has a root directory of its own (tools/openstack.sh). Needs root.
package openstack
