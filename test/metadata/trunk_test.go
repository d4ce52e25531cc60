package metadata_test

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/ovn-sluice/sluice/test/nova"
)

// A trunk's subport is told its own data, and so is the parent port.
func TestTrunkSubport(t *testing.T) {
	w := shared(t)
	vm := red3("m1")
	w.add(vm)
	const tag, sub, mac, instance = 100, "m-sub1", "fa:16:3e:00:03:01", "inst-sub1"
	w.nova.Put(nova.Instance{ID: instance, Project: "project-blue"})
	w.nb("lsp-add", w.network("blue").Switch("blue"), sub, vm.Name, fmt.Sprint(tag), "--",
		"lsp-set-addresses", sub, mac+" 10.30.0.13 fd00:30::13", "--", "lsp-set-port-security", sub, mac+" 10.30.0.13 fd00:30::13", "--",
		"set", "Logical_Switch_Port", sub, `external_ids:neutron\:device_id=`+instance, `external_ids:neutron\:project_id=project-blue`,
		`external_ids:neutron\:device_owner="trunk:subport"`)
	t.Cleanup(func() { w.nb("lsp-del", sub) })
	w.tagged(vm.Name, tag, mac)
	for _, q := range []question{{vm: vm.Name, family: ipv4}, {vm: vm.Name, family: ipv6}} {
		w.isTold(q, vm.Instance)
	}
	w.isTold(question{vm: vm.Name, family: ipv6, link: "tagged"}, instance)
	// What is sent to the metadata address leaves by the subport from here on.
	w.sh(vm.Name, "ip addr flush dev eth0 scope global; ip addr add 10.30.0.13/24 dev tagged; ip route replace 169.254.169.254 dev tagged")
	w.isTold(question{vm: vm.Name, family: ipv4}, instance)
	// The parent is as it was.
	w.isTold(question{vm: vm.Name, family: ipv6, patience: soon()}, vm.Instance)
}

// tagged gives a VM a link whose frames leave eth0 with a VLAN tag, and that gets
// those that come with it: what a VLAN device does, which not every kernel has.
func (w *world) tagged(vm string, tag int32, mac string) {
	w.Helper()
	w.sh(vm, "ip link add tagged address "+mac+" type veth peer name tagger; echo 1 >/proc/sys/net/ipv6/conf/tagger/disable_ipv6; "+
		"ip link set tagger up; ip link set tagged up; ethtool -K tagged tx off tso off gso off >/dev/null")
	in(w.T, w.Lab, vm, func() error {
		outer, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		inner, err := net.InterfaceByName("tagger")
		if err != nil {
			return err
		}
		const ethernet8021Q, present, tci = 0x0081, 20, 24 // the latter two are offsets in struct __sk_buff
		push := asm.Instructions{
			asm.Mov.Imm(asm.R2, ethernet8021Q), // in network byte order
			asm.Mov.Imm(asm.R3, tag),
			asm.FnSkbVlanPush.Call(),
			asm.Mov.Imm(asm.R1, int32(outer.Index)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
		}
		pop := asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, present, asm.Word),
			asm.JEq.Imm(asm.R2, 0, "other"),
			asm.LoadMem(asm.R2, asm.R1, tci, asm.Word),
			asm.And.Imm(asm.R2, 0xfff),
			asm.JNE.Imm(asm.R2, tag, "other"),
			asm.FnSkbVlanPop.Call(),
			asm.Mov.Imm(asm.R1, int32(inner.Index)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
			asm.Mov.Imm(asm.R0, -1).WithSymbol("other"), // TCX_NEXT
			asm.Return(),
		}
		return errors.Join(w.onIngress(inner.Index, "push", push), w.onIngress(outer.Index, "pop", pop))
	})
}

func (w *world) onIngress(index int, name string, program asm.Instructions) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Name: name, License: "GPL", Instructions: program})
	if err != nil {
		return fmt.Errorf("program %s: %w", name, err)
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: p, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return errors.Join(fmt.Errorf("program %s: %w", name, err), p.Close())
	}
	w.Cleanup(func() { l.Close(); p.Close() })
	return nil
}
