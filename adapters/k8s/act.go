package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// longestWrite is how long a write of which no answer came can take to arrive: twice what an API server gives a request.
const longestWrite = 2 * time.Minute

// act stores the state, writes, and stores again. It reports whether the round is to decide again.
func (r *round) act(ctx context.Context, again bool) bool {
	order := r.order()
	if r.DryRun {
		r.pretend(ctx, order)
		return false
	}
	if r.waits(order) {
		order = nil
	}
	r.intend(order)
	if !r.save(ctx) {
		return false // nothing is written without a stored intent
	}
	if len(order) == 0 {
		return false
	}
	failed := false
	for _, i := range order {
		o := &r.outcomes[i]
		if failed && o.Decision.Verdict == scaling.Down {
			continue
		}
		r.write(ctx, i)
		failed = failed || o.Write != Written
		if o.Write == Conflict && again && r.untouched() && r.takeBack(order) {
			return true
		}
	}
	r.finish(ctx)
	return false
}

// write writes one member, and notes what became of it.
func (r *round) write(ctx context.Context, i int) {
	o := &r.outcomes[i]
	_, o.WriteErr = r.Scales.Set(ctx, o.Target, r.views[i].Scale, o.Decision.Replicas)
	switch {
	case o.WriteErr == nil:
		o.Write = Written
	case errors.Is(o.WriteErr, ErrConflict):
		o.Write = Conflict
		o.Conflicts++
	case errors.Is(o.WriteErr, ErrUncertain):
		o.Write = Uncertain
	default:
		o.Write = Refused
	}
}

// untouched reports whether nothing was written in this round, for certain.
func (r *round) untouched() bool {
	return !slices.ContainsFunc(r.outcomes, func(o Outcome) bool { return o.Write == Written || o.Write == Uncertain })
}

// order returns the members to write, those that grow first, and among them those of which a write is open: where it
// has arrived the conflict comes before anything else is written.
func (r *round) order() []int {
	var ups, downs []int
	for _, open := range []bool{true, false} {
		for i := range r.outcomes {
			switch o := &r.outcomes[i]; {
			case !o.Decided || (r.pending(i) != nil) != open:
			case o.Decision.Verdict == scaling.Up:
				ups = append(ups, i)
			case o.Decision.Verdict == scaling.Down:
				downs = append(downs, i)
			}
		}
	}
	return append(ups, downs...)
}

// pending returns a write of a member that can yet arrive, or nil.
func (r *round) pending(i int) *intent {
	for n := range r.open {
		if w := &r.open[n]; w.Target().same(r.outcomes[i].Target) && !w.Answered {
			return w
		}
	}
	return nil
}

// waits reports whether a write of another target than the first ones of the order can yet arrive: then nothing is
// written, as both together would be more than was ever decided. A target's own older write needs no waiting, since of
// two writes on condition of one resource version one is carried out at most.
func (r *round) waits(order []int) bool {
	if len(order) == 0 {
		return false
	}
	down := r.outcomes[order[0]].Decision.Verdict == scaling.Down
	for i := range r.members {
		w := r.pending(i)
		if w == nil || r.now.Sub(w.At.Time()).Abs() >= longestWrite {
			continue
		}
		if o := &r.outcomes[i]; slices.Contains(order, i) && (down || o.Decision.Verdict == scaling.Up) {
			continue
		}
		err := &TargetError{Target: w.Target(), Doing: fmt.Sprintf("tell yet about the write %d -> %d of", w.From, w.To), What: ErrUncertain}
		for _, n := range order {
			r.outcomes[n].WriteErr = err
		}
		return true
	}
	return false
}

// intend notes the writes that are about to be made. Each stands for what is open of its target as well: that is
// conditional on the same resource version, so that one of them is carried out at most.
func (r *round) intend(order []int) {
	r.older = make(map[int][]intent, len(order))
	for _, i := range order {
		r.older[i] = r.close(i)
		r.open = append(r.open, intentOf(&r.outcomes[i], r.now))
	}
}

// close forgets what is open of a member, and returns it.
func (r *round) close(i int) []intent {
	var closed []intent
	r.open = slices.DeleteFunc(r.open, func(w intent) bool {
		if !w.Target().same(r.outcomes[i].Target) {
			return false
		}
		closed = append(closed, w)
		return true
	})
	return closed
}

// resolve notes what is known of a member's write, with what was open before: only a write that was carried out
// says that an older one was not and never will be.
func (r *round) resolve(i int) {
	switch r.outcomes[i].Write {
	case Written:
		r.close(i)
	case Uncertain: // stays open
	case Conflict:
		own := r.close(i)
		for n := range own {
			own[n].Answered = true
		}
		r.open = slices.Concat(r.open, r.older[i], own)
	default:
		r.close(i)
		r.open = append(r.open, r.older[i]...)
	}
}

// takeBack undoes the decision in the policy's memory.
func (r *round) takeBack(order []int) bool {
	for _, i := range order {
		r.resolve(i)
	}
	if err := r.policy.UnmarshalJSON(r.before); err != nil {
		r.loaded = false // begin anew from what is stored
		r.stateErr(err)
		return false
	}
	for _, i := range order {
		r.outcomes[i].Write, r.outcomes[i].WriteErr = NoWrite, nil
	}
	return true
}

// finish tells the policy what was written and stores its state; writes of which it is not known stay open.
func (r *round) finish(ctx context.Context) {
	r.applied(func(i int) (from, to int32, ok bool) {
		d := &r.outcomes[i].Decision
		return d.From, d.Replicas, r.outcomes[i].Write == Written
	})
	for i := range r.outcomes {
		if _, tried := r.older[i]; tried {
			r.resolve(i)
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
	r.applied(func(i int) (from, to int32, ok bool) {
		d := &r.outcomes[i].Decision
		return d.From, d.Replicas, r.outcomes[i].Write == Would
	})
	r.save(ctx)
}
