package identity

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Minute)
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	write("tokens:\n- {token: one, project: alpha, roles: [member, reader]}\n- {token: two, roles: [admin]}\n- {token: three, project: beta, roles: [reader]}\n")
	log := new(strings.Builder)
	tokens, err := NewTokens(path, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	check := func(token string, want Caller, ok bool) {
		t.Helper()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Auth-Token", token)
		if got, err := tokens.Authenticate(r); got != want || (err == nil) != ok {
			t.Errorf("token %q: %+v, %v", token, got, err)
		}
	}
	check("one", Caller{Project: "alpha", Writer: true}, true)
	check("two", Caller{Admin: true}, true)
	check("three", Caller{Project: "beta"}, true)
	check("", Caller{}, false)
	check("four", Caller{}, false)
	write("tokens:\n- {token: four, project: alpha, roles: [owner]}\n")
	check("one", Caller{Project: "alpha", Writer: true}, true)
	check("one", Caller{Project: "alpha", Writer: true}, true)
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "owner") {
		t.Errorf("the log says %d times: %s", n, log)
	}
	if strings.Contains(log.String(), "four") {
		t.Errorf("the log has a token: %s", log)
	}
	write("tokens:\n- {token: four, project: alpha, roles: [member]}\n# longer than before, so that it is another file\n")
	check("one", Caller{}, false)
	check("four", Caller{Project: "alpha", Writer: true}, true)

	for _, text := range []string{"", "tokens: []\n", "tokens:\n- {token: four, project: alpha}\n- {token: four, project: beta, roles: [member]}\n"} {
		write(text)
		check("four", Caller{Project: "alpha", Writer: true}, true)
	}
	if !strings.Contains(log.String(), "has no token") || !strings.Contains(log.String(), "has the token of tokens[0]") {
		t.Errorf("the log of files without tokens, and with one twice: %s", log)
	}
	write("tokens:\n- {project: alpha}\n- {token: x, roles: [reader]}\n")
	if _, err := NewTokens(path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "needs a token") || !strings.Contains(err.Error(), "needs a project") {
		t.Errorf("mistakes: %v", err)
	}
}
