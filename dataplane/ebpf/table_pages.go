package ebpf

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

const (
	pageWords = 131072 // TABLE_PAGE of bpf/lib/types.h
	wordLen   = 8
)

// span is words of a page: at is page*pageWords + word.
type span struct{ at, words uint32 }

// tablePages hands out words of the pages of maglev, and makes a page when there is no
// room. What is given back rests before it is used again: a program may still read it.
type tablePages struct {
	*mappedPages
	free []span // sorted; none touches the next one of its page
	rest []restingSpan
	now  func() time.Time
}

type restingSpan struct {
	span
	since time.Time
}

// openTablePages shares the memory of the pages that are there, all of it in use.
func openTablePages(t tables, pins pagePins) (*tablePages, error) {
	pages, err := openPages(t, pins, bpfMapMaglevV2, "maglev_page", wordLen, pageWords)
	return &tablePages{mappedPages: pages, now: time.Now}, err
}

// pageSpan is what can be used of a page: word 0 of page 0 stands for nothing.
func pageSpan(number uint32) span {
	if number == 0 {
		return span{1, pageWords - 1}
	}
	return span{number * pageWords, pageWords}
}

// put writes words where nothing is, and tells where.
func (p *tablePages) put(words []uint64) (at uint32, err error) {
	n := uint32(len(words))
	if n >= pageWords {
		return 0, fmt.Errorf("a table of %d words is larger than a page: %w", n, ErrFull)
	}
	p.wake()
	i := slices.IndexFunc(p.free, func(s span) bool { return s.words >= n })
	if i < 0 {
		number, err := p.grow()
		if err != nil {
			return 0, err
		}
		p.free = append(p.free, pageSpan(number))
		i = len(p.free) - 1
	}
	at = p.free[i].at
	if err := p.write(at, words); err != nil {
		return 0, err
	}
	if p.free[i].at, p.free[i].words = at+n, p.free[i].words-n; p.free[i].words == 0 {
		p.free = slices.Delete(p.free, i, i+1)
	}
	return at, nil
}

func (p *tablePages) write(at uint32, words []uint64) error {
	b := make([]byte, 0, len(words)*wordLen)
	for _, w := range words {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	_, err := p.pages[at/pageWords].WriteAt(b, int64(at%pageWords)*wordLen)
	return err
}

// read gives words, or false where there are none.
func (p *tablePages) read(at, n uint32) ([]uint64, bool) {
	if int(at/pageWords) >= len(p.pages) || at%pageWords+n > pageWords {
		return nil, false
	}
	b := make([]byte, n*wordLen)
	if _, err := p.pages[at/pageWords].ReadAt(b, int64(at%pageWords)*wordLen); err != nil {
		return nil, false
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.NativeEndian.Uint64(b[i*wordLen:])
	}
	return out, true
}

// release gives words back.
func (p *tablePages) release(s span) { p.rest = append(p.rest, restingSpan{s, p.now()}) }

// wake makes free what has rested.
func (p *tablePages) wake() {
	n := 0
	for n < len(p.rest) && p.now().Sub(p.rest[n].since) >= restTime {
		p.add(p.rest[n].span)
		n++
	}
	p.rest = p.rest[n:]
}

// add joins a span with those that it touches.
func (p *tablePages) add(s span) {
	i, _ := slices.BinarySearchFunc(p.free, s.at, func(f span, at uint32) int { return int(int64(f.at) - int64(at)) })
	p.free = slices.Insert(p.free, i, s)
	for _, left := range []int{i, i - 1} {
		if left >= 0 && left+1 < len(p.free) && p.free[left].touches(p.free[left+1]) {
			p.free[left].words += p.free[left+1].words
			p.free = slices.Delete(p.free, left+1, left+2)
		}
	}
}

// touches tells whether the other one comes next in the page.
func (s span) touches(next span) bool {
	return s.at+s.words == next.at && s.at/pageWords == next.at/pageWords
}

// settle ends adoption: all but what is used is free.
func (p *tablePages) settle(used []span) {
	slices.SortFunc(used, func(a, b span) int { return int(int64(a.at) - int64(b.at)) })
	p.free = nil
	for number := range p.pages {
		at, end := pageSpan(uint32(number)).at, uint32(number+1)*pageWords
		for len(used) > 0 && used[0].at < end {
			if used[0].at > at {
				p.free = append(p.free, span{at, used[0].at - at})
			}
			at = max(at, used[0].at+used[0].words)
			used = used[1:]
		}
		if at < end {
			p.free = append(p.free, span{at, end - at})
		}
	}
}
