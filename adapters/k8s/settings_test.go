package k8s_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scaling"
)

// Paused, a loop says what it would do, and does it as soon as the pause ends.
func TestLoopPaused(t *testing.T) {
	r := record.NewFakeRecorder(100)
	c, clock, l := breached(t, func(config *k8s.LoopConfig) { config.Paused, config.Recorder = true, r })
	for range 4 {
		o := tick(t, l)
		require.Equal(t, scaling.Up, o.Decision.Verdict, "no cooldown runs")
		require.Equal(t, k8s.Would, o.Write)
		conditions := conditionsOf(&o)
		require.Equal(t, k8s.ReasonPaused, conditions[k8s.ConditionReady].Reason)
		require.Equal(t, "paused: 3 -> 4", conditions[k8s.ConditionAbleToScale].Message)
		clock.pass()
	}
	require.Zero(t, c.Updates)
	require.Len(t, told(r), 2, "one that it held before, and one that it would act")
	l = newLoop(t, c, &observer{value: 50}, clock, nil)
	require.Equal(t, k8s.Written, tick(t, l).Write)
	clock.now = clock.now.Add(time.Second)
	require.Equal(t, scaling.Hold, tick(t, l).Decision.Verdict)
}

// TestRegressionWhatIsNotWrittenIsNoLineARound: a loop that is paused, and one whose writes are refused, decide the same in each round,
// and each round was a line of the log, of which no handler that calms warnings leaves out any.
func TestRegressionWhatIsNotWrittenIsNoLineARound(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*k8s.LoopConfig)
		lines  int
	}{
		"paused":  {func(c *k8s.LoopConfig) { c.Paused = true }, 0},
		"refused": {func(c *k8s.LoopConfig) { c.Scales = &published{c.Scales, fmt.Errorf("quota: %w", k8s.ErrRefused)} }, 0},
		"dry run": {func(c *k8s.LoopConfig) { c.DryRun = true }, 1}, // at the pace of its cooldowns
		"written": {func(*k8s.LoopConfig) {}, 1},
	} {
		var log bytes.Buffer
		_, clock, l := breached(t, func(c *k8s.LoopConfig) {
			row.change(c)
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
		})
		for range 3 {
			_, _ = l.Tick(t.Context())
			clock.pass()
		}
		require.Equal(t, row.lines, strings.Count(log.String(), "msg=decided"), "%s: %s", name, &log)
	}
}

// published is a ScaleClient of somebody's own, whose errors say nothing of what happened.
type published struct {
	k8s.ScaleClient

	err error
}

func (p *published) Set(context.Context, k8s.Target, k8s.Scale, int32) (k8s.Scale, error) {
	return k8s.Scale{}, p.err
}

// An error of which it is not known what it means may have come after the write.
func TestLoopOwnScaleClient(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want k8s.WriteResult
	}{
		{nil, k8s.Written}, {errors.New("no idea"), k8s.Uncertain}, {fmt.Errorf("quota: %w", k8s.ErrRefused), k8s.Refused}, {k8s.ErrConflict, k8s.Conflict},
	} {
		_, _, l := breached(t, func(config *k8s.LoopConfig) {
			config.NoRetry = true
			config.Scales = &published{config.Scales, tt.err}
		})
		out, err := l.Tick(t.Context())
		require.ErrorIs(t, err, tt.err)
		require.Equal(t, tt.want, out.Write)
	}
}
