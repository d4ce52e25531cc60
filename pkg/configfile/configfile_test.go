package configfile

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// settings is the file of a program that is none.
type settings struct {
	Mode    mode             `yaml:"mode"`
	Server  server           `yaml:"server"`
	Zones   map[uint8]zone   `yaml:"zones"`
	Listen  string           `yaml:"listen"`
	Socket  string           `yaml:"socket"`
	Enabled bool             `yaml:"enabled"`
	Wait    Duration         `yaml:"wait"`
	Key     Secret           `yaml:"key"`
	Accept  []netip.Prefix   `yaml:"accept"`
	Names   map[string][]int `yaml:"names"`
}

type server struct {
	ASN    uint32 `yaml:"asn"`
	Peers  []peer `yaml:"peers"`
	MaxAge string `yaml:"maxAge"`
}

type peer struct {
	Address netip.Addr `yaml:"address"`
	Port    uint16     `yaml:"port"`
	ASN     uint32     `yaml:"asn"`
}

func (p *peer) SetDefaults() { p.Port = 179 }

type zone struct {
	Mode mode `yaml:"mode"`
}

type mode string

func (m *mode) UnmarshalText(b []byte) error { return OneOf(m, b, "fast", "slow") }

// parse reads a text as the program would.
func parse(text string) (*settings, error) {
	s := &settings{Mode: "slow", Listen: ":1", Socket: "/run/s.sock", Wait: Seconds(3)}
	return s, Parse("f.yaml", []byte(text), s, s.check)
}

func (s *settings) check(c *Checker) {
	for i := range s.Server.Peers {
		p := &s.Server.Peers[i]
		if p.ASN == 0 {
			p.ASN = s.Server.ASN
		}
		if !p.Address.IsValid() {
			c.FailAt(fmt.Sprintf("server.peers[%d].address", i), "missing")
		}
	}
	if s.Server.ASN == 0 {
		c.FailAt("server.asn", "missing")
	}
	for n := range s.Zones {
		if n == 0 {
			c.FailAt("zones.0", "not a zone")
		}
	}
	c.ListenAddress("listen", s.Listen)
	c.Socket("socket", s.Socket)
}

const smallest = "server:\n  asn: 7\n  peers:\n    - address: 192.0.2.1\n" // 4 lines

const full = `
mode: fast
server: {asn: 4200000000, peers: [{address: "2001:db8::1", port: 1}, {address: 192.0.2.1, asn: 3}]}
zones:
  1: {mode: slow}
  255: {}
listen: "[::1]:9476"
socket: /run/a.sock
enabled: on
wait: 1m30s
key: hush
accept: [192.0.2.1, "2001:db8::/32"]
`

func TestValues(t *testing.T) {
	got, err := parse(full)
	if err != nil {
		t.Fatal(err)
	}
	want := &settings{
		Mode: "fast",
		Server: server{ASN: 4200000000, Peers: []peer{
			{Address: netip.MustParseAddr("2001:db8::1"), Port: 1, ASN: 4200000000}, {Address: netip.MustParseAddr("192.0.2.1"), Port: 179, ASN: 3},
		}},
		Zones:  map[uint8]zone{1: {Mode: "slow"}, 255: {}},
		Listen: "[::1]:9476", Socket: "/run/a.sock", Enabled: true, Wait: Duration{Duration: 90 * time.Second}, Key: Secret{"hush"},
		Accept: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/32")},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.AllowUnexported(Secret{})); diff != "" {
		t.Error(diff)
	}
}

// What is not given has its default, and so has what is given without a value.
func TestDefaults(t *testing.T) {
	for _, text := range []string{smallest, smallest + "mode:\nlisten: null\nwait: ~\n"} {
		s, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if s.Mode != "slow" || s.Listen != ":1" || s.Wait != Seconds(3) || s.Server.Peers[0].Port != 179 || s.Server.Peers[0].ASN != 7 {
			t.Errorf("%s%+v", text, s)
		}
	}
}

