package metrics

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestBrokenAndMendedMetricsReadDifferently(t *testing.T) {
	var b bytes.Buffer
	failed := LogFailures(slog.New(slog.NewTextHandler(&b, nil)))
	failed("drops", errors.New("map is gone"))
	failed("drops", nil)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "map is gone") ||
		!strings.Contains(lines[1], "level=INFO") || strings.Contains(lines[1], "nil") {
		t.Errorf("log\n%s", b.String())
	}
}
