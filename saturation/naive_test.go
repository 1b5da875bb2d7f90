package saturation_test

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/inferscale/inferscale/saturation"
)

// naive is the plainest restatement of the rules, in fractions instead of floating point: numbers that are written
// with two decimals are exactly that. It sorts nothing it need not sort and keeps a map of everything.
type naive struct {
	config saturation.Config
	seen   *time.Time
	safe   *time.Time
	fleet  int64
	spare  float64 // the capacity that may go, 0 where all have the same
	moving map[string]naiveMove
}

type naiveMove struct {
	current, wish int32
	since         time.Time
}

type naiveTarget struct {
	replicas int32
	unknown  bool
	leftOut  bool
}

// rat reads a number as the decimal with six digits that it stands for.
func rat(x float64) *big.Rat {
	return big.NewRat(int64(math.Round(x*1e6)), 1e6)
}

type naiveSums struct {
	rows, free, saturated, missing int
	spareKV, spareQueue            *big.Rat // averages
	loadKV, loadQueue              *big.Rat // totals
	up, safe                       bool
}

func isMissing(r saturation.Replica) bool {
	for _, x := range []float64{r.KV, r.Queue} {
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
			return true
		}
	}
	return false
}

func (n *naive) analyze(replicas []saturation.Replica) naiveSums {
	c := n.config
	literal := c.Mode == saturation.Literal
	s := naiveSums{spareKV: new(big.Rat), spareQueue: new(big.Rat), loadKV: new(big.Rat), loadQueue: new(big.Rat)}
	freeKV, freeQueue := new(big.Rat), new(big.Rat)
	for _, r := range replicas {
		s.rows++
		switch {
		case !literal && isMissing(r):
			s.missing++
			s.spareKV.Add(s.spareKV, rat(c.KVCache))
			s.spareQueue.Add(s.spareQueue, rat(c.QueueLength))
			continue
		case r.KV >= c.KVCache || r.Queue >= c.QueueLength:
			s.saturated++
		default:
			s.free++
			s.spareKV.Add(s.spareKV, new(big.Rat).Sub(rat(c.KVCache), rat(r.KV)))
			s.spareQueue.Add(s.spareQueue, new(big.Rat).Sub(rat(c.QueueLength), rat(r.Queue)))
			freeKV.Add(freeKV, rat(r.KV))
			freeQueue.Add(freeQueue, rat(r.Queue))
		}
		s.loadKV.Add(s.loadKV, rat(r.KV))
		s.loadQueue.Add(s.loadQueue, rat(r.Queue))
	}
	if s.rows == 0 {
		return s
	}
	over := s.rows
	if literal {
		over = s.free
	}
	if over > 0 {
		s.spareKV.Quo(s.spareKV, big.NewRat(int64(over), 1))
		s.spareQueue.Quo(s.spareQueue, big.NewRat(int64(over), 1))
	}
	s.up = s.spareKV.Cmp(rat(c.KVSpare)) < 0 || s.spareQueue.Cmp(rat(c.QueueSpare)) < 0
	if s.free >= 2 {
		s.safe = n.fits(freeKV, freeQueue, big.NewRat(1, int64(s.free-1)))
		if !literal {
			s.safe = s.safe && s.saturated == 0 && s.missing == 0
		}
	}
	return s
}

// fits reports whether the loads, each times share, leave enough to spare.
func (n *naive) fits(loadKV, loadQueue, share *big.Rat) bool {
	c := n.config
	for _, x := range []struct{ load, threshold, trigger *big.Rat }{
		{loadKV, rat(c.KVCache), rat(c.KVSpare)},
		{loadQueue, rat(c.QueueLength), rat(c.QueueSpare)},
	} {
		remaining := new(big.Rat).Sub(x.threshold, new(big.Rat).Mul(x.load, share))
		if remaining.Cmp(x.trigger) < 0 || c.Mode == saturation.Default && remaining.Sign() <= 0 {
			return false
		}
	}
	return true
}

func capacityOf(v saturation.Variant) float64 {
	if v.Capacity == 0 {
		return 1
	}
	return v.Capacity
}

func priceOf(v saturation.Variant) *big.Rat {
	return new(big.Rat).Quo(rat(v.Cost), rat(capacityOf(v)))
}

func clampTo(v saturation.Variant, n int32) int32 {
	if v.Max > 0 {
		n = min(n, v.Max)
	}
	return max(n, v.Min)
}

func (n *naive) decide(now time.Time, replicas []saturation.Replica, variants []saturation.Variant) map[string]naiveTarget {
	reporting := map[string]int32{}
	for _, r := range replicas {
		reporting[r.Variant]++
	}
	sums := n.analyze(replicas)
	if n.config.Mode == saturation.Literal {
		return n.decideLiterally(sums, reporting, variants)
	}
	return n.decideByDefault(now, sums, reporting, variants)
}

