// Package cloudinit runs Debian's cloud-init in a network namespace, as a virtual
// VM runs it at boot, and says what it got from the metadata service.
//
// cloud-init has a root directory of its own (tools/cloudinit.sh) with an overlay that
// goes with the run, and namespaces of its own for mounts, processes and names: nothing
// of the VM changes, and what it writes is in the Result alone. Its data source is
// OpenStack with all settings as Debian has them: one round of asking, 10 s a request.
// The modules that configure a VM are switched off. The VM's link has to be
// called eth0.
package cloudinit
