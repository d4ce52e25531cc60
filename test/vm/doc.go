// Package vm runs programs under other kernels: it boots a Debian cloud kernel
// in QEMU with an initramfs made for the purpose and brings back what a script
// printed there, with its exit status. A script runs on BusyBox, or on a root disk
// with a Debian release's OVN, Open vSwitch and FRR.
//
// It owns the virtual machine from its first instruction to its last. A machine
// that does not boot, crashes, or goes away before the script has ended is an
// error and never a result. It needs no privileges and no network; kernels come
// from tools/kernel.sh, which downloads each once, and root disks from
// tools/image.sh, which makes them anew when their recipe changes.
//
// QEMU translates instructions (TCG) unless SLUICE_VM_ACCEL names another
// accelerator. Under TCG programs run ten to thirty times slower than natively:
// what is tested here is behaviour, never speed.
//
// SLUICE_VM_SHELL=FILE makes a guest offer a shell on the unix socket FILE, to look
// around in while its script runs.
package vm
