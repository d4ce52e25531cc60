package acl

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn/match"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Expr is a match that was read. The zero value is unknown.
type Expr struct{ root node }

// node is a part of a match. not asks for its opposite.
type node interface {
	eval(p *question, not bool) Truth
	joint(p *pair, not bool) joint
}

// The nodes: all or any of others, their opposite, a comparison, a field alone.
type (
	all      []node
	some     []node
	opposite struct{ of node }
	compare  struct {
		field string
		op    string
		with  []value
	}
	predicate struct{ field string }
	fixed     Truth
)

// value is a constant. Which of its parts are set depends on what it is.
type value struct {
	text   string // of a quoted name, a $set or an @group, with what begins it
	number uint64
	prefix netip.Prefix
	mac    intent.MAC
	kind   valueKind
}

type valueKind uint8

const (
	isNumber valueKind = iota + 1
	isPrefix
	isMAC
	isText
	isSet
	isGroup
	isOther // an address with a mask that is no prefix, …
)

// deepest bounds parentheses.
const deepest = 100

// Parse reads a match. What it refuses OVN may know: such a match is unknown.
func Parse(text string) (Expr, error) {
	tokens, err := match.Tokens(text)
	if err != nil {
		return Expr{}, err
	}
	p := &parser{tokens: tokens}
	root, err := p.either(0)
	if err == nil && p.peek().Kind != match.End {
		err = fmt.Errorf("%q where the match should end", p.peek().Text)
	}
	if err != nil {
		return Expr{}, err
	}
	return Expr{root}, nil
}

type parser struct{ tokens []match.Token }

func (p *parser) peek() match.Token {
	if len(p.tokens) == 0 {
		return match.Token{}
	}
	return p.tokens[0]
}

func (p *parser) take() match.Token {
	t := p.peek()
	if t.Kind != match.End {
		p.tokens = p.tokens[1:]
	}
	return t
}

// is takes the symbol if it is next.
func (p *parser) is(sym string) bool {
	if t := p.peek(); t.Kind != match.Symbol || t.Text != sym {
		return false
	}
	p.take()
	return true
}

// either reads parts that are joined by && or by ||.
func (p *parser) either(depth int) (node, error) {
	if depth > deepest {
		return nil, errors.New("too many parentheses")
	}
	first, err := p.one(depth)
	if err != nil {
		return nil, err
	}
	parts := []node{first}
	joint := ""
	for {
		t := p.peek()
		if t.Kind != match.Symbol || t.Text != "&&" && t.Text != "||" {
			break
		}
		if joint != "" && joint != t.Text {
			return nil, errors.New("&& and || are mixed without parentheses")
		}
		joint = p.take().Text
		part, err := p.one(depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if joint == "||" {
		return some(parts), nil
	}
	return all(parts), nil
}

func (p *parser) one(depth int) (node, error) {
	switch {
	case p.is("!"):
		if depth > deepest {
			return nil, errors.New("too many !")
		}
		of, err := p.one(depth + 1)
		return opposite{of}, err
	case p.is("("):
		of, err := p.either(depth + 1)
		if err == nil && !p.is(")") {
			err = errors.New("a parenthesis is not closed")
		}
		return of, err
	}
	t := p.peek()
	switch {
	case t.Kind == match.Constant && (len(p.tokens) < 2 || !isRelation(p.tokens[1])) && (t.Text == "1" || t.Text == "0"):
		p.take()
		return fixed(truth(t.Text == "1")), nil
	case t.Kind == match.Name && t.Text[0] != '$' && t.Text[0] != '@':
		return p.field()
	}
	return p.turned()
}

// field reads what begins with a field.
func (p *parser) field() (node, error) {
	f, err := p.operand()
	if err != nil {
		return nil, err
	}
	if !isRelation(p.peek()) {
		return predicate{f}, nil
	}
	op := p.take().Text
	with, err := p.values()
	return compare{f, op, with}, err
}

// turned reads "constant relation field", and with another relation a range.
func (p *parser) turned() (node, error) {
	low, err := p.values()
	if err != nil {
		return nil, err
	}
	if !isRelation(p.peek()) {
		return nil, errors.New("a constant that is compared with nothing")
	}
	op := p.take().Text
	if p.peek().Kind != match.Name {
		return nil, fmt.Errorf("%q where a field should be", p.peek().Text)
	}
	f, err := p.operand()
	if err != nil {
		return nil, err
	}
	first := compare{f, mirror[op], low}
	if !isRelation(p.peek()) {
		return first, nil
	}
	op = p.take().Text
	high, err := p.values()
	return all{first, compare{f, op, high}}, err
}

var mirror = map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func isRelation(t match.Token) bool { return t.Kind == match.Symbol && mirror[t.Text] != "" }

// operand reads a field's name. Of bits of a field, and of functions, nothing is known:
// they are read as a field of a name that no packet has.
func (p *parser) operand() (string, error) {
	f := p.take().Text
	for _, brackets := range [][2]string{{"[", "]"}, {"(", ")"}} {
		if !p.is(brackets[0]) {
			continue
		}
		for !p.is(brackets[1]) {
			if t := p.take(); t.Kind == match.End || t.Kind == match.Symbol && t.Text != ".." {
				return "", fmt.Errorf("what follows %s is not understood", f)
			}
		}
		f += brackets[0]
	}
	return f, nil
}

// values reads a constant, or a set of constants.
func (p *parser) values() ([]value, error) {
	if !p.is("{") {
		v, err := p.value()
		return []value{v}, err
	}
	var out []value
	for !p.is("}") {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		p.is(",") // OVN does not ask for commas
	}
	return out, nil
}

func (p *parser) value() (value, error) {
	switch t := p.take(); {
	case t.Kind == match.Quoted:
		return value{kind: isText, text: t.Text}, nil
	case t.Kind == match.Name && t.Text[0] == '$':
		return value{kind: isSet, text: t.Text[1:]}, nil
	case t.Kind == match.Name && t.Text[0] == '@':
		return value{kind: isGroup, text: t.Text[1:]}, nil
	case t.Kind == match.Constant:
		return parseConstant(t.Text), nil
	default:
		return value{}, fmt.Errorf("%q where a constant should be", t.Text)
	}
}

// parseConstant reads a number or an address. What is neither is of another kind, which
// equals nothing that is known.
func parseConstant(s string) value {
	if n, err := strconv.ParseUint(s, 0, 64); err == nil && !strings.Contains(s, "_") && (s == "0" || s[0] != '0' || s[1] == 'x') {
		return value{kind: isNumber, number: n}
	}
	if m, err := intent.ParseMAC(s); err == nil {
		return value{kind: isMAC, mac: m}
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" && !a.Is4In6() {
		return value{kind: isPrefix, prefix: netip.PrefixFrom(a, a.BitLen())}
	}
	if p, err := netip.ParsePrefix(s); err == nil && !p.Addr().Is4In6() {
		return value{kind: isPrefix, prefix: p.Masked()}
	}
	return value{kind: isOther}
}
