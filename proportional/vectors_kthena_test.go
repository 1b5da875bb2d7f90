package proportional_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// The rules by which answers differ from Kthena's.
const (
	ruleNegative      = "a negative value is missing, not a load"
	ruleAverage       = "an average is not a total: it counts for every ready replica"
	ruleCounted       = "the load is judged against the requested replicas, Kthena's against the instances that report"
	ruleTruncates     = "a percentage is rounded away from where it starts, so that none is stuck"
	ruleInt32         = "a product beyond int32 does not wrap"
	ruleFromZero      = "in panic the limits hold from zero too"
	ruleBlocks        = "a metric without a sample blocks a scale-down, Kthena leaves it out"
	ruleUnknownSelect = "a selection that does not exist is refused"
	ruleLine          = "limits count changes within the period, not the extremes of the counts in it"
	ruleSnapshot      = "snapshots of histograms are for package scrape"
	ruleOwnDefaults   = "LLM has defaults of its own"
	ruleProfilePanics = "the profile has a panic, Kthena's has none unless a panicPolicy is given"
)

// averages are the endings by which Kthena's heterogeneous path tells averages from totals.
var averages = []string{"_utilization", "_usage", "_ratio", "_percent", "_saturation"}

func isAverage(name string) bool {
	for _, ending := range averages {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return true
		}
	}
	return false
}

