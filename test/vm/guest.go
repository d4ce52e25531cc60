package vm

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

//go:embed init.sh
var initScript []byte

// Guest is what to run under a kernel.
type Guest struct {
	Kernel Kernel
	// Modules are loaded first, with what they depend on.
	Modules []string
	// Files are put into the guest's /guest by their names: name there, path here.
	Files map[string]string
	// Image is the root disk of the script; without one it has BusyBox. It is not
	// written to: a guest's changes go with it.
	Image Image
	// Script is run by sh in /guest, as root.
	Script string
	// MemoryMiB defaults to 1024.
	MemoryMiB int
	// Processors defaults to 2. Under TCG they take turns: more are not faster.
	Processors int
}

// Result is what a script left.
type Result struct {
	Output []byte
	Status int
	// Console is what the kernel said.
	Console []byte
}

// Run boots the guest and waits until it has gone. An error means that the
// script did not come to its end.
func (g Guest) Run(ctx context.Context) (Result, error) {
	dir, err := os.MkdirTemp("", "sluice-vm")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	initrd := filepath.Join(dir, "initrd")
	if err := g.writeInitramfs(initrd); err != nil {
		return Result{}, fmt.Errorf("initramfs: %w", err)
	}
	token := make([]byte, 8)
	if _, err := rand.Read(token); err != nil {
		return Result{}, err
	}
	end := hex.EncodeToString(token)
	// Lines of their own for the kernel and for the script, so that a message of
	// the kernel never cuts a line of the script in two.
	console, output := filepath.Join(dir, "console"), filepath.Join(dir, "output")
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-accel", accelerator(), "-cpu", processor, "-smp", strconv.Itoa(max(1, g.Processors)), "-m", strconv.Itoa(g.memory()),
		"-serial", "file:" + console, "-serial", "file:" + output,
		"-kernel", g.Kernel.image(), "-initrd", initrd,
		// no_timer_check: on a busy host the emulated timer ticks too late for the kernel's check at boot, which panics.
		"-append", "console=ttyS0 no_timer_check panic=-1 oops=panic quiet loglevel=4 sluice.end=" + end,
	}
	if g.Image.dir != "" {
		// Writes go to a file that QEMU removes.
		args = append(args, "-drive", "if=virtio,format=raw,snapshot=on,file="+g.Image.disk())
	}
	if shell := os.Getenv("SLUICE_VM_SHELL"); shell != "" {
		args = append(args, "-serial", "unix:"+shell+",server=on,wait=off")
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	// A machine ends with this process, however that ends. The signal comes when the
	// thread ends that started it: that has to stay.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	said, runErr := cmd.CombinedOutput()
	runtime.UnlockOSThread()
	res := Result{}
	res.Console, err = os.ReadFile(console)
	raw, outErr := os.ReadFile(output)
	if err := errors.Join(ctx.Err(), runErr, err, outErr); err != nil {
		return res, fmt.Errorf("virtual machine with %s: %w\n%s\n%s\n%s", g.Kernel.Release, err, said, res.Console, raw)
	}
	if res.Output, res.Status, err = cutEnd(raw, end); err != nil {
		return res, fmt.Errorf("virtual machine with %s: %w\n%s\n%s", g.Kernel.Release, err, res.Console, raw)
	}
	return res, nil
}

// processor has all that QEMU emulates but CMPXCHG16B: QEMU 7.2 leaves random
// flags behind it now and then, of which kernel 6.12 crashes while it boots.
const processor = "max,-cx16"

// accelerator is TCG with one thread for both processors: with one each, a
// processor may execute an instruction that the other one has patched meanwhile.
func accelerator() string {
	if a := os.Getenv("SLUICE_VM_ACCEL"); a != "" {
		return a
	}
	return "tcg,thread=single"
}

func (g Guest) memory() int {
	if g.MemoryMiB != 0 {
		return g.MemoryMiB
	}
	return 1024
}

// cutEnd takes the end line off the output: it has the run's own token, so that
// nothing else that was printed passes for it.
func cutEnd(raw []byte, end string) (output []byte, status int, err error) {
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	mark := []byte("\nsluice-vm-end " + end + " ")
	at := bytes.LastIndex(raw, mark)
	if at < 0 {
		return raw, 0, errors.New("it went away before the script had ended")
	}
	word, _, whole := strings.Cut(string(raw[at+len(mark):]), "\n")
	status, err = strconv.Atoi(word)
	if err != nil || !whole {
		return raw, 0, fmt.Errorf("the end line has the status %q", word)
	}
	return raw[:at], status, nil
}

func (g Guest) writeInitramfs(file string) error {
	a := archive{"/init": {0o755, initScript}, "/script": {0o644, []byte(g.Script)}}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("package busybox-static: %w", err)
	}
	if err := a.copy("/bin/busybox", busybox); err != nil {
		return err
	}
	names := g.Modules
	if g.Image.dir != "" {
		names = append([]string{"virtio_pci", "virtio_blk", "ext4"}, names...)
	}
	modules, err := g.Kernel.modules(names)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, m := range modules {
		name := path.Join("/lib/modules", filepath.Base(m))
		if err := a.copy(name, m); err != nil {
			return err
		}
		fmt.Fprintln(&list, name)
	}
	a["/modules"] = archived{0o644, []byte(list.String())}
	a["/tmp/.keep"] = archived{0o644, nil}
	a["/guest/.keep"] = archived{0o644, nil}
	for name, from := range g.Files {
		if err := a.copy(path.Join("/guest", name), from); err != nil {
			return err
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(a.writeTo(f), f.Close())
}

func (a archive) copy(name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	a[name] = archived{info.Mode(), content}
	return nil
}
