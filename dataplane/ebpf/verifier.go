package ebpf

import (
	"errors"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// Verified is what the kernel's verifier did to accept a program.
type Verified = pinned.Verified

// objects are all objects of this package that hold programs.
func objects() []func() (*ebpf.CollectionSpec, error) {
	out := []func() (*ebpf.CollectionSpec, error){loadWrapper, loadVtepGuard}
	for _, p := range allPrograms() {
		out = append(out, p.spec)
	}
	return out
}

// Verify loads every program into the kernel as Load would, with the constants of
// a node and the sizes of maps, attaches none and lets go of all.
func Verify(n Node, limits Limits) ([]Verified, error) {
	maps, err := mapSpecs(limits.withDefaults())
	if err != nil {
		return nil, err
	}
	var out []Verified
	var errs []error
	for _, load := range objects() {
		spec, err := load()
		if err != nil {
			return nil, err
		}
		if err := specialize(spec, n, maps); err != nil {
			return nil, err
		}
		v, err := pinned.Verify(spec)
		out, errs = append(out, v...), append(errs, err)
	}
	return out, errors.Join(errs...)
}
