package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"
)

// SCTPPort is where the server has SCTP, and a VIP before it: the checksum covers the ports, which
// therefore stay.
const SCTPPort = 7002

// SCTP here is a few packets on raw sockets, since not every kernel has it: an association
// (RFC 9260) of four packets, in which one message is asked and one answered. Nothing is sent
// again but by the client, and what a kernel that has SCTP says of packets that it does not know
// is passed over. Each packet that comes in has to have the right checksum.
const (
	sctpProtocol = 132
	sctpHeader   = 12

	chunkData      = 0
	chunkInit      = 1
	chunkInitAck   = 2
	chunkCookie    = 10
	chunkCookieAck = 11
	paramCookie    = 7
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sctpPacket is the common header, and chunks by their type.
type sctpPacket struct {
	from, to uint16
	tag      uint32
	chunks   map[byte][]byte // what follows the header of four bytes
}

func (p sctpPacket) bytes(order ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, p.from)
	b = binary.BigEndian.AppendUint16(b, p.to)
	b = binary.BigEndian.AppendUint32(b, p.tag)
	b = append(b, 0, 0, 0, 0)
	for _, kind := range order {
		flags := byte(0)
		if kind == chunkData {
			flags = 3 // the first and the last part of a message
		}
		b = append(b, kind, flags)
		b = binary.BigEndian.AppendUint16(b, uint16(4+len(p.chunks[kind])))
		b = append(b, p.chunks[kind]...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, castagnoli))
	return b
}

func parseSCTP(b []byte) (p sctpPacket, err error) {
	if len(b) < sctpHeader {
		return p, errors.New("a packet that is cut")
	}
	sum := binary.LittleEndian.Uint32(b[8:])
	binary.LittleEndian.PutUint32(b[8:], 0)
	if got := crc32.Checksum(b, castagnoli); got != sum {
		return p, fmt.Errorf("checksum %08x, want %08x", sum, got)
	}
	p = sctpPacket{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:]), map[byte][]byte{}}
	for b = b[sctpHeader:]; len(b) >= 4; {
		length := int(binary.BigEndian.Uint16(b[2:]))
		if length < 4 || length > len(b) {
			return p, errors.New("a chunk that is cut")
		}
		p.chunks[b[0]] = b[4:length]
		b = b[min(len(b), (length+3)/4*4):]
	}
	return p, nil
}

// initChunk is what INIT and INIT ACK begin with: the tag that the other side is to use.
func initChunk(tag uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, tag)
	b = binary.BigEndian.AppendUint32(b, 65536) // a window
	b = append(b, 0, 1, 0, 1)                   // streams
	return binary.BigEndian.AppendUint32(b, 1)  // the first message's number
}

const initSize = 16

// dataChunk is the first message of an association.
func dataChunk(text string) []byte {
	return append([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, text...)
}

const dataSize = 12

// answerSCTP is the server's answer to a packet, or nil. It keeps nothing: the cookie is all
// that it has to know.
func answerSCTP(name string, from netip.Addr, p sctpPacket) []byte {
	out := sctpPacket{from: p.to, to: p.from, chunks: map[byte][]byte{}}
	if init := p.chunks[chunkInit]; len(init) >= initSize && p.tag == 0 {
		own := rand.Uint32() | 1
		out.tag = binary.BigEndian.Uint32(init)
		cookie := []byte{0, paramCookie, 0, 12}
		cookie = binary.BigEndian.AppendUint32(cookie, own)
		cookie = binary.BigEndian.AppendUint32(cookie, out.tag)
		out.chunks[chunkInitAck] = append(initChunk(own), cookie...)
		return out.bytes(chunkInitAck)
	}
	cookie, asked := p.chunks[chunkCookie], p.chunks[chunkData]
	if len(cookie) != 8 || len(asked) < dataSize || binary.BigEndian.Uint32(cookie) != p.tag {
		return nil
	}
	out.tag = binary.BigEndian.Uint32(cookie[4:])
	out.chunks[chunkCookieAck] = nil
	out.chunks[chunkData] = dataChunk(fmt.Sprintf("%s %s\n", name, netip.AddrPortFrom(from, p.from)))
	return out.bytes(chunkCookieAck, chunkData)
}

// serveSCTP answers what comes to SCTPPort on a raw socket.
func serveSCTP(conn *net.IPConn, name string) error {
	b := make([]byte, 65536)
	for {
		n, from, err := conn.ReadFromIP(b)
		if err != nil {
			return err
		}
		p, err := parseSCTP(b[:n])
		addr, ok := netip.AddrFromSlice(from.IP)
		if err != nil || !ok || p.to != SCTPPort {
			continue
		}
		if answer := answerSCTP(name, addr.Unmap(), p); answer != nil {
			if _, err := conn.WriteToIP(answer, from); err != nil {
				return err
			}
		}
	}
}

// AskSCTP is Ask by SCTP. The client's kernel need not have it either.
func AskSCTP(ctx context.Context, to netip.AddrPort, patience time.Duration, out io.Writer) error {
	network := fmt.Sprintf("ip6:%d", sctpProtocol)
	if to.Addr().Is4() {
		network = fmt.Sprintf("ip4:%d", sctpProtocol)
	}
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, network, to.Addr().String())
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer raw.Close()
	conn, ok := raw.(*net.IPConn)
	if !ok {
		return fmt.Errorf("ask: a %T", raw)
	}
	own, deadline := rand.Uint32()|1, time.Now().Add(patience)
	port := uint16(32768 + rand.UintN(28000))
	send := sctpPacket{from: port, to: to.Port(), chunks: map[byte][]byte{chunkInit: initChunk(own)}}
	ack, err := exchange(conn, send.bytes(chunkInit), own, deadline, chunkInitAck, func(p sctpPacket) bool {
		return p.to == port && len(p.chunks[chunkInitAck]) >= initSize+4
	})
	if err == nil {
		// The cookie is the one parameter that the server above writes.
		send.tag = binary.BigEndian.Uint32(ack.chunks[chunkInitAck])
		send.chunks = map[byte][]byte{chunkCookie: ack.chunks[chunkInitAck][initSize+4:], chunkData: dataChunk("hello")}
		ack, err = exchange(conn, send.bytes(chunkCookie, chunkData), own, deadline, chunkCookieAck, func(p sctpPacket) bool {
			return p.to == port && len(p.chunks[chunkData]) > dataSize
		})
	}
	if err == nil {
		_, err = out.Write(ack.chunks[chunkData][dataSize:])
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", to, err)
	}
	return nil
}

// exchange sends a packet, again each second, until one comes back that has a chunk.
func exchange(conn *net.IPConn, packet []byte, tag uint32, deadline time.Time, kind byte, fits func(sctpPacket) bool) (sctpPacket, error) {
	b := make([]byte, 65536)
	for {
		if _, err := conn.Write(packet); err != nil {
			return sctpPacket{}, err
		}
		again := time.Now().Add(time.Second)
		if deadline.Before(again) {
			again = deadline
		}
		if err := conn.SetReadDeadline(again); err != nil {
			return sctpPacket{}, err
		}
		for {
			n, _, err := conn.ReadFromIP(b)
			if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() && time.Now().Before(deadline) {
				break
			}
			if err != nil {
				return sctpPacket{}, fmt.Errorf("no chunk of type %d came: %w", kind, err)
			}
			p, err := parseSCTP(b[:n])
			if err != nil {
				return sctpPacket{}, err
			}
			if _, there := p.chunks[kind]; there && p.tag == tag && fits(p) {
				return p, nil
			}
		}
	}
}
