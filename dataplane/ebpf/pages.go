package ebpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// mappedPages are the maps in an array of maps, made one after the other, and their
// memory, which this process shares: to write a map into an array of maps waits for all
// programs that run, some 10 ms, and before Linux 6.8 each look into it does.
type mappedPages struct {
	outer *ebpf.Map
	spec  ebpf.MapSpec // of a page
	pages []*ebpf.Memory
}

// openPages shares the memory of the pages that are there.
func openPages(t tables, name, page string, valueSize, rows uint32) (*mappedPages, error) {
	p := &mappedPages{outer: t[name], spec: ebpf.MapSpec{
		Name: page, Type: ebpf.Array, KeySize: 4, ValueSize: valueSize, MaxEntries: rows, Flags: unix.BPF_F_MMAPABLE,
	}}
	if p.outer == nil {
		return p, nil // an older build's pins
	}
	for number := range p.outer.MaxEntries() {
		var page *ebpf.Map
		err := p.outer.Lookup(number, &page)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return p, nil
		}
		if err == nil {
			err = p.share(page)
		}
		if err != nil {
			return nil, mapError(name, err)
		}
	}
	return p, nil
}

// share takes a page, which it closes: its memory stays.
func (p *mappedPages) share(page *ebpf.Map) error {
	defer page.Close()
	if page.MaxEntries() != p.spec.MaxEntries || page.ValueSize() != p.spec.ValueSize {
		return fmt.Errorf("a page has %d rows of %d bytes, not %d of %d", page.MaxEntries(), page.ValueSize(), p.spec.MaxEntries, p.spec.ValueSize)
	}
	m, err := page.Memory()
	if err != nil {
		return fmt.Errorf("share the memory of a page: %w", err)
	}
	p.pages = append(p.pages, m)
	return nil
}

// grow adds a page and gives its number.
func (p *mappedPages) grow() (uint32, error) {
	number := uint32(len(p.pages))
	if number >= p.outer.MaxEntries() {
		return 0, fmt.Errorf("all %d pages are in use: %w", number, ErrFull)
	}
	page, err := ebpf.NewMap(&p.spec)
	if err != nil {
		return 0, fmt.Errorf("make a page: %w", err)
	}
	if err := p.outer.Put(number, page); err != nil {
		page.Close()
		return 0, err
	}
	return number, p.share(page)
}
