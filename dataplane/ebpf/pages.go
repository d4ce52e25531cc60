package ebpf

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// mappedPages are the maps in an array of maps, made one after the other, and their
// memory, which this process shares: to write a map into an array of maps waits for all
// programs that run, some 10 ms, and before Linux 6.8 each look into it does.
type mappedPages struct {
	outer   *ebpf.Map
	outerID ebpf.MapID
	name    string // of the outer map
	pins    pagePins
	spec    ebpf.MapSpec // of a page
	pages   []*ebpf.Memory
	held    []*ebpf.Map // of the pages that this process pins
}

// pagePins are where the pages of one array of maps are pinned.
type pagePins struct {
	dir func() string // "": nowhere
	// readOnly: pages that are not pinned stay so.
	readOnly bool
}

// openPages shares the memory of the pages that are there.
func openPages(t tables, pins pagePins, name, page string, valueSize, rows uint32) (*mappedPages, error) {
	p := &mappedPages{outer: t[name], name: name, pins: pins, spec: ebpf.MapSpec{
		Name: page, Type: ebpf.Array, KeySize: 4, ValueSize: valueSize, MaxEntries: rows, Flags: unix.BPF_F_MMAPABLE,
	}}
	if p.outer == nil {
		return p, nil // an older build's pins
	}
	var err error
	if p.outerID, err = idOf(p.outer); err != nil {
		return nil, mapError(name, err)
	}
	for number := range p.outer.MaxEntries() {
		var id uint32
		err := p.outer.Lookup(number, &id)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return p, nil
		}
		var page *ebpf.Map
		if err == nil {
			page, err = p.open(number, ebpf.MapID(id))
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

// pin is where a page is pinned. It names the array of maps, too: while maps are changed there are two.
func (p *mappedPages) pin(number uint32) string {
	return pinned.PagePin(p.pins.dir(), p.name, p.outerID, number)
}

// open opens a page by its pin. A page that an earlier build made has none: it is opened by its
// number, which takes CAP_SYS_ADMIN, and pinned for the next start.
func (p *mappedPages) open(number uint32, id ebpf.MapID) (*ebpf.Map, error) {
	if p.pins.dir() != "" {
		page, err := ebpf.LoadPinnedMap(p.pin(number), nil)
		if err == nil {
			if is, err := idOf(page); err == nil && is == id {
				return page, nil
			}
			page.Close() // of a start that was cut off
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open page %d: %w", number, err)
		}
	}
	page, err := ebpf.NewMapFromID(id)
	if err != nil {
		return nil, fmt.Errorf("open page %d, which is not pinned, by its number (it takes CAP_SYS_ADMIN): %w", number, err)
	}
	if err := p.publish(number, page); err != nil {
		page.Close()
		return nil, err
	}
	return page, nil
}

// publish pins a page.
func (p *mappedPages) publish(number uint32, page *ebpf.Map) error {
	if p.pins.dir() == "" || p.pins.readOnly {
		return nil
	}
	return pinned.Over(page, p.pin(number))
}

// share takes a page: its memory stays, and where this process pins pages its descriptor, too.
func (p *mappedPages) share(page *ebpf.Map) (err error) {
	defer func() {
		if err != nil || p.pins.readOnly {
			page.Close()
			return
		}
		p.held = append(p.held, page)
	}()
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

// objects adds the descriptors of the pages, by the names of their pins.
func (p *mappedPages) objects(to map[string]int) {
	for number, page := range p.held {
		to[pinned.PagePin("", p.name, p.outerID, uint32(number))] = page.FD()
	}
}

// close lets go of the pages' descriptors.
func (p *mappedPages) close() {
	for _, page := range p.held {
		page.Close()
	}
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
	// Pinned first: a start that finds the page finds its pin.
	err = p.publish(number, page)
	if err == nil {
		err = p.outer.Put(number, page)
	}
	if err != nil {
		page.Close()
		return 0, err
	}
	return number, p.share(page)
}
