package neutron

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// defaults is the section of options without a group.
const defaults = "DEFAULT"

// name is an option's.
type name struct{ section, key string }

func (n name) String() string { return "[" + n.section + "] " + n.key }

// Options are those of one or more files. The zero value has none.
type Options struct {
	values map[name]string
	files  []string
}

// Read adds those of a file. Of an option that is there twice the later one counts, as
// with oslo.config.
func (o *Options) Read(file, text string) error {
	if o.values == nil {
		o.values = map[name]string{}
	}
	o.files = append(o.files, file)
	p := parser{file: file, into: o.values}
	for line := range strings.Lines(text) {
		p.line++
		if err := p.take(strings.TrimRight(line, " \t\r\n\f\v")); err != nil {
			return err
		}
	}
	p.flush()
	return nil
}

// parser is oslo_config.iniparser.BaseParser.
type parser struct {
	file    string
	line    int
	into    map[name]string
	section string
	// key is that of an option whose value may go on; empty: there is none.
	key   string
	value []string
}

func (p *parser) fail(text string) error { return fmt.Errorf("%s:%d: %s", p.file, p.line, text) }

func (p *parser) take(line string) error {
	switch {
	case line == "":
		p.flush()
		return nil
	case line[0] == ' ' || line[0] == '\t':
		if p.key == "" {
			return p.fail("a continued line has no option before it; remove the spaces at its beginning")
		}
		p.value = append(p.value, strings.TrimLeft(line, " \t"))
		return nil
	}
	p.flush()
	switch line[0] {
	case '[':
		section, closed := strings.CutSuffix(line[1:], "]")
		if !closed || section == "" {
			return p.fail("a section is written as [NAME]")
		}
		p.section = groupName(section)
		return nil
	case '#', ';':
		return nil
	}
	at := strings.IndexAny(line, "=:")
	if at < 0 {
		return p.fail("neither a section nor an option; an option is written as KEY = VALUE")
	}
	key := strings.TrimSpace(line[:at])
	if key == "" {
		return p.fail("an option has no name")
	}
	if p.section == "" {
		return p.fail("an option is in no section; write [DEFAULT] before it")
	}
	p.key, p.value = strings.ReplaceAll(key, "-", "_"), []string{unquoted(strings.TrimSpace(line[at+1:]))}
	return nil
}

// groupName is a section's as oslo.config compares it.
func groupName(section string) string {
	if strings.EqualFold(section, defaults) {
		return defaults
	}
	return strings.ToLower(section)
}

func unquoted(v string) string {
	if n := len(v); n > 1 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
		return v[1 : n-1]
	}
	return v
}

func (p *parser) flush() {
	if p.key != "" {
		p.into[name{p.section, p.key}] = strings.Join(p.value, "\n")
	}
	p.key, p.value = "", nil
}

// names are all options, in order.
func (o *Options) names() []name {
	return slices.SortedFunc(maps.Keys(o.values), func(a, b name) int { return strings.Compare(a.String(), b.String()) })
}

// reference is another option in a value: $NAME, ${NAME} or ${GROUP.NAME}; $$ and \$ are
// the character.
var reference = regexp.MustCompile(`\\\$|\$(?:\$|[A-Za-z_][A-Za-z0-9_.]*|\{[A-Za-z_][A-Za-z0-9_.]*\})`)

// mostReferences is how many options one value may stand for, and they in turn.
const mostReferences = 100

// get is the value of an option, with the options that it refers to.
func (o *Options) get(n name) (value string, given bool, err error) {
	raw, given := o.values[n]
	if !given {
		return "", false, nil
	}
	left := mostReferences
	value, err = o.expand(n.section, raw, &left)
	if err != nil {
		return "", true, fmt.Errorf("%s %w", n, err)
	}
	return value, true, nil
}

func (o *Options) expand(section, raw string, left *int) (out string, err error) {
	out = reference.ReplaceAllStringFunc(raw, func(m string) string {
		if m == `\$` || m == "$$" || err != nil {
			return "$"
		}
		if *left--; *left < 0 {
			err = errors.New("refers to itself, or to too many others")
			return ""
		}
		word := strings.Trim(m, "${}")
		there, inner := o.find(section, word)
		if !there {
			err = fmt.Errorf("refers to %s, which is not in these files; write its value", word)
			return ""
		}
		var value string
		value, err = o.expand(section, inner, left)
		return value
	})
	return out, err
}

// find looks for what a reference names: in the group of the value, or without a group.
func (o *Options) find(section, word string) (bool, string) {
	if group, key, grouped := strings.Cut(word, "."); grouped {
		v, ok := o.values[name{groupName(group), key}]
		return ok, v
	}
	for _, s := range []string{section, defaults} {
		if v, ok := o.values[name{s, word}]; ok {
			return true, v
		}
	}
	return false, ""
}
