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
	var (
		message  []byte
		depth    int
		inString bool
		escaped  bool
	)
	for {
		if _, err := f.r.Peek(1); err != nil {
			if err == io.EOF && depth > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		chunk, _ := f.r.Peek(f.r.Buffered())
		end := -1
		for i, c := range chunk {
			switch {
			case inString:
				switch {
				case escaped:
					escaped = false
				case c == '\\':
					escaped = true
				case c == '"':
					inString = false
				}
			case depth == 0 && c != '{':
				if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
					return nil, protocolError("byte %q where a message should begin", c)
				}
			case c == '"':
				inString = true
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				depth--
				if depth == 0 {
					end = i + 1
				}
			}
			if end >= 0 {
				break
			}
		}
		n := len(chunk)
		if end >= 0 {
			n = end
		}
		message = append(message, chunk[:n]...)
		if _, err := f.r.Discard(n); err != nil {
			return nil, err
		}
		if end >= 0 {
			return message, nil
		}
	}
}
