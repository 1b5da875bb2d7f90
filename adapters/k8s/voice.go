package k8s

import (
	"context"
	"log/slog"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A voice tells the world what rounds came to.
type voice struct {
	settings Settings
	events   *Events
}

func newVoice(s Settings) *voice {
	v := &voice{settings: s}
	if s.Recorder != nil {
		v.events = NewEvents(s.Recorder, s.EventPeriod)
	}
	return v
}

func (v *voice) say(ctx context.Context, outcomes []Outcome, took time.Duration) {
	for i := range outcomes {
		o := &outcomes[i]
		if v.settings.Metrics != nil {
			v.settings.Metrics.Observe(o, took)
		}
		if v.events != nil {
			v.events.Say(v.settings.Object, o)
		}
		v.log(ctx, o)
	}
}

func (v *voice) log(ctx context.Context, o *Outcome) {
	logger := v.settings.Logger
	if o.Decided {
		level := slog.LevelDebug
		if o.Decision.Acts() {
			level = slog.LevelInfo
		}
		if logger.Enabled(ctx, level) { // a reason costs something
			logger.LogAttrs(ctx, level, "decided",
				slog.String("target", o.Target.String()),
				slog.String("verdict", o.Decision.Verdict.String()),
				slog.Int64("from", int64(o.Decision.From)),
				slog.Int64("to", int64(o.Decision.Replicas)),
				slog.String("reason", o.Decision.Reason()),
				slog.String("write", o.Write.String()),
			)
		}
	}
	if err := o.Err(); err != nil {
		logger.WarnContext(ctx, "round with errors", "target", o.Target.String(), "error", err)
	}
	if o.Observed.Err != nil && o.Decision.Verdict == scaling.Unknown {
		logger.WarnContext(ctx, "metrics without a value", "target", o.Target.String(), "error", o.Observed.Err)
	}
}
