package oracle

import (
	"fmt"
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// Constrained returns the best plan that a controller limited by rules could have made with foresight. Of all schedules
// within the rules it takes one that leaves the least uncovered, and of those one of the cheapest:
//
//	minimise  sum max(0, due[t] - n[t]),   then   sum n[t] + Start * sum max(0, n[t] - n[t-1])
//
// The distance of a policy from it is due to the policy; its distance from Cover is due to the configuration.
//
// The counts are the requested ones, so the time during which a replica starts is in their sum. due is the highest demand
// from a slot to StartSlots later: if so many replicas are requested throughout, they are ready for it. With a StartSlots of
// 0 it is the demand itself, and Uncovered is the missing replica-slots. With a longer one, Uncovered counts the
// replica-slots that were requested too late or in too low a number, plus those that no plan can cover before its first
// replicas are ready. It is 0 exactly if ready replicas cover every slot. A demand below 0 counts as 0.
//
// It is a dynamic programme, backwards over the slots. Its state is the count and the slots since the last up and since the
// last down, each up to the age from which it makes no difference. Each slot looks at every state once, with the best ups
// and downs in a sliding minimum, so the time is
//
//	slots * counts * ages,   counts = Max - Min + 1,   ages = ups * downs
//
// where ups and downs are the longest rule on each age, at most the slots. One age serves for both if the cooldowns count any change
// and MinUp is not longer than DownCooldown. Each takes some 10 ns. The table has ups*downs + 4*(ups+downs) bytes for each count
// in each slot, and 32*ups*downs + 16*(ups+downs) + 48 for each count beside the slots. Constrained returns every wrong field of the rules, or ErrTooLarge.
func Constrained(demand []int32, rules Rules) (Plan, error) {
	if err := rules.Validate(); err != nil {
		return Plan{}, err
	}
	if len(demand) == 0 {
		return Plan{}, nil
	}
	// A time of as many slots as there are never ends, as does any longer one.
	for _, slots := range []*int{&rules.UpCooldown, &rules.DownCooldown, &rules.MinUp} {
		*slots = min(*slots, len(demand))
	}
	p := programme{rules: rules, clocks: rules.clocks(), counts: int(rules.Bounds.Max) - int(rules.Bounds.Min) + 1}
	states, ages := float64(p.ups)*float64(p.downs), float64(p.ups)+float64(p.downs)
	cell, beside := states+4*ages, 32*states+16*ages+48
	if table := float64(p.counts) * (float64(len(demand))*cell + beside); table > MaxTable {
		return Plan{}, fmt.Errorf("%w: %d counts * (%d slots * %g bytes + %g), limit %d", ErrTooLarge, p.counts, len(demand), cell, beside, MaxTable)
	}
	due, lost := rules.due(demand)
	p.solve(due)
	plan := priced(p.plan(), rules.Start, rules.Initial)
	for t, n := range plan.Counts {
		plan.Uncovered += int64(max(0, due[t]-n))
	}
	plan.Uncovered += lost
	return plan, nil
}

// A value is the outcome of a plan from a slot on.
type value struct{ uncovered, cost int64 }

func (v value) less(w value) bool {
	return v.uncovered < w.uncovered || v.uncovered == w.uncovered && v.cost < w.cost
}

// A move is the decision in a state.
type move uint8

const (
	stay move = iota
	raise
	lower
)

// A programme is the table of Constrained. Counts are relative to Bounds.Min, ages to 1.
type programme struct {
	clocks

	rules  Rules
	counts int
	// values has the best outcome from a slot on, for each state; spare is that of the slot before, while it is computed.
	values, spare []value
	queue         []step
	// The best ups by count and age of the last down, and the best downs by count and age of the last up, in this slot.
	up, down []value
	table    []decisions
}

// decisions are the decisions of one slot.
type decisions struct {
	moves []move  // by state
	ups   []int32 // target of an up: by count and age of the last down
	downs []int32 // target of a down: by count and age of the last up
}

// A step is a possible target count.
type step struct {
	to    int32
	value value
}

func (p *programme) state(n, up, down int) int { return (n*p.ups+up)*p.downs + down }

func (p *programme) solve(due []int32) {
	states := p.counts * p.ups * p.downs
	p.values, p.spare = make([]value, states), make([]value, states)
	p.up, p.down = make([]value, p.counts*p.downs), make([]value, p.counts*p.ups)
	p.table = make([]decisions, len(due))
	for t := len(due) - 1; t >= 0; t-- {
		d := &p.table[t]
		d.moves, d.ups, d.downs = make([]move, states), make([]int32, len(p.up)), make([]int32, len(p.down))
		// From here on, values has the outcome of being in a state after the decision of this slot.
		for n := range p.counts {
			count := int32(n) + p.rules.Bounds.Min
			now := value{int64(max(0, due[t]-count)), int64(count)}
			row := p.values[n*p.ups*p.downs : (n+1)*p.ups*p.downs]
			for i := range row {
				row[i].uncovered += now.uncovered
				row[i].cost += now.cost
			}
		}
		p.raises(d)
		p.lowers(d)
		p.decide(d)
		p.values, p.spare = p.spare, p.values
	}
}

// raises finds the best up from every count; of equal ones the nearest.
func (p *programme) raises(d *decisions) {
	limit := p.limit(p.rules.UpStep)
	for down := range p.downs {
		after := min(down+1, p.downs-1)
		q := p.queue[:0]
		first := 0
		for n := p.counts - 1; n >= 0; n-- {
			i := n*p.downs + down
			p.up[i] = value{uncovered: math.MaxInt64}
			if n == p.counts-1 {
				continue
			}
			v := p.values[p.state(n+1, 0, after)]
			v.cost += p.rules.Start * int64(n+1)
			q, first = push(q, first, step{int32(n + 1), v})
			for int(q[first].to) > n+limit {
				first++
			}
			p.up[i], d.ups[i] = q[first].value, q[first].to
			p.up[i].cost -= p.rules.Start * int64(n)
		}
		p.queue = q
	}
}

// lowers finds the best down from every count; of equal ones the nearest.
func (p *programme) lowers(d *decisions) {
	limit := p.limit(p.rules.DownStep)
	for up := range p.ups {
		after, down := min(up+1, p.ups-1), 0
		if p.single {
			after = 0
		}
		q := p.queue[:0]
		first := 0
		for n := range p.counts {
			i := n*p.ups + up
			p.down[i] = value{uncovered: math.MaxInt64}
			if n == 0 {
				continue
			}
			q, first = push(q, first, step{int32(n - 1), p.values[p.state(n-1, after, down)]})
			for int(q[first].to) < n-limit {
				first++
			}
			p.down[i], d.downs[i] = q[first].value, q[first].to
		}
		p.queue = q
	}
}

// push adds a step to those that can still become the best.
func push(q []step, first int, s step) ([]step, int) {
	for len(q) > first && !q[len(q)-1].value.less(s.value) {
		q = q[:len(q)-1]
	}
	return append(q, s), first
}

func (p *programme) limit(step int32) int {
	if step == 0 {
		return p.counts
	}
	return min(int(step), p.counts)
}

// decide takes the best allowed move of each state; of equal ones it stays, or else raises.
func (p *programme) decide(d *decisions) {
	for up := range p.ups {
		for down := range p.downs {
			mayUp, mayDown := p.rules.mayUp(p.clocks, up+1, down+1), p.rules.mayDown(p.clocks, up+1, down+1)
			next := p.state(0, min(up+1, p.ups-1), min(down+1, p.downs-1))
			for n := range p.counts {
				best, what := p.values[next+n*p.ups*p.downs], stay
				if v := p.up[n*p.downs+down]; mayUp && v.less(best) {
					best, what = v, raise
				}
				if v := p.down[n*p.ups+up]; mayDown && v.less(best) {
					best, what = v, lower
				}
				i := p.state(n, up, down)
				p.spare[i], d.moves[i] = best, what
			}
		}
	}
}

// plan follows the decisions from the beginning.
func (p *programme) plan() []int32 {
	counts := make([]int32, len(p.table))
	n, up, down := int(p.rules.Initial-p.rules.Bounds.Min), p.ups-1, p.downs-1
	for t := range p.table {
		d := &p.table[t]
		after, since := min(up+1, p.ups-1), min(down+1, p.downs-1)
		switch d.moves[p.state(n, up, down)] {
		case stay:
		case raise:
			n, after = int(d.ups[n*p.downs+down]), 0
		case lower:
			n, since = int(d.downs[n*p.ups+up]), 0
			if p.single {
				after = 0
			}
		}
		up, down = after, since
		counts[t] = scaling.Plus(p.rules.Bounds.Min, int32(n))
	}
	return counts
}
