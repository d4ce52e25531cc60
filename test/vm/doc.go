// Package vm runs programs under other kernels: it boots a Debian cloud kernel
// in QEMU with an initramfs made for the purpose and brings back what a script
// printed there, with its exit status.
//
// It owns the virtual machine from its first instruction to its last. A machine
// that does not boot, crashes, or goes away before the script has ended is an
// error and never a result. It needs no privileges, no network and no disk;
// kernels come from tools/kernel.sh, which downloads each once.
//
// QEMU translates instructions (TCG) unless SLUICE_VM_ACCEL names another
// accelerator. Under TCG programs run ten to thirty times slower than natively:
// what is tested here is behaviour, never speed.
package vm
