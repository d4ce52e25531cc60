package match

import (
	"fmt"
	"slices"
	"strings"
)

// Token is a word of a match, or a symbol such as &&.
type Token struct {
	Kind Kind
	Text string
}

// Kind is what a token is.
type Kind uint8

// The kinds of token.
const (
	// End is of no token: the zero value is what follows the last one.
	End Kind = iota
	Symbol
	Name     // ip4.dst, $set and @group: with what begins it
	Constant // 10, 0x800, 10.0.0.0/8, fe80::1, 02:00:00:00:00:01
	Quoted   // without its quotes
)

// longest bounds a match: Open vSwitch takes longer ones, and nobody writes them.
const longest = 64 << 10

// Tokens reads the tokens of a match.
func Tokens(s string) ([]Token, error) {
	if len(s) > longest {
		return nil, fmt.Errorf("a match of %d bytes", len(s))
	}
	var out []Token
	for s = strings.TrimLeft(s, " \t\r\n"); s != ""; s = strings.TrimLeft(s, " \t\r\n") {
		t, n, err := next(s)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		s = s[n:]
	}
	return out, nil
}

var symbols = []string{"&&", "||", "==", "!=", "<=", ">=", "..", "<", ">", "!", "(", ")", "{", "}", ",", "[", "]"}

// next reads the first token of a text that does not begin with a blank.
func next(s string) (Token, int, error) {
	for _, sym := range symbols {
		if strings.HasPrefix(s, sym) {
			return Token{Symbol, sym}, len(sym), nil
		}
	}
	if s[0] == '"' {
		n := strings.IndexByte(s[1:], '"')
		if n < 0 || strings.Contains(s[1:n+1], `\`) {
			return Token{}, 0, fmt.Errorf("a string that has no end, or an escape: %.20q", s)
		}
		return Token{Quoted, s[1 : n+1]}, n + 2, nil
	}
	n := strings.IndexFunc(s, func(r rune) bool { return !wordly(r) })
	if n < 0 {
		n = len(s)
	}
	if s[0] == '$' || s[0] == '@' {
		n = 1 + strings.IndexFunc(s[1:]+" ", func(r rune) bool { return !wordly(r) || r == ':' || r == '/' })
		if n < 2 {
			return Token{}, 0, fmt.Errorf("%c without a name", s[0])
		}
		return Token{Name, s[:n]}, n, nil
	}
	if n == 0 {
		return Token{}, 0, fmt.Errorf("%.10q is no part of a match", s)
	}
	word := s[:n]
	if isConstant(word) {
		return Token{Constant, word}, n, nil
	}
	return Token{Name, word}, n, nil
}

// wordly is what names and constants are made of.
func wordly(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == ':' || r == '/'
}

// isConstant tells constants from names: they begin with a digit, or are IPv6 or Ethernet
// addresses, which alone have colons.
func isConstant(word string) bool {
	return word[0] >= '0' && word[0] <= '9' || strings.Contains(word, ":")
}

// AddressSets are the names of the address sets that a match refers to, sorted. Of a match that
// is no sequence of tokens there are none.
func AddressSets(match string) []string {
	tokens, err := Tokens(match)
	if err != nil {
		return nil
	}
	var out []string
	for _, t := range tokens {
		if t.Kind == Name && t.Text[0] == '$' {
			out = append(out, t.Text[1:])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
