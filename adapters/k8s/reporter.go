package k8s

import (
	"context"
	"log/slog"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// report reports the outcomes of a round as events, as metrics and in the log.
func (e *engine) report(ctx context.Context, outcomes []Outcome, took time.Duration) {
	for i := range outcomes {
		o := &outcomes[i]
		if e.Metrics != nil {
			e.Metrics.Observe(o, took)
		}
		if e.events != nil {
			e.events.Say(e.Object, o)
		}
		e.log(ctx, o, took)
	}
}

func (e *engine) log(ctx context.Context, o *Outcome, took time.Duration) {
	if o.Decided {
		level := slog.LevelDebug
		if o.Decision.Acts() && !o.idle() {
			level = slog.LevelInfo
		}
		if e.Logger.Enabled(ctx, level) { // making the reason is expensive
			e.Logger.LogAttrs(ctx, level, "decided",
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
		e.Logger.WarnContext(ctx, message, "target", o.Target.String(), "error", err)
	}
}

// idle reports whether the round certainly changed nothing although the policy asks for a change: the next one decides the same.
func (o *Outcome) idle() bool {
	return o.Paused || o.Disabled || o.StateErr != nil || o.WriteErr != nil && o.Write != Uncertain
}
