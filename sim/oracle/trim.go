package oracle

import (
	"cmp"
	"context"
	"slices"
)

// A span is a range of ticks, the end excluded.
type span struct{ from, to int }

// trim removes replicas from the best schedule, one from one span at a time, while runs are left.
func (r *replayer) trim(ctx context.Context, runs int) error {
	if runs == 0 {
		return nil
	}
	end := r.runs + runs
	spans := levels(r.best.Asked[:r.costly()+1])
	for len(spans) > 0 && r.runs < end {
		s := spans[0]
		spans = spans[1:]
		asked := slices.Clone(r.best.Asked)
		changed := false
		for i := s.from; i < s.to; i++ {
			if asked[i] > r.goal.Bounds.Min {
				asked[i]--
				changed = true
			}
		}
		if !changed {
			continue
		}
		best, trimmed := *r.best, r.best.Trimmed
		k := knobs{step: best.Step, lead: best.Lead, tail: best.Tail, safety: best.Safety}
		if _, err := r.try(ctx, trial{knobs: k, asked: asked}, best.Plan); err != nil {
			return err
		}
		if slices.Equal(r.best.Asked, asked) {
			r.best.Trimmed = trimmed + 1
			spans = append(spans, s) // try it once more
		} else if middle := (s.from + s.to) / 2; middle > s.from {
			spans = append(spans, span{s.from, middle}, span{middle, s.to})
		}
		slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	}
	return nil
}

// levels returns the spans in which a schedule is at or above each count, without duplicates.
func levels(asked []int32) []span {
	var spans []span
	var open []span // their beginnings, with the count in to
	for i := range len(asked) + 1 {
		n := int32(0)
		if i < len(asked) {
			n = asked[i]
		}
		from := i
		for len(open) > 0 && int32(open[len(open)-1].to) > n {
			from = open[len(open)-1].from
			spans = append(spans, span{from, i})
			open = open[:len(open)-1]
		}
		if n > 0 && (len(open) == 0 || int32(open[len(open)-1].to) < n) {
			open = append(open, span{from, int(n)})
		}
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(b.to-b.from, a.to-a.from), cmp.Compare(a.from, b.from))
	})
	return spans
}
