package wire

import (
	"encoding/binary"
	"slices"
)

// Kinds of segments of an AS_PATH (RFC 4271 section 4.3, RFC 5065 section 3).
const (
	segmentSet = 1 + iota
	segmentSequence
	segmentConfedSequence
	segmentConfedSet
)

// segment is one of an AS_PATH.
type segment struct {
	kind byte
	asns []uint32
}

func (s segment) confederation() bool { return s.kind >= segmentConfedSequence }

// hops are what the segment counts for (RFC 4271 section 9.1.2.2 a, RFC 5065 section 5.3).
func (s segment) hops() int {
	switch s.kind {
	case segmentSequence:
		return len(s.asns)
	case segmentSet:
		return 1
	}
	return 0
}

// asPath is an AS_PATH or AS4_PATH.
type asPath []segment

func (p asPath) hops() (n int) {
	for _, s := range p {
		n += s.hops()
	}
	return n
}

// parsePath reads a path with AS numbers of 2 or 4 octets. ok: it is well-formed (RFC 7606
// section 7.2, RFC 7607 section 2).
func parsePath(b []byte, size int) (p asPath, ok bool) {
	for len(b) > 0 {
		if len(b) < 2 || b[0] < segmentSet || b[0] > segmentConfedSet || b[1] == 0 || len(b) < 2+int(b[1])*size {
			return nil, false
		}
		s := segment{kind: b[0]}
		for n := range slices.Chunk(b[2:2+int(b[1])*size], size) {
			asn := uint32(binary.BigEndian.Uint16(n))
			if size == 4 {
				asn = binary.BigEndian.Uint32(n)
			}
			if asn == 0 {
				return nil, false
			}
			s.asns = append(s.asns, asn)
		}
		p, b = append(p, s), b[2+int(b[1])*size:]
	}
	return p, true
}

// asTrans stands for AS numbers that two octets have no room for (RFC 6793 section 9).
const asTrans = 23456

// merge puts the AS4_PATH in the place of the end of an AS_PATH of two octets (RFC 6793 section
// 4.2.3). Segments of confederations do not belong in it (section 6).
func (p asPath) merge(four asPath) asPath {
	four = slices.DeleteFunc(four, segment.confederation)
	keep := p.hops() - four.hops()
	if keep < 0 || len(four) == 0 {
		return p
	}
	var out asPath
	for _, s := range p {
		if n := s.hops(); n > keep {
			if keep > 0 {
				out = append(out, segment{s.kind, s.asns[:keep]})
			}
			break
		}
		out, keep = append(out, s), keep-s.hops()
	}
	return append(out, four...)
}

// bytes is the path with AS numbers of four octets.
func (p asPath) bytes() (b []byte) {
	for _, s := range p {
		b = append(b, s.kind, byte(len(s.asns)))
		for _, asn := range s.asns {
			b = binary.BigEndian.AppendUint32(b, asn)
		}
	}
	return b
}

func (p asPath) has(asn uint32) bool {
	return slices.ContainsFunc(p, func(s segment) bool { return slices.Contains(s.asns, asn) })
}