// mistakes are files that are refused, and why: each has to be how one line of the error begins.
var mistakes = map[string]struct {
	text string
	want []string
}{
	"empty":         {"", []string{"f.yaml: server.asn: missing"}},
	"not yaml":      {"server:\n  asn: [", []string{"f.yaml:"}},
	"tab":           {"server:\n\tasn: 1\n", []string{"f.yaml:2: not YAML"}},
	"two documents": {smallest + "---\nmode: fast\n", []string{"f.yaml:5: more than one document"}},
	"unknown key":   {smallest + "  asnn: 3\n", []string{"f.yaml:5:3: server.asnn: unknown key; did you mean asn?"}},
	"snake case":    {smallest + "  max_age: 3\n", []string{"f.yaml:5:3: server.max_age: unknown key; did you mean maxAge?"}},
	"far off":       {smallest + "plugins: []\n", []string{"f.yaml:5:1: plugins: unknown key; at the top these are known: mode, server, zones, "}},
	"far off below": {smallest + "      secret: x\n", []string{"f.yaml:5:7: server.peers[0].secret: unknown key; in server.peers[0] these are known: address, port, asn"}},
	"twice":         {smallest + "  asn: 3\n", []string{"f.yaml:5:3: server.asn: given twice, first in line 2"}},
	"bad address":   {"server:\n  asn: 1\n  peers: [{address: 192.0.2}]\n", []string{`f.yaml:3:21: server.peers[0].address: "192.0.2" is not an IP address; write `}},
	"bad prefix":    {smallest + "accept: [192.0.2.0/24, 2001:db8::/129]\n", []string{`f.yaml:5:24: accept[1]: "2001:db8::/129" is not an address or prefix; write `}},
	"range":         {smallest + "      port: 70000\n", []string{"f.yaml:5:13: server.peers[0].port: 70000 is too large; use 0 to 65535"}},
	"negative":      {"server: {asn: -1}", []string{`f.yaml:1:15: server.asn: "-1" is not a whole number; use 0 to 4294967295`}},
	"word":          {smallest + "mode: quick\n", []string{`f.yaml:5:7: mode: "quick" is not allowed; use fast, slow`}},
	"bool":          {smallest + "enabled: yes\n", []string{`f.yaml:5:10: enabled: "yes" is neither true nor false`}},
	"duration":      {smallest + "wait: 90\n", []string{`f.yaml:5:7: wait: "90" is not a duration`}},
	"no duration":   {smallest + "wait: -1s\n", []string{`f.yaml:5:7: wait: "-1s" is negative`}},
	"list":          {"server:\n  asn: 1\n  peers: {address: 192.0.2.1}\n", []string{"f.yaml:3:10: server.peers: want a list, found keys with values"}},
	"section":       {"server: 5\n", []string{"f.yaml:1:9: server: want keys below (asn, peers, maxAge), found \"5\"", "f.yaml:1:9: server.asn: missing"}},
	"map":           {smallest + "zones: [1]\n", []string{"f.yaml:5:8: zones: want keys with values, found a list"}},
	"one value":     {smallest + "mode: [fast]\n", []string{"f.yaml:5:7: mode: want one value, found a list"}},
	"one number":    {"server: {asn: {a: 1}}\n", []string{"f.yaml:1:15: server.asn: want one value, found keys with values"}},
	"alias":         {smallest + "key: &a fast\nmode: *a\n", []string{"f.yaml:6:7: mode: YAML aliases are not supported"}},
	"key of a map":  {smallest + "zones: {red: {}}\n", []string{`f.yaml:5:9: zones.red: "red" is not a whole number`}},
	"large key":     {smallest + "zones: {256: {}}\n", []string{"f.yaml:5:9: zones.256: 256 is too large; use 0 to 255"}},
	"key twice":     {smallest + "zones: {1: {}, 01: {}}\n", []string{"f.yaml:5:16: zones.01: given twice"}},
	"rule of a key": {smallest + "zones: {0: {mode: fast}}\n", []string{"f.yaml:5:9: zones.0: not a zone"}},
	"rule nearby":   {"server:\n  asn: 1\n  peers: [{port: 5}]\n", []string{"f.yaml:3:11: server.peers[0].address: missing"}},
	"no such value": {smallest + "names: {a: [1]}\n", []string{"f.yaml:5:13: names.a[0]: no value of type int can be given here"}},
	"listen name":   {smallest + "listen: \"localhost:1\"\n", []string{`f.yaml:5:9: listen: "localhost:1" is not an address to listen on`}},
	"listen port":   {smallest + "listen: \"[::1]:x\"\n", []string{`f.yaml:5:9: listen: "[::1]:x" is not an address to listen on`}},
	"relative path": {smallest + "socket: s.sock\n", []string{`f.yaml:5:9: socket: "s.sock" is not an absolute path`}},
	"longer path":   {smallest + "socket: /run/../s.sock\n", []string{`f.yaml:5:9: socket: "/run/../s.sock" is not an absolute path in its shortest form`}},
	"long socket":   {smallest + "socket: /" + strings.Repeat("a", 107) + "\n", []string{"f.yaml:5:9: socket: 108 characters; a socket's path has at most 107"}},
	// A value that could not be read breaks no rule as well; the others are found.
	"several": {"foo: 1\nserver: {asn: x, peers: [{address: y}, {}]}\nmode: z\n", []string{
		"f.yaml:1:1: foo: unknown key", `f.yaml:2:15: server.asn: "x"`, `f.yaml:2:36: server.peers[0].address: "y"`,
		"f.yaml:2:40: server.peers[1].address: missing", `f.yaml:3:7: mode: "z"`}},
}

