package proportional_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// The rules by which answers differ from those of a HorizontalPodAutoscaler.
const (
	ruleExactPercent = "percentages are computed in whole numbers, without float noise"
	rulePercentMoves = "a percentage of nothing still moves by one"
	ruleInclusive    = "a recommendation leaves the window at an age of exactly its length"
	ruleSecond       = "changes of one second and one direction are one, and leave their period as the latest does"
	ruleForgotten    = "a change leaves the memory at an age of exactly the longest period, from which on it counts no more"
	ruleBelowZero    = "a count at the start of a period is never below zero"
	ruleNotReady     = "pods that are not ready count at the target for a scale-down, HPA leaves them out"
	ruleTolerance    = "the tolerance is of the load per requested replica, HPA's of the load per counted pod"
	ruleTruncated    = "an average is not truncated: to whole percents, or thousandths"
	ruleInterval     = "missing pods make an interval, HPA guesses the direction first"
	ruleNoneReady    = "an average over no ready replica is unknown"
	ruleEdge         = "exactly at the tolerance, up to float noise, holds"
	ruleBoundsFirst  = "a count outside the bounds is repaired before anything else"
)

// byLoad is the metric whose load is the recommendation.
var byLoad = proportional.Metric{Name: "load", Target: 1, Measure: proportional.Total}

type hpaRules struct {
	Policies []struct {
		Type   string
		Value  int32
		Period float64 `json:"period_s"`
	}
	Select string
}

// rateLimit reads rules, or takes the default ones where a row says "default".
func rateLimit(data json.RawMessage, byDefault scaling.RateLimit) (scaling.RateLimit, error) {
	if string(data) == `"default"` {
		return byDefault, nil
	}
	var r hpaRules
	if err := decode(data, &r); err != nil {
		return scaling.RateLimit{}, err
	}
	var l scaling.RateLimit
	for _, p := range r.Policies {
		limit, err := limitFor(p.Type, p.Value, p.Period)
		if err != nil {
			return l, err
		}
		l.Limits = append(l.Limits, limit)
	}
	sel, err := selectOf(r.Select)
	l.Select = sel
	return l, err
}

// limitFor makes a limit of a policy of either type.
func limitFor(kind any, value int32, seconds float64) (scaling.Limit, error) {
	period := time.Duration(seconds * float64(time.Second))
	switch kind {
	case "Pods":
		return scaling.Limit{Replicas: value, Period: period}, nil
	case "Percent":
		return scaling.Limit{Percent: value, Period: period}, nil
	}
	return scaling.Limit{}, fmt.Errorf("policy type %v", kind)
}

func selectOf(name string) (scaling.Select, error) {
	for _, s := range []scaling.Select{scaling.SelectMax, scaling.SelectMin, scaling.SelectDisabled} {
		if s.String() == name || name == "" {
			return s, nil
		}
	}
	return 0, errors.New("select " + name)
}

type hpaEvent struct {
	Age    float64 `json:"age_s"`
	Change int32   `json:"change"`
}

// changes makes the memory of rate limits of events, in order of time.
func changes(now time.Time, up, down []hpaEvent) scaling.Changes {
	var c scaling.Changes
	add := func(events []hpaEvent, sign int32) {
		for _, e := range events {
			c.Applied = append(c.Applied, scaling.Change{At: now.Add(-time.Duration(e.Age * float64(time.Second))).UnixMilli(), Delta: sign * e.Change})
		}
	}
	add(up, +1)
	add(down, -1)
	slices.SortStableFunc(c.Applied, func(a, b scaling.Change) int { return cmp.Compare(a.At, b.At) })
	return c
}

// inexact reports whether the percent limits of a direction are not what exact arithmetic gives, in float64 as HPA has
// them.
func inexact(l scaling.RateLimit, now time.Time, c scaling.Changes, current int32, sign float64) (noise, stuck bool) {
	for _, limit := range l.Limits {
		if limit.Percent == 0 {
			continue
		}
		start := float64(current)
		for _, e := range c.Applied {
			if e.At > now.UnixMilli()-limit.Period.Milliseconds() {
				start -= float64(e.Delta)
			}
		}
		theirs := math.Ceil(start * (1 + float64(limit.Percent)/100))
		if sign < 0 {
			theirs = math.Trunc(start * (1 - float64(limit.Percent)/100))
		}
		ours := start + sign*math.Ceil(start*float64(limit.Percent)/100)
		noise = noise || theirs != ours
		stuck = stuck || sign > 0 && start <= 0
	}
	return noise, stuck
}