func kthenaRecommendation(row json.RawMessage) (outcome, error) {
	var r struct {
		Min, Max, Current int32
		Tolerance         float64
		Targets           map[string]float64
		Unready           int32
		Ready             [][2]json.RawMessage
		External          map[string]float64
		Want              [2]any
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	wantCount, _ := r.Want[0].(float64)
	skip, _ := r.Want[1].(bool)

	c := proportional.Config{Bounds: scaling.Bounds{Min: r.Min, Max: r.Max}}
	c.Up.Tolerance, c.Down.Tolerance = r.Tolerance, r.Tolerance
	obs := scaling.Observation{SpecReplicas: r.Current}
	type instances struct {
		count  float64
		values map[string]float64
	}
	var ready []instances
	for _, pair := range r.Ready {
		var i instances
		if err := json.Unmarshal(pair[0], &i.count); err != nil {
			return met, err
		}
		if err := json.Unmarshal(pair[1], &i.values); err != nil {
			return met, err
		}
		ready = append(ready, i)
		obs.ReadyReplicas += int32(i.count)
	}
	if len(r.Ready) == 0 && len(r.External) > 0 { // nothing is said of pods
		obs.ReadyReplicas = r.Current
	}
	var average, negative, zero, counted, absent, edge, noise bool
	ours := int32(-1) // by the plain rule
	for name, target := range r.Targets {
		m := proportional.Metric{Name: name, Target: target}
		var lower, upper float64
		known := false
		if e, ok := r.External[name]; ok {
			m.Measure = proportional.Total
			lower, upper, known = e, e, e >= 0
			if isAverage(name) {
				m.Measure, average = proportional.Average, true
				lower, upper = e*float64(obs.ReadyReplicas), e*float64(obs.ReadyReplicas)
			}
			negative = negative || e < 0
			obs.Readings = append(obs.Readings, scaling.Exactly(name, e))
		} else {
			sum, reporting, missing := 0.0, 0.0, 0.0
			for _, i := range ready {
				if v, ok := i.values[name]; ok && v < 0 { // missing, as semantics has it
					negative = true
					missing += i.count
				} else if ok {
					sum += v * i.count
					reporting += i.count
				} else {
					missing += i.count
				}
			}
			gone := missing + float64(r.Unready)
			pods := reporting + gone
			lower, upper, known = sum, sum+gone*target, reporting > 0
			counted = counted || known && pods != float64(r.Current)
			if known {
				obs.Readings = append(obs.Readings, scaling.Reading{
					Metric: name, Lower: lower / pods, Upper: upper / pods,
					Values: int32(reporting), NotReady: r.Unready, Failed: int32(missing),
				})
			}
		}
		zero = zero || target <= 0
		absent = absent || !known
		if known && target > 0 {
			noise = noise || nearWhole(lower/target) || nearWhole(upper/target)
			edge = edge || onEdge(lower/target/float64(r.Current), r.Tolerance, r.Tolerance) || onEdge(upper/target/float64(r.Current), r.Tolerance, r.Tolerance)
		}
		c.Metrics = append(c.Metrics, m)
		want := r.Current
		if known {
			want = plainly(lower, upper, target, r.Current, r.Tolerance, r.Tolerance)
		}
		ours = max(ours, want)
	}
	if len(c.Metrics) == 0 {
		c.Metrics = []proportional.Metric{{Name: "none", Target: 1}}
	}
	s, err := proportional.New(c)
	if err != nil {
		if zero || r.Min > r.Max || r.Max < 1 || r.Min < 0 || r.Tolerance > 1 {
			return listed(ruleRefused)
		}
		return met, err
	}
	_, d := s.Decide(proportional.State{}, start, obs)
	odd := d.Verdict != scaling.Unknown && c.Bounds.Contains(r.Current) && d.Replicas != c.Bounds.Clamp(ours)
	if skip == (d.Verdict == scaling.Unknown) && (skip || float64(d.Replicas) == wantCount) && (!average || !odd) {
		return met, nil
	}
	if odd {
		return differs("plainly %d, got %s", ours, d.Explain())
	}
	switch {
	case average:
		return listed(ruleAverage)
	case negative:
		return listed(ruleNegative)
	case absent && float64(d.Replicas) > wantCount:
		return listed(ruleBlocks)
	case r.Unready > 0 && float64(d.Replicas) > wantCount:
		return listed(ruleNotReady)
	case edge:
		return listed(ruleEdge)
	case noise:
		return listed(ruleNoise)
	case counted:
		return listed(ruleCounted)
	}
	return differs("%s", d.Explain())
}

// nearWhole reports whether a quotient is a whole number up to float noise, which may be on either side of it.
func nearWhole(q float64) bool {
	return math.Abs(q-math.Round(q)) <= 1e-9*math.Abs(q)
}

type kthenaPolicy struct {
	Instances int32
	Percent   int32
	Select    string
}

// rateLimit expresses a policy. No change of one kind is none at all where the smaller change counts, and does not
// count where the larger does.
func (p kthenaPolicy) rateLimit() scaling.RateLimit {
	var l scaling.RateLimit
	if p.Instances > 0 {
		l.Limits = append(l.Limits, scaling.Limit{Replicas: p.Instances, Period: time.Minute})
	}
	if p.Percent > 0 {
		l.Limits = append(l.Limits, scaling.Limit{Percent: p.Percent, Period: time.Minute})
	}
	switch {
	case len(l.Limits) == 0, p.Select == "And" && len(l.Limits) < 2:
		l.Select = scaling.SelectDisabled
	case p.Select == "And":
		l.Select = scaling.SelectMin
	}
	return l
}

func kthenaCorrection(row json.RawMessage) (outcome, error) {
	var r struct {
		Panic                          bool
		Min, Max, Current, Recommended int32
		ScaleDown, ScaleUp             kthenaPolicy
		PanicPercent                   int32
		History                        map[string][]int32
		Want                           int32
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	for name := range r.History {
		if name != "maxRecommendation" && name != "minRecommendation" && !strings.HasPrefix(name, "maxCorrected") && !strings.HasPrefix(name, "minCorrected") {
			return differs("history %q", name)
		}
	}
	c := pointwise(byLoad)
	c.Bounds = scaling.Bounds{Min: r.Min, Max: r.Max}
	c.RateLimits.Down, c.RateLimits.Up = r.ScaleDown.rateLimit(), r.ScaleUp.rateLimit()
	now := start
	state := proportional.State{Seen: scaling.StampOf(now)}
	obs := holding(r.Current, scaling.Exactly("load", float64(r.Recommended)))
	policy, direction := r.ScaleUp, +1.0
	if r.Recommended < r.Current {
		policy, direction = r.ScaleDown, -1
	}
	var before []int32 // corrected values that the limit looks back at
	if r.Panic {
		policy = kthenaPolicy{Percent: r.PanicPercent, Select: "Or"}
		c.RateLimits.Up = policy.rateLimit()
		c.StableWindow, c.Resolution = time.Minute, time.Second
		c.Panic = proportional.Panic{Window: 6 * time.Second, Threshold: 1000}
		state.Panic, state.Peak = scaling.StampOf(now), r.Current
		if err := remember(&state, c, now, float64(r.Recommended), float64(r.Recommended)); err != nil {
			return met, err
		}
		obs.Readings = nil
		before = r.History["minCorrectedForPanic"]
	} else {
		for _, rec := range r.History["maxRecommendation"] {
			c.Stabilization.Down = time.Hour
			state.Recommendations.Highs.Record(window.Window{Length: time.Hour}, now, float64(rec))
		}
		for _, rec := range r.History["minRecommendation"] {
			c.Stabilization.Up = time.Hour
			state.Recommendations.Lows.Record(window.Window{Length: time.Hour}, now, float64(rec))
		}
		if state.Recommendations.Highs.Len() == 0 { // not the first decision ever
			state.Recommendations.Highs.Record(window.Window{Length: c.Stabilization.Down}, now, float64(r.Recommended))
		}
		prefix := "minCorrected"
		if direction < 0 {
			prefix = "maxCorrected"
		}
		for name, values := range r.History {
			if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, "Panic") {
				before = append(before, values...)
			}
		}
	}
	// The limits there start from the extreme of the counts in the period, which here is the count at its beginning.
	from := r.Current
	for _, v := range before {
		if direction > 0 {
			from = min(from, v)
		} else {
			from = max(from, v)
		}
	}
	if from != r.Current {
		state.Changes.Applied = []scaling.Change{{At: now.Add(-time.Second).UnixMilli(), Delta: r.Current - from}}
	}
	if policy.Select != "Or" && policy.Select != "And" {
		c.RateLimits.Up.Select = scaling.Select(9)
		if _, err := proportional.New(c); err == nil {
			return differs("an unknown select was taken")
		}
		return listed(ruleUnknownSelect)
	}
	s, err := proportional.New(c)
	if err != nil {
		return met, err
	}
	_, d := s.Decide(state, now, obs)
	if d.Replicas == r.Want {
		return met, nil
	}
	part := float64(from) * float64(policy.Percent) / 100
	switch {
	case !c.Bounds.Contains(r.Current) && d.Replicas == c.Bounds.Clamp(r.Current):
		return listed(ruleBoundsFirst)
	case int64(from)*int64(policy.Percent) > math.MaxInt32:
		return listed(ruleInt32)
	case r.Panic && from == 0 && d.Replicas <= max(r.Current, min(1, r.Recommended)):
		return listed(ruleFromZero)
	case from == 0 && d.Replicas == r.Want+1:
		return listed(rulePercentMoves)
	case part != math.Trunc(part) && d.Replicas == r.Want+int32(direction):
		return listed(ruleTruncates)
	}
	return differs("%s", d.Explain())
}

// kthenaSlidingWindow runs record windows on the windows that stabilization has, and line windows on the changes that
// limits count.
func kthenaSlidingWindow(row json.RawMessage) (outcome, error) {
	var r struct {
		Kind  string
		Fresh int64 `json:"freshMs"`
		Ops   [][]any
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	for _, op := range r.Ops {
		if length := map[any]int{"t": 2, "append": 2, "query": 3}; len(op) == 0 || len(op) != length[op[0]] {
			return differs("op %v", op)
		}
	}
	switch r.Kind {
	case "snapshot":
		return listed(ruleSnapshot)
	case "max-line", "min-line":
		return kthenaLine(r.Fresh, r.Ops)
	case "max-record", "min-record":
	default:
		return differs("kind %q", r.Kind)
	}
	// Fresh is inclusive there: a window one millisecond longer. None is none.
	w := window.Window{Length: time.Duration(r.Fresh+1) * time.Millisecond}
	var highs window.Max
	var lows window.Min
	var now time.Time
	for i, op := range r.Ops {
		number, _ := op[1].(float64)
		switch op[0] {
		case "t":
			now = time.UnixMilli(int64(number))
		case "append":
			if r.Fresh > 0 {
				highs.Record(w, now, number)
				lows.Record(w, now, number)
			}
		case "query":
			got, ok := highs.Max(w, now)
			if r.Kind == "min-record" {
				got, ok = lows.Min(w, now)
			}
			want, some := op[2].(float64)
			if ok != some || got != want {
				return differs("op %d: %v %v, want %v", i, got, ok, op[2])
			}
		}
	}
	return met, nil
}

// kthenaLine replays the counts as changes. Where the period starts, a limit here stands at the count of that time.
func kthenaLine(fresh int64, ops [][]any) (outcome, error) {
	last := 0.0
	for _, op := range ops { // a period is at least a second here, and of whole ones
		ms, isTime := op[1].(float64)
		if isTime = isTime && op[0] == "t"; fresh < 1000 || isTime && (math.Mod(ms, 1000) != 0 || ms < last) {
			return listed(ruleLine)
		}
		if isTime {
			last = ms
		}
	}
	const room = 1_000_000
	c := pointwise(byLoad)
	c.RateLimits.Up.Limits = []scaling.Limit{{Replicas: room, Period: time.Duration(fresh) * time.Millisecond}}
	s, err := proportional.New(c)
	if err != nil {
		return met, err
	}
	type held struct {
		since time.Time
		count int32
	}
	var state proportional.State
	var counts []held
	var now time.Time
	all := true
	for i, op := range ops {
		number, _ := op[1].(float64)
		switch op[0] {
		case "t":
			now = time.UnixMilli(int64(number))
		case "append":
			if len(counts) > 0 {
				state = s.Applied(state, now, counts[len(counts)-1].count, int32(number))
			}
			counts = append(counts, held{now, int32(number)})
		case "query":
			want, some := op[2].(float64)
			current := int32(number)
			if len(counts) > 0 && counts[len(counts)-1].count != current {
				all = false // someone else changed the count: no change of ours
				continue
			}
			_, d := s.Decide(mustCopy(state), now, holding(current, scaling.Exactly("load", 1e9)))
			got := d.Replicas - room
			ours := current
			if len(counts) > 0 {
				ours = counts[0].count
				for _, h := range counts {
					if h.since.UnixMilli() <= now.UnixMilli()-fresh {
						ours = h.count
					}
				}
			}
			if got != max(ours, current-room) {
				return differs("op %d: the period starts at %d, plainly %d", i, got, ours)
			}
			all = all && some && float64(got) == want
		}
	}
	if all {
		return met, nil
	}
	return listed(ruleLine)
}

func kthenaDefaultsCRD(row json.RawMessage) (outcome, error) {
	var r struct {
		Tolerance float64 `json:"tolerancePercent"`
		Stable    struct {
			kthenaPolicy
			Period float64 `json:"periodS"`
		}
		Panic struct {
			Threshold float64 `json:"thresholdPercent"`
		}
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	c := proportional.Kthena(scaling.Bounds{Min: 1, Max: 8}, byLoad)
	got := []float64{c.Up.Tolerance * 100, c.Down.Tolerance * 100, c.Panic.Threshold * 100}
	want := []float64{r.Tolerance, r.Tolerance, r.Panic.Threshold}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-9 {
			return listed(ruleOwnDefaults)
		}
	}
	c.RateLimits.Up = r.Stable.rateLimit()
	c.RateLimits.Down = r.Stable.rateLimit()
	return met, c.Validate()
}

func kthenaDefaultsWebhook(row json.RawMessage) (outcome, error) {
	type policy struct {
		kthenaPolicy
		Stabilization float64 `json:"stabilizationS"`
	}
	var r struct {
		ScaleDown, ScaleUpStable policy
		Panic                    struct {
			Hold float64 `json:"holdS"`
		}
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	c := proportional.Kthena(scaling.Bounds{Min: 1, Max: 8}, byLoad)
	if c.Stabilization.Down.Seconds() != r.ScaleDown.Stabilization || c.Stabilization.Up.Seconds() != r.ScaleUpStable.Stabilization {
		return listed(ruleOwnDefaults)
	}
	c.RateLimits.Up, c.RateLimits.Down = r.ScaleUpStable.rateLimit(), r.ScaleDown.rateLimit()
	if err := c.Validate(); err != nil {
		return met, err
	}
	if r.Panic.Hold == 0 && c.Panic.Threshold > 0 { // none there unless a panicPolicy is given
		return listed(ruleProfilePanics)
	}
	return met, nil
}

// kthenaRanges takes what Kthena takes, at both ends of its ranges.
func kthenaRanges(row json.RawMessage) (outcome, error) {
	var r struct {
		Tolerance   [2]float64 `json:"tolerancePercent"`
		Threshold   [2]float64 `json:"panicThresholdPercent"`
		Percent     [2]int32   `json:"stablePercent"`
		Minutes     [2]float64 `json:"periodsAndWindowsMinutes"`
		MinReplicas [2]int32   `json:"minReplicas"`
		MaxReplicas [2]int32   `json:"maxReplicas"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	for end := range 2 {
		c := proportional.Kthena(scaling.Bounds{Min: r.MinReplicas[end], Max: r.MaxReplicas[end]}, byLoad)
		c.Up.Tolerance, c.Down.Tolerance = r.Tolerance[end]/100, r.Tolerance[end]/100
		c.Panic.Threshold = r.Threshold[end] / 100
		c.Stabilization.Down = time.Duration(r.Minutes[end] * float64(time.Minute))
		c.RateLimits.Up = kthenaPolicy{Percent: r.Percent[end], Instances: 1, Select: "Or"}.rateLimit()
		if err := c.Validate(); err != nil {
			return met, fmt.Errorf("end %d: %w", end, err)
		}
	}
	return met, nil
}
