package k8s

import (
	"context"
	"errors"
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// act stores the state, writes, and stores again. It reports whether the round is to decide again.
func (r *round) act(ctx context.Context, again bool) bool {
	order := r.order()
	if r.DryRun {
		r.pretend(ctx, order)
		return false
	}
	r.intend(order)
	if !r.save(ctx) {
		return false // nothing is written without a stored intent
	}
	if len(order) == 0 {
		return false
	}
	written := make(map[int]bool, len(order))
	uncertain := make(map[int]bool)
	failed := false
	for _, i := range order {
		o := &r.outcomes[i]
		if failed && o.Decision.Verdict == scaling.Down {
			continue
		}
		_, err := r.Scales.Set(ctx, o.Target, r.views[i].Scale, o.Decision.Replicas)
		o.WriteErr = err
		switch {
		case err == nil:
			o.Write = Written
			written[i] = true
			continue
		case errors.Is(err, ErrConflict):
			o.Conflicts++
			if again && len(written) == 0 && len(uncertain) == 0 && r.takeBack(order) {
				o.WriteErr = nil
				return true
			}
			o.Write = Conflict
		case errors.Is(err, ErrUncertain):
			o.Write = Uncertain
			uncertain[i] = true
		default:
			o.Write = Refused
		}
		failed = true
	}
	r.finish(ctx, written, uncertain)
	return false
}

// order returns the members to write, those that grow first.
func (r *round) order() []int {
	var ups, downs []int
	for i := range r.outcomes {
		switch o := &r.outcomes[i]; {
		case !o.Decided:
		case o.Decision.Verdict == scaling.Up:
			ups = append(ups, i)
		case o.Decision.Verdict == scaling.Down:
			downs = append(downs, i)
		}
	}
	return append(ups, downs...)
}

// intend notes the writes that are about to be made. Each replaces what was open of its target.
func (r *round) intend(order []int) {
	for _, i := range order {
		r.close(i)
		r.open = append(r.open, intentOf(&r.outcomes[i], r.now))
	}
}

// close forgets what is open of a member.
func (r *round) close(i int) {
	r.open = slices.DeleteFunc(r.open, func(w intent) bool { return w.target() == r.outcomes[i].Target })
}

// takeBack undoes the decision in the policy's memory.
func (r *round) takeBack(order []int) bool {
	for _, i := range order {
		r.close(i)
	}
	if err := r.policy.UnmarshalJSON(r.before); err != nil {
		r.loaded = false // begin anew from what is stored
		r.stateErr(err)
		return false
	}
	return true
}

// finish tells the policy what was written and stores its state; writes without an answer stay open.
func (r *round) finish(ctx context.Context, written, uncertain map[int]bool) {
	r.applied(r.now, func(i int) (from, to int32, ok bool) {
		d := &r.outcomes[i].Decision
		return d.From, d.Replicas, written[i]
	})
	for i := range r.outcomes {
		if r.outcomes[i].Decision.Acts() && !uncertain[i] {
			r.close(i)
		}
	}
	r.save(ctx)
}

// pretend is act in a dry run.
func (r *round) pretend(ctx context.Context, order []int) {
	if !r.save(ctx) || len(order) == 0 {
		return
	}
	for _, i := range order {
		r.outcomes[i].Write = Would
	}
	r.applied(r.now, func(i int) (from, to int32, ok bool) {
		d := &r.outcomes[i].Decision
		return d.From, d.Replicas, r.outcomes[i].Write == Would
	})
	r.save(ctx)
}
