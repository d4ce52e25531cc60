package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// commands tells whether a terminal may take a character for a command, or show the text
// around it in another order: control characters (C0, DEL, C1), the separators of lines and
// paragraphs, and those that change the direction of text.
func commands(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// escape writes text with what keep does not keep of such characters, and what is no UTF-8, as
// Go and JSON write them.
func escape(s string, keep func(rune) bool) string {
	bad := func(r rune) bool { return r == utf8.RuneError || commands(r) && !keep(r) }
	at := strings.IndexFunc(s, bad)
	if at < 0 {
		return s
	}
	var out strings.Builder
	out.WriteString(s[:at])
	for s = s[at:]; s != ""; {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, s[0])
		case r == utf8.RuneError || !bad(r):
			out.WriteString(s[:n])
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		s = s[n:]
	}
	return out.String()
}

// Clean is text for a terminal: on one line, and without a character that the terminal would
// take for a command. Names of OVN's rows and texts of BGP neighbours are somebody else's.
func Clean(s string) string { return escape(s, func(rune) bool { return false }) }

// Writer has what a program prints go to a terminal without such characters, but for ends of lines and
// tabulators. In JSON the escapes are those of JSON.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ to io.Writer }

func (w writer) Write(b []byte) (int, error) {
	if _, err := io.WriteString(w.to, escape(string(b), func(r rune) bool { return r == '\n' || r == '\t' })); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Printf is fmt.Fprintf with its arguments clean: the ends of lines are those of the format.
func Printf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, cleaned(args)...)
}

// Println is fmt.Fprintln with its arguments clean.
func Println(w io.Writer, args ...any) (int, error) { return fmt.Fprintln(w, cleaned(args)...) }

func cleaned(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = argument{a}
	}
	return out
}

// argument is formatted as what it holds, and clean.
type argument struct{ value any }

// Format writes it.
func (a argument) Format(f fmt.State, verb rune) {
	_, _ = io.WriteString(f, Clean(fmt.Sprintf(fmt.FormatString(f, verb), a.value)))
}