func (n *naive) decideLiterally(sums naiveSums, reporting map[string]int32, variants []saturation.Variant) map[string]naiveTarget {
	targets := map[string]naiveTarget{}
	states := map[string]saturation.Variant{}
	for _, v := range variants {
		states[v.Name] = v
		targets[v.Name] = naiveTarget{replicas: v.Current, leftOut: true, unknown: sums.rows == 0}
	}
	var names []string
	for name := range reporting {
		names = append(names, name)
	}
	sort.Strings(names)
	frozen := false
	for _, name := range names {
		v := states[name]
		desired := v.Desired.Set && v.Desired.N != 0 && v.Desired.N != v.Current
		if desired || reporting[name] != v.Current {
			frozen = true
		}
		targets[name] = naiveTarget{replicas: v.Current}
		if desired {
			targets[name] = naiveTarget{replicas: v.Desired.N}
		}
	}
	if frozen {
		return targets
	}
	chosen, by := "", int32(0)
	for _, name := range names {
		v := states[name]
		switch {
		case sums.up && v.Pending == 0 && (chosen == "" || v.Cost < states[chosen].Cost):
			chosen, by = name, +1
		case !sums.up && sums.safe && v.Current > 1 && (chosen == "" || v.Cost >= states[chosen].Cost):
			chosen, by = name, -1
		}
	}
	for _, name := range names {
		v := states[name]
		before := v.Current
		if name == chosen {
			before += by
		}
		after := max(before, v.Min)
		if v.Max > 0 && before > v.Max {
			after = v.Max
		}
		targets[name] = naiveTarget{replicas: after}
	}
	return targets
}

