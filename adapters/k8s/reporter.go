package k8s

import (
	"context"
	"log/slog"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A reporter reports the outcomes of rounds as events, as metrics and in the log.
type reporter struct {
	settings Settings
	events   *Events
}

func newReporter(s Settings) *reporter {
	r := &reporter{settings: s}
	if s.Recorder != nil {
		r.events = NewEvents(s.Recorder, s.EventPeriod)
	}
	return r
}

func (r *reporter) report(ctx context.Context, outcomes []Outcome, took time.Duration) {
	for i := range outcomes {
		o := &outcomes[i]
		o.Autoscaler = r.settings.autoscaler()
		if r.settings.Metrics != nil {
			r.settings.Metrics.Observe(o, took)
		}
		if r.events != nil {
			r.events.Say(r.settings.Object, o)
		}
		r.log(ctx, o, took)
	}
}

func (r *reporter) log(ctx context.Context, o *Outcome, took time.Duration) {
	logger := r.settings.Logger
	if o.Decided {
		level := slog.LevelDebug
		if o.Decision.Acts() && !o.idle() {
			level = slog.LevelInfo
		}
		if logger.Enabled(ctx, level) { // making the reason is expensive
			logger.LogAttrs(ctx, level, "decided",
				slog.String("target", o.Target.String()),
				slog.String("verdict", o.Decision.Verdict.String()),
				slog.Int64("from", int64(o.Decision.From)),
				slog.Int64("to", int64(o.Decision.Replicas)),
				slog.String("reason", o.Decision.Reason()),
				slog.String("write", o.Write.String()),
				slog.Duration("took", took),
			)
		}
	}
	err, message := o.Err(), "round with errors"
	if err == nil && o.Decision.Verdict == scaling.Unknown && !atZero(o) {
		err, message = o.Observed.Err, "metrics without a value"
	}
	if err != nil { // one line for each round
		logger.WarnContext(ctx, message, "target", o.Target.String(), "error", err)
	}
}

// idle reports whether the round certainly changed nothing although the policy asks for a change: the next one decides the same.
func (o *Outcome) idle() bool {
	return o.Paused || o.Disabled || o.StateErr != nil || o.WriteErr != nil && o.Write != Uncertain
}
