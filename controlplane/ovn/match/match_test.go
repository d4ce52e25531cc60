package match

import (
	"slices"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		`inport==@pg_a&&ip4.dst=={$b.c,10.0.0.0/8}`: "inport:name ==: @pg_a:name &&: ip4.dst:name ==: {: $b.c:name ,: 10.0.0.0/8:constant }:",
		`!( 70<=tcp.dst[0..15] )`:                   "!: (: 70:constant <=: tcp.dst:name [: 0..15:constant ]: ):",
		`"a b" != 0x800 || fe80::1`:                 "a b:quoted !=: 0x800:constant ||: fe80::1:constant",
	} {
		tokens, err := Tokens(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var got []string
		for _, one := range tokens {
			got = append(got, one.Text+":"+map[Kind]string{Name: "name", Constant: "constant", Quoted: "quoted"}[one.Kind])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", text, strings.Join(got, " "), want)
		}
	}
	for _, text := range []string{`"no end`, `"an \" escape"`, "$", "@ pg", "a & b", "ü", strings.Repeat("ip4 || ", 10000)} {
		if got, err := Tokens(text); err == nil {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

func TestAddressSets(t *testing.T) {
	if got := AddressSets("ip4.dst == {$b, $a.c} || ip4.src == $b"); !slices.Equal(got, []string{"a.c", "b"}) {
		t.Errorf("sets %q", got)
	}
	if got := AddressSets(`ip4.dst == $a && inport == "no end`); got != nil {
		t.Errorf("sets %q of what is no match", got)
	}
}

// FuzzTokens: the tokens of a match are its text, but for blanks.
func FuzzTokens(f *testing.F) {
	for _, m := range []string{`inport == @pg_a && ip4.dst == $some`, `!(ip4.src == {$some, 10.0.0.1} || ct.new)`, `70 <= tcp.dst[0..15] < 80`} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := Tokens(text)
		if err != nil || strings.Contains(text, `"`) {
			return
		}
		var got strings.Builder
		for _, one := range tokens {
			got.WriteString(one.Text)
		}
		blank := strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "")
		if got.String() != blank.Replace(text) {
			t.Errorf("%q is %v", text, tokens)
		}
	})
}
