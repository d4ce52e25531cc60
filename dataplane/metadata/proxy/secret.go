package proxy

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// secretLook is how old the knowledge of a file may be.
const secretLook = time.Second

// secretFile is the shared secret, read anew when its file has changed. A file that
// cannot be read, or is empty, leaves the last secret as it is: whoever writes it may
// be half done. Nil is a secret of no characters.
type secretFile struct {
	path  string
	log   *slog.Logger
	limit loglimit.Limit

	mu     sync.Mutex
	looked time.Time
	was    os.FileInfo
	secret []byte
}

func openSecret(path string, log *slog.Logger) (*secretFile, error) {
	if path == "" {
		return nil, nil
	}
	s := &secretFile{path: path, log: log}
	if err := s.read(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *secretFile) value() []byte {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.looked) >= secretLook {
		s.looked = now
		if err := s.read(); err != nil {
			if ok, skipped := s.limit.Allow("secret", s.path, now); ok {
				s.log.Error("the shared secret cannot be read; the last one stays in use", "error", err, "skipped", skipped)
			}
		}
	}
	return s.secret
}

// read takes the first line.
func (s *secretFile) read() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return fmt.Errorf("metadata_proxy_shared_secret: %w", err)
	}
	if s.was != nil && os.SameFile(s.was, info) && s.was.ModTime().Equal(info.ModTime()) && s.was.Size() == info.Size() {
		return nil
	}
	content, err := os.ReadFile(s.path)
	if err != nil {
		return fmt.Errorf("metadata_proxy_shared_secret: %w", err)
	}
	line, _, _ := bytes.Cut(content, []byte("\n"))
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return fmt.Errorf("metadata_proxy_shared_secret: %s is empty", s.path)
	}
	s.was, s.secret = info, line
	return nil
}
