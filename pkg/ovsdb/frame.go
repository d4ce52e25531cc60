package ovsdb

import (
	"bufio"
	"io"
)

// framer cuts a stream of JSON objects, which is all that delimits JSON-RPC 1.0
// messages, into messages. Each message has memory of its own: a long-lived
// connection does not keep the size of its largest message.
type framer struct {
	r *bufio.Reader
}

func newFramer(r io.Reader) *framer {
	return &framer{r: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next object. It only finds where the object ends; whether it
// is valid JSON is for the decoder to say.
func (f *framer) next() ([]byte, error) {
	if err := f.skipSpace(); err != nil {
		return nil, err
	}
	var message []byte
	var s scanner
	for {
		if _, err := f.r.Peek(1); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		chunk, _ := f.r.Peek(f.r.Buffered())
		n, end := s.scan(chunk)
		message = append(message, chunk[:n]...)
		if _, err := f.r.Discard(n); err != nil {
			return nil, err
		}
		if end {
			return message, nil
		}
	}
}

// skipSpace goes to where an object begins.
func (f *framer) skipSpace() error {
	for {
		c, err := f.r.ReadByte()
		switch {
		case err != nil:
			return err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == '{':
			return f.r.UnreadByte()
		default:
			return protocolError("byte %q where a message should begin", c)
		}
	}
}

// scanner knows where in an object it is.
type scanner struct {
	depth             int
	inString, escaped bool
}

// scan reads on and returns how many bytes belong to the object, and whether it
// ends with them.
func (s *scanner) scan(chunk []byte) (n int, end bool) {
	for i, c := range chunk {
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString && c == '\\':
			s.escaped = true
		case c == '"':
			s.inString = !s.inString
		case s.inString:
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			s.depth--
			if s.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(chunk), false
}
