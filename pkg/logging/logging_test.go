package logging

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/ovn-sluice/sluice/pkg/config"
)

func TestFormatsAndLevels(t *testing.T) {
	for _, tc := range []struct {
		format config.LogFormat
		want   string
	}{{config.LogText, "msg=hello vni=1001"}, {config.LogJSON, `"msg":"hello","vni":1001`}} {
		var b bytes.Buffer
		log := New(&b, config.Log{Level: config.LogWarn, Format: tc.format})
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
	for _, format := range []config.LogFormat{config.LogText, config.LogJSON} {
		var b bytes.Buffer
		New(&b, config.Log{Level: config.LogWarn, Format: format}).With(hostile, hostile).Warn(hostile, hostile, hostile, "error", errors.New(hostile))
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