func (n *naive) decideByDefault(now time.Time, sums naiveSums, reporting map[string]int32, variants []saturation.Variant) map[string]naiveTarget {
	// The clock.
	back := n.seen != nil && now.Before(*n.seen)
	if back {
		d := n.seen.Sub(now)
		for name, m := range n.moving {
			m.since = m.since.Add(-d)
			n.moving[name] = m
		}
		if n.safe != nil {
			t := n.safe.Add(-d)
			n.safe = &t
		}
	}
	n.seen = &now

	// Who is there.
	targets := map[string]naiveTarget{}
	states := map[string]saturation.Variant{}
	capacity, even, fleet := new(big.Rat), true, int64(0)
	first := -1.0
	for _, v := range variants {
		states[v.Name] = v
	}
	for name := range reporting {
		if _, ok := states[name]; !ok {
			targets[name] = naiveTarget{replicas: reporting[name], unknown: true}
			fleet += int64(reporting[name])
			capacity.Add(capacity, big.NewRat(int64(reporting[name]), 1))
			even = even && (first < 0 || first == 1)
			first = 1
		}
	}
	var names []string
	for name, v := range states {
		names = append(names, name)
		fleet += int64(v.Current)
		capacity.Add(capacity, new(big.Rat).Mul(rat(capacityOf(v)), big.NewRat(int64(reporting[name]), 1)))
		even = even && (first < 0 || first == capacityOf(v))
		first = capacityOf(v)
	}
	sort.Strings(names)

	// Who is in transition.
	moving, stuck, wish := map[string]bool{}, map[string]bool{}, map[string]int32{}
	blocked, onlyGrowth := false, true
	coming := new(big.Rat)
	for _, name := range names {
		v := states[name]
		wish[name] = v.Current
		if v.Desired.Set {
			wish[name] = v.Desired.N
		}
		wish[name] = clampTo(v, wish[name])
		targets[name] = naiveTarget{replicas: wish[name], unknown: sums.rows == sums.missing && wish[name] == v.Current}
		way := wish[name] != v.Current || reporting[name] != v.Current
		if !way && v.Pending == 0 {
			continue
		}
		moving[name] = true
		m, ok := n.moving[name]
		if !ok || m.current != v.Current || m.wish != wish[name] {
			m = naiveMove{v.Current, wish[name], now}
			n.moving[name] = m
		}
		if n.config.TransitionTimeout > 0 && now.Sub(m.since) >= n.config.TransitionTimeout {
			stuck[name] = true
			continue
		}
		if !way {
			continue
		}
		blocked = true
		if v.Current > wish[name] || reporting[name] > wish[name] {
			onlyGrowth = false
			continue
		}
		coming.Add(coming, new(big.Rat).Mul(rat(capacityOf(v)), big.NewRat(int64(wish[name]-reporting[name]), 1)))
	}
	for name := range n.moving {
		if !moving[name] {
			delete(n.moving, name)
		}
	}

	// Whether one could go.
	spares := func(v saturation.Variant) bool {
		rest := new(big.Rat).Sub(capacity, rat(capacityOf(v)))
		if even {
			return sums.safe
		}
		if sums.free < 2 || sums.saturated+sums.missing > 0 || rest.Sign() <= 0 {
			return false
		}
		share := new(big.Rat).Quo(capacity, rest)
		share.Quo(share, big.NewRat(int64(sums.free), 1))
		return n.fits(sums.loadKV, sums.loadQueue, share)
	}
	safe := even && sums.safe
	for _, name := range names {
		safe = safe || spares(states[name])
	}
	safe = safe && !blocked && sums.free+sums.saturated > 0

	// The dearest that may go, of those of a capacity that has been spare for as long as others.
	most := 0.0
	pick := func() (chosen string) {
		for _, name := range names {
			v := states[name]
			large := most > 0 && capacityOf(v) > most
			if wish[name] != v.Current || reporting[name] > v.Current || v.Current <= max(v.Min, 1) || large || !spares(v) {
				continue
			}
			if chosen == "" || priceOf(v).Cmp(priceOf(states[chosen])) >= 0 {
				chosen = name
			}
		}
		return chosen
	}
	spare := func() float64 {
		if chosen := pick(); chosen != "" && !even {
			return capacityOf(states[chosen])
		}
		return 0
	}
	larger := 0.0
	if safe {
		larger = spare()
		if n.safe != nil && larger > n.spare && n.config.DownStabilization > 0 {
			if most = n.spare; spare() > 0 {
				larger = spare()
			} else {
				most = 0
			}
		}
	}
	if fleet != n.fleet || !safe || larger > n.spare {
		n.safe = nil
	}
	n.fleet, n.spare = fleet, larger
	if safe && n.safe == nil {
		n.safe = &now
	}

	deficit := n.config.Step == saturation.Deficit
	if sums.rows == sums.missing || back || blocked && (!deficit || !onlyGrowth || !sums.up) {
		return targets
	}
	give := func(name string, by int32) {
		targets[name] = naiveTarget{replicas: clampTo(states[name], wish[name]+by)}
	}
	if sums.up {
		// What is lacking, at most as much as there is.
		rows := big.NewRat(int64(sums.rows), 1)
		ratio := big.NewRat(0, 1)
		for _, x := range []struct{ load, threshold, trigger *big.Rat }{
			{sums.loadKV, rat(n.config.KVCache), rat(n.config.KVSpare)},
			{sums.loadQueue, rat(n.config.QueueLength), rat(n.config.QueueSpare)},
		} {
			need := new(big.Rat).Quo(x.load, rows)
			need.Quo(need, new(big.Rat).Sub(x.threshold, x.trigger))
			if need.Cmp(ratio) > 0 {
				ratio = need
			}
		}
		if ratio.Cmp(big.NewRat(2, 1)) > 0 {
			ratio = big.NewRat(2, 1)
		}
		lacking := new(big.Rat).Mul(capacity, new(big.Rat).Sub(ratio, big.NewRat(1, 1)))
		if deficit && coming.Sign() > 0 && lacking.Cmp(coming) <= 0 {
			return targets
		}
		for _, aside := range []bool{false, true} {
			chosen := ""
			for _, name := range names {
				v := states[name]
				full := v.Max > 0 && wish[name] >= v.Max
				onWay := wish[name] != v.Current && (stuck[name] || !deficit)
				pending := v.Pending > 0 && !stuck[name] && !deficit
				if full || onWay || pending || stuck[name] != aside {
					continue
				}
				if chosen == "" || priceOf(v).Cmp(priceOf(states[chosen])) < 0 {
					chosen = name
				}
			}
			if chosen == "" {
				continue
			}
			by := int64(1)
			if deficit {
				gap := new(big.Rat).Sub(lacking, coming)
				gap.Quo(gap, rat(capacityOf(states[chosen])))
				for big.NewRat(by, 1).Cmp(gap) < 0 {
					by++
				}
			}
			give(chosen, int32(by))
			return targets
		}
		return targets
	}
	if !safe || now.Sub(*n.safe) < n.config.DownStabilization {
		return targets
	}
	if chosen := pick(); chosen != "" {
		give(chosen, -1)
	}
	return targets
}

func (n *naive) applied(now time.Time) {
	if n.config.Mode == saturation.Default && (n.seen == nil || !now.Before(*n.seen)) {
		n.safe = nil
	}
}

// shuffled returns a copy in another order.
func shuffled[T any](s []T, by func(n int) int) []T {
	s = slices.Clone(s)
	for i := len(s) - 1; i > 0; i-- {
		j := by(i + 1)
		s[i], s[j] = s[j], s[i]
	}
	return s
}
