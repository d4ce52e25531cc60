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
// what is tested here is behaviour, never speed. `make bench-vm` compares what runs in one
// machine.
//
// Its tests have a matrix of two rows, a Debian release each: bookworm (kernel 6.1,
// OVN 23.03, Open vSwitch 3.1, FRR 8.4.4) and trixie (6.12, 25.03, 3.5, 10.3). Each row
// boots one machine, in which the suites run one after the other: the programs
// (test/bpf), the kernel path's drivers (test/kernelpath, dataplane/kernel) and whole
// clouds (test/evpn and test/metadata, files with the build tag guest). `make test` runs
// of each suite what matrix_test.go names; the nightly run all. What is left out is
// printed with the versions. A machine with its lab up is not kept for the next run: most
// of a machine's time goes to the programs under test, which every change replaces.
//
// All that is downloaded or made of downloads is below $SLUICE_CACHE; with
// that full nothing needs the network. A run writes below build/vm, in a directory of its
// own that goes with it; what is left of one that was killed goes with the next run.
// What is missing (QEMU, a kernel, a module, a root disk) fails the test.
//
// The verifier of each kernel may look at 600,000 instructions of a program (TestVerifier in test/bpf).
// What it did is in verifier.txt, which a change that concerns the programs writes anew by
//
//	SLUICE_RECORD=1 go test -run TestVerifier ./test/vm
//
// SLUICE_VM_TESTS=bpf has all tests of one suite run and nothing else, and
// SLUICE_VM_TESTS=evpn:TestFlipPath,TestFRREdgeECMP some of them; with -run TestMatrix/6.12
// in one machine.
//
// SLUICE_VM_SHELL=FILE makes a guest offer a shell on the unix socket FILE, to look
// around in while its script runs.
package vm
