package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

func TestFormatsAndLevels(t *testing.T) {
	for _, tc := range []struct {
		format Format
		want   string
	}{{FormatText, "msg=hello vni=1001"}, {FormatJSON, `"msg":"hello","vni":1001`}} {
		var b bytes.Buffer
		log := New(&b, Config{Level: LevelWarn, Format: tc.format})
		log.Info("hello", "vni", 1001)
		if b.Len() != 0 {
			t.Errorf("%s: below the level: %s", tc.format, &b)
		}
		log.Warn("hello", "vni", 1001)
		if !strings.Contains(b.String(), tc.want) {
			t.Errorf("%s: %s", tc.format, &b)
		}
	}
}

// What peers and tenants have named is no command to the terminal that shows the log, and no line of its own.
func TestHostileText(t *testing.T) {
	const hostile = "a\x1b[2J\x7f\u009b31m\u2028\u202e\nlevel=ERROR"
	for _, format := range []Format{FormatText, FormatJSON} {
		var b bytes.Buffer
		New(&b, Config{Level: LevelWarn, Format: format}).With(hostile, hostile).Warn(hostile, hostile, hostile, "error", errors.New(hostile))
		line, rest, _ := strings.Cut(b.String(), "\n")
		if rest != "" {
			t.Errorf("%s: more than a line: %q", format, b.String())
		}
		if i := strings.IndexFunc(line, func(r rune) bool {
			return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
		}); i >= 0 {
			t.Errorf("%s: a terminal gets %q", format, line[i:])
		}
	}
}

func TestConfigOfAFile(t *testing.T) {
	none := func(*configfile.Checker) {}
	for text, want := range map[string]Config{
		"{level: debug, format: json}": {LevelDebug, FormatJSON},
		"{level: info, format: text}":  {LevelInfo, FormatText},
		"level: warn":                  {LevelWarn, FormatText},
		"level: error":                 {LevelError, FormatText},
	} {
		c := Config{LevelInfo, FormatText}
		if err := configfile.Parse("f.yaml", []byte(text), &c, none); err != nil || c != want {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for text, want := range map[string]string{
		"level: loud": `f.yaml:1:8: level: "loud" is not allowed; use debug, info, warn, error`,
		"format: xml": `f.yaml:1:9: format: "xml" is not allowed; use text, json`,
	} {
		if err := configfile.Parse("f.yaml", []byte(text), &Config{}, none); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLevels(t *testing.T) {
	for level, want := range map[Level]slog.Level{
		LevelDebug: slog.LevelDebug, LevelInfo: slog.LevelInfo, LevelWarn: slog.LevelWarn, LevelError: slog.LevelError, "": slog.LevelInfo,
	} {
		if got := level.Level(); got != want {
			t.Errorf("%q is %s, want %s", level, got, want)
		}
	}
}
