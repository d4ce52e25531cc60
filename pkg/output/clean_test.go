package output

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"web-1 [fd00::1]:80": "web-1 [fd00::1]:80", "": "", "grün, 東京": "grün, 東京", "\ufffd": "\ufffd",
		"a\x1b[2Jb": `a\u001b[2Jb`, "a\nb\tc\r": `a\nb\tc\u000d`, "\x7f": `\u007f`, "\u0085\u009b31m": `\u0085\u009b31m`,
		"a\u2028b\u2029": `a\u2028b\u2029`, "\u202ae\u202e": `\u202ae\u202e`, "\u2066\u2069": `\u2066\u2069`, "\x9bm": `\x9bm`, "ü\xff": `ü\xff`,
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\u202e\n")
	f.Fuzz(func(t *testing.T, in string) {
		out := Clean(in)
		if !utf8.ValidString(out) || Clean(out) != out {
			t.Errorf("%q becomes %q", in, out)
		}
		for _, r := range out {
			if commands(r) {
				t.Errorf("%q has %U", out, r)
			}
		}
	})
}

func TestPrintf(t *testing.T) {
	var b bytes.Buffer
	Printf(&b, "%-6s|%5d|%v|%x|%[1]q\n", "a\nb", 7, errors.New("c\x1bd"), []byte{27})
	Println(&b, "x\ny", 3)
	if got, want := b.String(), "a\\nb   |    7|c\\u001bd|1b|\"a\\nb\"\n"; !bytes.HasPrefix(b.Bytes(), []byte(want)) {
		t.Errorf("%q, want %q", got, want)
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("x\\ny 3\n")) {
		t.Errorf("%q", b.String())
	}
}
