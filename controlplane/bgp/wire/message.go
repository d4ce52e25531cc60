package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Types of messages (RFC 4271 section 4.1, RFC 2918).
const (
	typeOpen         = 1
	typeUpdate       = 2
	typeNotification = 3
	typeKeepalive    = 4
	typeRefresh      = 5
)

const (
	headerLen = 19
	// maxMessage is the longest message. The server offers no longer ones (RFC 8654), so no
	// neighbour may send them.
	maxMessage = 4096
	refreshLen = headerLen + 4
)

// Codes and subcodes of NOTIFICATION messages (RFC 4271 section 6, RFC 6608, RFC 8538).
const (
	codeHeader = 1
	codeOpen   = 2
	codeUpdate = 3
	codeHold   = 4
	codeFSM    = 5
	codeCease  = 6

	subNotSynchronized = 1
	subBadLength       = 2
	subBadType         = 3

	subUnknownOptional = 4

	subAttributeList = 1
	subUnrecognized  = 2
	subNetworkField  = 10
	subCollision     = 7
	subHardReset     = 9
)

// Fault is a message that ends its session; Notice is what the neighbour is told.
type Fault struct {
	Notice
	Why string
}

// Error implements error.
func (f *Fault) Error() string { return f.Why }

// Notice is a NOTIFICATION message (RFC 4271 section 4.5).
type Notice struct {
	Code, Subcode uint8
	Data          []byte
}

func fault(code, subcode uint8, data []byte, format string, args ...any) *Fault {
	return &Fault{Notice{code, subcode, data}, fmt.Sprintf(format, args...)}
}

func (n Notice) hardReset() bool { return n.Code == codeCease && n.Subcode == subHardReset }

func (n Notice) message() []byte {
	data := n.Data[:min(len(n.Data), maxMessage-headerLen-2)]
	return finish(append(begin(nil, typeNotification), append([]byte{n.Code, n.Subcode}, data...)...), 0)
}

// begin appends a header whose length finish fills in.
func begin(dst []byte, kind byte) []byte {
	for range 16 {
		dst = append(dst, 0xff)
	}
	return append(dst, 0, 0, kind)
}

// finish fills in the length of the message that begins at start and ends dst.
func finish(dst []byte, start int) []byte {
	binary.BigEndian.PutUint16(dst[start+16:], uint16(len(dst)-start))
	return dst
}

var keepalive = finish(begin(nil, typeKeepalive), 0)

// CheckHeader checks a header of 19 octets (RFC 4271 section 6.1). The error is a Fault.
func CheckHeader(h []byte) error {
	for _, b := range h[:16] {
		if b != 0xff {
			return fault(codeHeader, subNotSynchronized, nil, "the marker of a message is not all ones")
		}
	}
	n, kind := int(binary.BigEndian.Uint16(h[16:])), h[18]
	least, most := headerLen, maxMessage
	switch kind {
	case typeOpen:
		least = headerLen + 10
	case typeUpdate:
		least = headerLen + 4
	case typeNotification:
		least = headerLen + 2
	case typeKeepalive:
		most = headerLen
	case typeRefresh:
		least, most = refreshLen, refreshLen
	default:
		return fault(codeHeader, subBadType, []byte{kind}, "a message of the unknown type %d", kind)
	}
	if n < least || n > most {
		return fault(codeHeader, subBadLength, h[16:18], "a message of type %d with %d bytes", kind, n)
	}
	return nil
}

// readMessage reads one message into buf, which has room for the longest. A wrong header
// is a Fault.
func readMessage(r *bufio.Reader, buf []byte) ([]byte, error) {
	if _, err := io.ReadFull(r, buf[:headerLen]); err != nil {
		return nil, err
	}
	if err := CheckHeader(buf[:headerLen]); err != nil {
		return nil, err
	}
	msg := buf[:binary.BigEndian.Uint16(buf[16:])]
	if _, err := io.ReadFull(r, msg[headerLen:]); err != nil {
		return nil, err
	}
	return msg, nil
}

// another tells whether the next message has been read from the connection already.
func another(r *bufio.Reader) bool {
	n := r.Buffered()
	if n < headerLen {
		return false
	}
	h, err := r.Peek(headerLen)
	return err == nil && n >= int(binary.BigEndian.Uint16(h[16:]))
}
