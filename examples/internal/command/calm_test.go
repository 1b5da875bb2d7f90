package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
)

// TestOutageIsALineAMinute: a hundred objects that fail in each round for ten minutes.
func TestOutageIsALineAMinute(t *testing.T) {
	var out bytes.Buffer
	h := Calm(slog.NewTextHandler(&out, nil))
	now := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	say := func(h slog.Handler, level slog.Level, message string) {
		require.NoError(t, h.Handle(t.Context(), slog.NewRecord(now, level, message, 0)))
	}
	for range 40 {
		for range 100 {
			say(h.WithAttrs([]slog.Attr{slog.String("target", "a")}).WithGroup("g"), slog.LevelWarn, "round with errors")
		}
		say(h, slog.LevelInfo, "decided")
		say(h, slog.LevelError, "ended")
		now = now.Add(15 * time.Second)
	}
	require.Equal(t, 10, strings.Count(out.String(), "round with errors"))
	require.Equal(t, 9, strings.Count(out.String(), "more=399"))
	require.Equal(t, 40, strings.Count(out.String(), "decided"))
	require.Equal(t, 40, strings.Count(out.String(), "ended"))

	out.Reset()
	now = now.Add(-time.Hour) // a clock that goes back hides nothing
	say(h, slog.LevelWarn, "round with errors")
	require.Equal(t, 1, strings.Count(out.String(), "round with errors"))
	for i := range 3 * messages {
		say(h, slog.LevelWarn, strings.Repeat("m", i))
	}
	require.LessOrEqual(t, len(h.(*calm).said.of), messages)
}

// TestCanceledIsNoError: client-go calls it an error that a lease was not renewed where the program ends just then.
func TestCanceledIsNoError(t *testing.T) {
	var out bytes.Buffer
	log := logr.FromSlogHandler(Calm(slog.NewTextHandler(&out, nil)))
	log.Error(fmt.Errorf("get lease: %w", context.Canceled), "Error retrieving lease lock", "lock", "a/b")
	require.Contains(t, out.String(), "level=INFO")
	require.Contains(t, out.String(), "lock=a/b")
	require.Contains(t, out.String(), context.Canceled.Error())

	out.Reset()
	log.Error(errors.New("no route"), "Error retrieving lease lock", "lock", "a/b")
	log.Error(context.DeadlineExceeded, "Error retrieving lease lock", "lock", "a/b")
	require.Equal(t, 2, strings.Count(out.String(), "level=ERROR"))

	out.Reset()
	logr.FromSlogHandler(Calm(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))).
		Error(context.Canceled, "Error retrieving lease lock")
	require.Empty(t, out.String())
}