func hpaRateLimits(row json.RawMessage) (outcome, error) {
	var r struct {
		Current, Desired, Min, Max int32
		UpRules                    json.RawMessage `json:"up_rules"`
		DownRules                  json.RawMessage `json:"down_rules"`
		UpEvents                   []hpaEvent      `json:"up_events"`
		DownEvents                 []hpaEvent      `json:"down_events"`
		Want                       int32
		Reason                     string `json:"want_reason"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	c := pointwise(byLoad)
	c.Bounds = scaling.Bounds{Min: r.Min, Max: r.Max}
	byDefault := proportional.HPA(c.Bounds).RateLimits
	var err error
	if c.RateLimits.Up, err = rateLimit(r.UpRules, byDefault.Up); err != nil {
		return met, err
	}
	if c.RateLimits.Down, err = rateLimit(r.DownRules, byDefault.Down); err != nil {
		return met, err
	}
	s, err := proportional.New(c)
	if err != nil {
		return met, err
	}
	state := proportional.State{Changes: changes(start, r.UpEvents, r.DownEvents)}
	_, d := s.Decide(state, start, holding(r.Current, scaling.Exactly("load", float64(r.Desired))))
	reason := map[scaling.Code]string{
		scaling.UpLimited: "ScaleUpLimit", scaling.DownLimited: "ScaleDownLimit",
		scaling.AboveMax: "TooManyReplicas", scaling.BelowMin: "TooFewReplicas",
	}[d.Code()]
	if reason == "" {
		reason = "DesiredWithinRange"
	}
	if d.Replicas == r.Max && r.Reason == "TooManyReplicas" || d.Replicas == r.Min && r.Reason == "TooFewReplicas" {
		reason = r.Reason // limit and bound are the same count
	}
	if d.Replicas == r.Want && (r.Reason == "" || reason == r.Reason) {
		return met, nil
	}
	upNoise, stuck := inexact(c.RateLimits.Up, start, state.Changes, r.Current, +1)
	downNoise, _ := inexact(c.RateLimits.Down, start, state.Changes, r.Current, -1)
	switch {
	case !c.Bounds.Contains(r.Current) && d.Replicas == c.Bounds.Clamp(r.Current):
		return listed(ruleBoundsFirst)
	case r.Desired > r.Current && upNoise, r.Desired < r.Current && downNoise:
		return listed(ruleExactPercent)
	case stuck && d.Replicas == r.Want+1:
		return listed(rulePercentMoves)
	case r.Desired < r.Current && belowZero(c.RateLimits.Down, start, state.Changes, r.Current):
		return listed(ruleBelowZero)
	}
	return differs("%s", d.Explain())
}

// belowZero reports whether more was added in a period of a limit than there is, as others have taken it away.
func belowZero(l scaling.RateLimit, now time.Time, c scaling.Changes, current int32) bool {
	for _, limit := range l.Limits {
		begin := current
		for _, e := range c.Applied {
			if e.At > now.UnixMilli()-limit.Period.Milliseconds() {
				begin -= e.Delta
			}
		}
		if begin < 0 {
			return true
		}
	}
	return false
}

func hpaRateLimitUnits(row json.RawMessage) (outcome, error) {
	var r struct {
		Direction, Select string
		Current           int32
		Policies          [][3]any
		Want              int32 `json:"want_limit"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	sel, err := selectOf(r.Select)
	if err != nil {
		return met, err
	}
	if r.Direction != "up" && r.Direction != "down" {
		return differs("direction %q", r.Direction)
	}
	l := scaling.RateLimit{Select: sel}
	for _, p := range r.Policies {
		value, _ := p[1].(float64)
		period, _ := p[2].(float64)
		limit, err := limitFor(p[0], int32(value), period)
		if err != nil {
			return met, err
		}
		l.Limits = append(l.Limits, limit)
	}
	got, err := limitOf(l, r.Direction == "up", r.Current)
	if err != nil {
		return met, err
	}
	if got == r.Want {
		return met, nil
	}
	if r.Want < 0 && got == 0 {
		return listed(ruleBelowZero)
	}
	sign := -1.0
	if r.Direction == "up" {
		sign = 1
	}
	if noise, stuck := inexact(l, start, scaling.Changes{}, r.Current, sign); noise {
		return listed(ruleExactPercent)
	} else if stuck && got == 1 {
		return listed(rulePercentMoves)
	}
	return differs("limit %d", got)
}

// limitOf returns how far a count may go in one direction.
func limitOf(l scaling.RateLimit, up bool, current int32) (int32, error) {
	c := pointwise(byLoad)
	desired := 0.0
	if up {
		desired = 1e9
		c.RateLimits.Up = l
	} else {
		c.RateLimits.Down = l
	}
	s, err := proportional.New(c)
	if err != nil {
		return 0, err
	}
	_, d := s.Decide(proportional.State{}, start, holding(current, scaling.Exactly("load", desired)))
	return d.Replicas, nil
}

type hpaRecommendation struct {
	Rec int32
	Age float64 `json:"age_s"`
}

// stabilize returns what stabilization makes of a recommendation after a history of others.
func stabilize(st scaling.Stabilization, history []hpaRecommendation, current, desired int32) (scaling.Decision, error) {
	c := pointwise(byLoad)
	c.Stabilization = st
	s, err := proportional.New(c)
	if err != nil {
		return scaling.Decision{}, err
	}
	if len(history) == 0 { // not the first decision ever, which would record the present count
		history = []hpaRecommendation{{Rec: desired}}
	}
	history = slices.SortedStableFunc(slices.Values(history), func(a, b hpaRecommendation) int { return cmp.Compare(b.Age, a.Age) })
	var state proportional.State
	for _, h := range history {
		then := start.Add(-time.Duration(h.Age * float64(time.Second)))
		state.Recommendations.Lows.Record(window.Window{Length: st.Up}, then, float64(h.Rec))
		state.Recommendations.Highs.Record(window.Window{Length: st.Down}, then, float64(h.Rec))
	}
	_, d := s.Decide(state, start, holding(current, scaling.Exactly("load", float64(desired))))
	return d, nil
}

func hpaStabilization(row json.RawMessage) (outcome, error) {
	var r struct {
		Current, Desired int32
		Up               float64 `json:"up_window_s"`
		Down             float64 `json:"down_window_s"`
		History          []hpaRecommendation
		Want             int32
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	d, err := stabilize(scaling.Stabilization{
		Up: time.Duration(r.Up * float64(time.Second)), Down: time.Duration(r.Down * float64(time.Second)),
	}, r.History, r.Current, r.Desired)
	if err != nil {
		return met, err
	}
	if d.Replicas != r.Want {
		return differs("%s", d.Explain())
	}
	return met, nil
}

// hpaLegacyStabilization is the behaviour without a behavior: the highest recommendation of the window, whatever the
// present count, here one that is above all.
func hpaLegacyStabilization(row json.RawMessage) (outcome, error) {
	var r struct {
		Window  float64 `json:"window_s"`
		History []hpaRecommendation
		Desired int32
		Want    int32
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	current, edge := r.Desired, false
	for _, h := range r.History {
		current = max(current, h.Rec)
		edge = edge || h.Age == r.Window
	}
	d, err := stabilize(scaling.Stabilization{Down: time.Duration(r.Window * float64(time.Second))}, r.History, current, r.Desired)
	switch {
	case err != nil:
		return met, err
	case d.Replicas == r.Want:
		return met, nil
	case edge:
		return listed(ruleInclusive)
	}
	return differs("%s", d.Explain())
}

// hpaLegacyBounds is the cap without a behavior: twice the present count, or 4 if that is more.
func hpaLegacyBounds(row json.RawMessage) (outcome, error) {
	var r struct {
		Current, Desired, Min, Max, Want int32
		Reason                           string `json:"want_reason"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	c := pointwise(byLoad)
	c.Bounds = scaling.Bounds{Min: r.Min, Max: r.Max}
	c.RateLimits.Up.Limits = []scaling.Limit{{Percent: 100, Period: time.Second}}
	if r.Current < 4 {
		c.RateLimits.Up.Limits = append(c.RateLimits.Up.Limits, scaling.Limit{Replicas: 4 - r.Current, Period: time.Second})
	}
	s, err := proportional.New(c)
	if err != nil {
		return met, err
	}
	_, d := s.Decide(proportional.State{}, start, holding(r.Current, scaling.Exactly("load", float64(r.Desired))))
	switch {
	case d.Replicas == r.Want:
		return met, nil
	case !c.Bounds.Contains(r.Current) && d.Replicas == c.Bounds.Clamp(r.Current):
		return listed(ruleBoundsFirst)
	}
	return differs("%s", d.Explain())
}

// hpaEventLog records a change behind others and looks at what is left of them, and what counted in the last minute.
func hpaEventLog(row json.RawMessage) (outcome, error) {
	var r struct {
		Before []hpaEvent
		Add    int32 `json:"add_change"`
		Rules  json.RawMessage
		Sum    int32 `json:"want_sum_last_60s"`
		After  []struct {
			Change   int32
			Outdated bool
		} `json:"want_after"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	c := pointwise(byLoad)
	if len(r.Rules) > 0 && string(r.Rules) != "null" {
		var err error
		if c.RateLimits.Up, err = rateLimit(r.Rules, scaling.RateLimit{}); err != nil {
			return met, err
		}
	}
	s, err := proportional.New(c)
	if err != nil {
		return met, err
	}

	// What counted in the last minute shows in a limit of 1,000 a minute.
	const current, room = 500, 1000
	counting := pointwise(byLoad)
	counting.RateLimits.Up.Limits = []scaling.Limit{{Replicas: room, Period: time.Minute}}
	counter, err := proportional.New(counting)
	if err != nil {
		return met, err
	}
	state := proportional.State{Changes: changes(start, r.Before, nil)}
	_, d := counter.Decide(state, start, holding(current, scaling.Exactly("load", 1e9)))
	if sum := current + room - d.Replicas; sum != r.Sum {
		return differs("%d in the last minute, want %d", sum, r.Sum)
	}

	state = s.Applied(proportional.State{Changes: changes(start, r.Before, nil)}, start, current, current+r.Add)
	var longest time.Duration
	for _, l := range c.RateLimits.Up.Limits {
		longest = max(longest, l.Period)
	}
	var got, want, edge []int32
	for _, e := range state.Changes.Applied {
		got = append(got, e.Delta)
	}
	for _, e := range r.Before {
		if longest > 0 && e.Age == longest.Seconds() {
			edge = append(edge, e.Change)
		}
	}
	for _, e := range r.After {
		if !e.Outdated {
			want = append(want, e.Change)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return met, nil
	}
	for _, change := range edge { // where a change is that counts in no period any more
		if i := slices.Index(want, change); i >= 0 {
			want = slices.Delete(want, i, i+1)
		}
	}
	if slices.Equal(got, want) {
		return listed(ruleForgotten)
	}
	for _, e := range slices.Backward(r.Before) { // the latest of the second in which the new one comes, and of its direction
		i, k := slices.Index(want, e.Change), slices.Index(want, r.Add)
		if e.Age < 1 && start.Add(-time.Duration(e.Age*float64(time.Second))).Unix() == start.Unix() && (e.Change > 0) == (r.Add > 0) && i >= 0 && k >= 0 {
			want[k] += e.Change
			want = slices.Delete(want, slices.Index(want, e.Change), slices.Index(want, e.Change)+1)
			slices.Sort(want)
			if slices.Equal(got, want) {
				return listed(ruleSecond)
			}
			break
		}
	}
	return differs("%v, want %v", got, want)
}

func hpaFloatEdgeDown(row json.RawMessage) (outcome, error) { return hpaFloatEdge(row, false) }
func hpaFloatEdgeUp(row json.RawMessage) (outcome, error)   { return hpaFloatEdge(row, true) }

// hpaFloatEdge is met by the exact limit, which is what ought to be.
func hpaFloatEdge(row json.RawMessage, up bool) (outcome, error) {
	var r struct{ Start, Percent, Got, Exact int32 }
	if err := decode(row, &r); err != nil {
		return met, err
	}
	got, err := limitOf(scaling.RateLimit{Limits: []scaling.Limit{{Percent: r.Percent, Period: time.Minute}}}, up, r.Start)
	if err != nil {
		return met, err
	}
	switch {
	case got == r.Exact:
		return met, nil
	case up && r.Start == 0 && got == 1:
		return listed(rulePercentMoves)
	case r.Exact < 0 && got == 0:
		return listed(ruleBelowZero)
	}
	return differs("limit %d", got)
}

func hpaDefaults(row json.RawMessage) (outcome, error) {
	var r struct {
		Tolerance float64
		Down      float64         `json:"downscale_stabilization_s"`
		UpRules   json.RawMessage `json:"up_rules"`
		DownRules json.RawMessage `json:"down_rules"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	c := proportional.HPA(scaling.Bounds{Min: 1, Max: 2}, byLoad)
	up, err := rateLimit(r.UpRules, scaling.RateLimit{})
	if err != nil {
		return met, err
	}
	down, err := rateLimit(r.DownRules, scaling.RateLimit{})
	if err != nil {
		return met, err
	}
	same := func(a, b scaling.RateLimit) bool { return slices.Equal(a.Limits, b.Limits) && a.Select == b.Select }
	if c.Up.Tolerance != r.Tolerance || c.Down.Tolerance != r.Tolerance || c.Stabilization.Down.Seconds() != r.Down ||
		c.Stabilization.Up != 0 || !same(up, c.RateLimits.Up) || !same(down, c.RateLimits.Down) {
		return differs("%+v", c)
	}
	return met, nil
}
