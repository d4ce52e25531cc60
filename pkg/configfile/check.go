package configfile

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

type position struct{ line, column int }

// Checker reports broken rules. It knows where in the file each key was.
type Checker struct {
	file string
	errs Errors
	at   map[string]position
}

// FailAt reports a broken rule at the key, or at the nearest key around it that
// is in the file.
func (c *Checker) FailAt(key, format string, args ...any) {
	e := &Error{File: c.file, Key: key, Text: fmt.Sprintf(format, args...)}
	for p := key; p != ""; {
		if pos, ok := c.at[p]; ok {
			e.Line, e.Column = pos.line, pos.column
			break
		}
		p = p[:max(strings.LastIndexAny(p, ".["), 0)]
	}
	c.errs = append(c.errs, e)
}

// Absolute wants an absolute path in its shortest form.
func (c *Checker) Absolute(key, path string) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		c.FailAt(key, "%q is not an absolute path in its shortest form; write it like /var/lib/sluice", path)
	}
}

// maxSocket is the longest path of a socket: sun_path has 108 bytes with the final zero
// (unix(7)).
const maxSocket = 107

// Socket wants the absolute path of a socket.
func (c *Checker) Socket(key, path string) {
	c.Absolute(key, path)
	if len(path) > maxSocket {
		c.FailAt(key, "%d characters; a socket's path has at most %d", len(path), maxSocket)
	}
}

// ListenAddress wants an IP address and a port, no name, so that what is listened on is
// what the file says. Without an address it is every one.
func (c *Checker) ListenAddress(key, s string) {
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err == nil && host != "" {
		_, err = netip.ParseAddr(host)
	}
	if err != nil {
		c.FailAt(key, `%q is not an address to listen on; write 127.0.0.1:9476, [::1]:9476 or :9476`, s)
	}
}
