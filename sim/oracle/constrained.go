package oracle

import (
	"fmt"
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// Constrained returns the best plan that a controller held back by rules could have made with foresight: of all
// schedules within the rules one that leaves the least uncovered, and of those one of the cheapest,
//
//	minimise  sum max(0, due[t] - n[t]),   then   sum n[t] + Start * sum max(0, n[t] - n[t-1])
//
// What separates a policy from it is the policy's fault; what separates it from Cover is that of the configuration.
//
// The counts are what is asked for, so the time that a replica boots is in their sum. due is the highest demand from a
// slot to StartSlots later: replicas of which so many were asked for all along are ready for it. With a StartSlots of 0
// it is the demand itself, and Uncovered is the replica-slots that are short. With a longer one, Uncovered counts
// replica-slots that were asked for too late or too few, and to it what no plan can cover before its first replicas are
// ready; it is 0 exactly where ready replicas cover every slot. A demand below 0 counts as 0.
//
// It is a dynamic programme backwards over the slots; its state is the count and the slots since the last up and the
// last down, each up to where it makes no difference. Each slot looks at every state once, with the best ups and downs
// in a sliding minimum, so the time is
//
//	slots * counts * ages,   counts = Max - Min + 1,   ages = ups * downs
//
// with ups and downs the longest rule on either age, and one age for both where the cooldowns count any change and MinUp
// is not longer than DownCooldown. It takes some 10 ns each. The table has ups*downs + 4*(ups+downs) bytes for each count
// in each slot. Errors: every wrong field of the rules, ErrTooLarge.
func Constrained(demand []int32, rules Rules) (Plan, error) {
	if err := rules.Validate(); err != nil {
		return Plan{}, err
	}
	if len(demand) == 0 {
		return Plan{}, nil
	}
	p := programme{rules: rules, clocks: rules.clocks(), counts: int(rules.Bounds.Max) - int(rules.Bounds.Min) + 1}
	cell := float64(p.ups)*float64(p.downs) + 4*float64(p.ups) + 4*float64(p.downs)
	if table := float64(len(demand)) * float64(p.counts) * cell; table > MaxTable {
		return Plan{}, fmt.Errorf("%w: %d slots * %d counts * %g bytes, limit %d", ErrTooLarge, len(demand), p.counts, cell, MaxTable)
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

// A value is what a plan comes to from some slot on.
type value struct{ uncovered, cost int64 }

func (v value) less(w value) bool {
	return v.uncovered < w.uncovered || v.uncovered == w.uncovered && v.cost < w.cost
}

// A move is what is decided in a state.
type move uint8

const (
	stay move = iota
	raise
	lower
)

// A programme is the table of Constrained. Counts are less Bounds.Min, ages less 1.
type programme struct {
	clocks

	rules  Rules
	counts int
	// values has what is to come from a slot on, for each state; spare is that of the slot before, as it is made.
	values, spare []value
	queue         []step
	// The best ups by count and age of the last down, and the best downs by count and age of the last up, in this slot.
	up, down []value
	table    []decisions
}

// decisions are those of one slot.
type decisions struct {
	moves []move  // by state
	ups   []int32 // where an up goes: by count and age of the last down
	downs []int32 // where a down goes: by count and age of the last up
}

// A step is a count that may be gone to.
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
		// From here on, values has what comes of being in a state after the decision of this slot.
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

// raises finds the best up from every count, the nearest of several.
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

// lowers finds the best down from every count, the nearest of several.
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

// push adds a step to those that can still be the best.
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

// decide picks the best that each state may do; of equal ones it stays, or raises.
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
