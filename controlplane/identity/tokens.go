package identity

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

// Token is one that a file of tokens has, with what its holder may do.
type Token struct {
	// Token is what a client sends in X-Auth-Token.
	Token configfile.Secret `yaml:"token"`
	// Project is the ID of the project that the holder acts for.
	Project string `yaml:"project"`
	// Roles are admin, member or reader.
	Roles []Role `yaml:"roles"`
}

// Role is what a holder may do: everything, change what is of the project, or read it.
type Role string

// The roles.
const (
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
	RoleReader Role = "reader"
)

// UnmarshalText reads a role.
func (r *Role) UnmarshalText(b []byte) error {
	return configfile.OneOf(r, b, RoleAdmin, RoleMember, RoleReader)
}

// Tokens lets in who has a token of a file, which is read again when it has changed. A file that
// cannot be read leaves the tokens of before.
type Tokens struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	info    os.FileInfo // of the file that was read
	callers map[[sha256.Size]byte]Caller
	told    string // what was said last of the file
}

// NewTokens reads the file.
func NewTokens(path string, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, log: log}
	return t, t.read()
}

// read takes the file in, if it is another one than before.
func (t *Tokens) read() error {
	info, err := os.Stat(t.path)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	if t.info != nil && os.SameFile(info, t.info) && info.ModTime().Equal(t.info.ModTime()) && info.Size() == t.info.Size() {
		return nil
	}
	var file struct {
		Tokens []Token `yaml:"tokens"`
	}
	err = configfile.Load(t.path, &file, func(k *configfile.Checker) {
		if len(file.Tokens) == 0 {
			k.FailAt("tokens", "has no token: nobody could call the APIs")
		}
		seen := map[string]int{}
		for i, token := range file.Tokens {
			at := fmt.Sprintf("tokens[%d]", i)
			if text := token.Token.Reveal(); strings.TrimSpace(text) != text {
				k.FailAt(at, "has spaces around its token, which no client sends")
			}
			if token.Token.IsZero() {
				k.FailAt(at, "needs a token")
			} else if before, twice := seen[token.Token.Reveal()]; twice {
				k.FailAt(at, "has the token of tokens[%d]", before)
			}
			seen[token.Token.Reveal()] = i
			if token.Project == "" && !slices.Contains(token.Roles, RoleAdmin) {
				k.FailAt(at, "needs a project, or the role admin")
			}
		}
	})
	if err != nil {
		return err
	}
	callers := map[[sha256.Size]byte]Caller{}
	for _, token := range file.Tokens {
		callers[sha256.Sum256([]byte(token.Token.Reveal()))] = Caller{
			Project: token.Project, Admin: slices.Contains(token.Roles, RoleAdmin), Writer: slices.Contains(token.Roles, RoleMember),
		}
	}
	t.callers, t.info = callers, info
	t.log.Info("tokens are read", "file", t.path, "tokens", len(callers))
	return nil
}

// Authenticate implements Authenticator.
func (t *Tokens) Authenticate(r *http.Request) (Caller, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := ""
	if err := t.read(); err != nil {
		if told = err.Error(); told != t.told {
			t.log.Warn("the file of tokens cannot be read; the last ones stay in use", "error", err)
		}
	}
	t.told = told
	// By its hash: how long it takes to find one tells nothing of it.
	caller, known := t.callers[sha256.Sum256([]byte(r.Header.Get("X-Auth-Token")))]
	if !known {
		return Caller{}, ErrUnknownToken
	}
	return caller, nil
}

// ErrUnknownToken is the error of a request without a token that is known. Refuse answers it.
var ErrUnknownToken = errors.New("the request has no token that is known")

const needsAuthentication = `{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}`

// Refuse answers as Keystone's middleware does.
func Refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("WWW-Authenticate", "Keystone")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, needsAuthentication) // a client that has gone needs no answer
}
