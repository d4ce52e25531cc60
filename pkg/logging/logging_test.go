package logging

import (
	"bytes"
	"strings"
	"testing"

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