func TestMistakes(t *testing.T) {
	for name, tc := range mistakes {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.text)
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("want Errors, got %v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tc.want) || len(errs) != len(tc.want) {
				t.Fatalf("%d mistakes, want %d:\n%v", len(errs), len(tc.want), err)
			}
			for i, w := range tc.want {
				if !strings.HasPrefix(lines[i], w) {
					t.Errorf("%s\nwant %s", lines[i], w)
				}
			}
			var one *Error
			if !errors.As(err, &one) || one != errs[0] {
				t.Errorf("the first mistake is %v", one)
			}
		})
	}
}

func TestEffectiveHidesSecretsAndReadsBack(t *testing.T) {
	s, err := parse(full)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Effective(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(b), fmt.Sprintf("%v %+v %#v", s.Key, s, s.Key)} {
		if strings.Contains(shown, "hush") || !strings.Contains(shown, Redacted) {
			t.Errorf("secret in:\n%s", shown)
		}
	}
	again, err := parse(string(b))
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	b2, err := Effective(again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(b2)); diff != "" {
		t.Error(diff)
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	load := func() (*settings, error) {
		s := &settings{Listen: ":1", Socket: "/s"}
		return s, Load(file, s, s.check)
	}
	if _, err := load(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(smallest)
	if s, err := load(); err != nil || s.Server.ASN != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	write(smallest + "mode: quick\n")
	if _, err := load(); err == nil || !strings.HasPrefix(err.Error(), file+":5:7: mode: ") {
		t.Error(err)
	}
	write(strings.Repeat("#", maxFile+1))
	if _, err := load(); err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("a long file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(smallest))
	f.Add([]byte(full))
	f.Add([]byte("x: &a [*a]\n? [1, 2] : 3\n<<: {a: 1}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse(string(text))
		if err != nil {
			var errs Errors
			if !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("not Errors: %v", err)
			}
			return
		}
		s.Key = Secret{}
		b, err := Effective(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(string(b)); err != nil {
			t.Fatalf("what is printed is refused: %v\n%s", err, b)
		}
	})
}
