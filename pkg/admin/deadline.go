package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// deadlineHeader is until when a request may be carried out, in nanoseconds of CLOCK_BOOTTIME:
// all processes of a host share that clock, and nobody sets it.
const deadlineHeader = "Sluice-Deadline"

// uptime is the time on CLOCK_BOOTTIME.
func uptime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails for unknown clocks only
	return time.Duration(t.Nano())
}

func setDeadline(h http.Header, patience time.Duration) {
	h.Set(deadlineHeader, strconv.FormatInt(int64(uptime()+patience), 10))
}

// inTime bounds ctx by the deadline of a request. It fails with ErrLate after the deadline. A
// request without a deadline is in time.
func inTime(ctx context.Context, h http.Header) (context.Context, context.CancelFunc, error) {
	text := h.Get(deadlineHeader)
	if text == "" {
		return ctx, func() {}, nil
	}
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrBadRequest, deadlineHeader, err)
	}
	left := time.Duration(ns) - uptime()
	if left <= 0 {
		return nil, nil, fmt.Errorf("%w: its deadline was %s ago", ErrLate, -left.Round(time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	return ctx, cancel, nil
}
