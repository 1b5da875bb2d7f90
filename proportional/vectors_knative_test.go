package proportional_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// The rules by which answers differ from Knative's.
const (
	ruleReadyUnreadable = "the ready count cannot be read: the caller has no observation and asks nothing"
	ruleNoSuchLoads     = "no loads have these averages: the panic window is a part of the stable one"
	ruleNoise           = "a quotient off by float noise is not rounded up"
	ruleFirstSight      = "the first decision records the present count as a recommendation"
	ruleOneKept         = "one replica too is kept until the window is covered"
	ruleRefused         = "the configuration is refused"
	ruleWeighted        = "there is no weighted average"
	ruleGap             = "a bucket without a sample is missing, not zero"
	ruleSeveral         = "samples of one bucket are averaged, not added"
	ruleLate            = "a sample older than the latest is left out"
	ruleSilent          = "a window without a sample is unknown, not zero"
	ruleSlots           = "the window is not a whole number of buckets"
	ruleNotANumber      = "what is not a number, or negative, is missing"
	ruleRateCrosses     = "a rate bounds a change, it never turns one round"
	ruleLowDelay        = "recommendations are delayed, not what a rate has left of them"
	ruleDelayRaises     = "a delay keeps replicas, it never asks for more than there are"
	ruleDelaySlots      = "a delay is of its very length, not of slots of two seconds"
	ruleClockBack       = "a clock that goes back changes nothing"
	ruleNeverFewer      = "in panic there are no fewer replicas than were asked for, whatever is ready"
)

type knativeSpec struct {
	Target          float64 `json:"target"`
	PanicThreshold  float64 `json:"panic_threshold"`
	MaxUp           float64 `json:"max_up"`
	MaxDown         float64 `json:"max_down"`
	StableWindow    float64 `json:"stable_window_s"`
	ScaleDownDelay  float64 `json:"scale_down_delay_s"`
	ActivationScale int32   `json:"activation_scale"`
}

// config returns the configuration that expresses a spec. A stable window of zero, which cannot be averaged over,
// becomes one of 60 ms: shorter than any step.
func (k knativeSpec) config(reachable bool) proportional.Config {
	stable := time.Duration(math.Round(k.StableWindow*1000)) * time.Millisecond
	if stable == 0 {
		stable = 60 * time.Millisecond
	}
	buckets := int64(60) // or the next more that are of whole milliseconds
	for n := stable.Milliseconds(); buckets < n && n%buckets != 0; {
		buckets++
	}
	resolution := stable / time.Duration(buckets)
	c := proportional.Config{
		Bounds:          anyCount,
		Metrics:         []proportional.Metric{{Name: "load", Target: k.Target, Measure: proportional.Total}},
		Up:              proportional.Rule{MaxRate: k.MaxUp},
		StableWindow:    stable,
		Resolution:      resolution,
		Panic:           proportional.Panic{Window: resolution, Threshold: k.PanicThreshold},
		ActivationScale: k.ActivationScale,
	}
	if reachable { // else there is neither a rate down nor a delay
		c.Down.MaxRate = k.MaxDown
		c.Stabilization.Down = time.Duration(k.ScaleDownDelay * float64(time.Second))
	}
	return c
}

// remember gives the state a window whose averages are the two given, or reports that none has.
func remember(state *proportional.State, c proportional.Config, now time.Time, stable, burst float64) error {
	n := float64(c.StableWindow / c.Resolution)
	older := (stable*n - burst) / (n - 1)
	if older < 0 && older > -1e-9*burst {
		older = 0
	}
	if older < 0 || stable < 0 || burst < 0 {
		return errors.New(ruleNoSuchLoads)
	}
	res := c.Resolution.Milliseconds()
	newest := now.UnixMilli() / res * res
	buckets := make([][3]float64, 0, int(n))
	for i := int64(n) - 1; i >= 1; i-- {
		buckets = append(buckets, [3]float64{float64(newest - i*res), older})
	}
	buckets = append(buckets, [3]float64{float64(newest), burst})
	data, err := json.Marshal(map[string]any{"samples": 1, "buckets": buckets})
	if err != nil {
		return err
	}
	load := proportional.Load{
		Metric: "load", Measure: proportional.Total,
		Since: scaling.StampOf(now.Add(-24 * time.Hour)), Last: scaling.StampOf(now),
	}
	if err := json.Unmarshal(data, &load.Window); err != nil {
		return err
	}
	state.Loads = []proportional.Load{load}
	return nil
}

func knativeSequence(row json.RawMessage) (outcome, error) {
	var r struct {
		Spec         knativeSpec `json:"spec"`
		InitialReady int32       `json:"initial_ready"`
		SeedPanic    *struct {
			Started *float64 `json:"panic_started_t"`
			Max     int32    `json:"max_panic_pods"`
		} `json:"seed_panic"`
		Steps []struct {
			T             float64 `json:"t"`
			Ready         int32   `json:"ready"`
			Stable        *number `json:"stable"`
			Burst         *number `json:"panic"`
			PodCountError bool    `json:"pod_count_error"`
			MetricsError  any     `json:"metrics_error"`
			MetricError   any     `json:"metric_error"`
			Reachable     *bool   `json:"reachable"`
			Spec          *knativeSpec
			Want          struct {
				Desired int32           `json:"desired"`
				Valid   *bool           `json:"valid"`
				Started json.RawMessage `json:"panic_started_t"` // a number, null, or nothing
			} `json:"want"`
		} `json:"steps"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	if len(r.Steps) == 0 {
		return differs("no steps")
	}
	var state proportional.State
	if r.InitialReady > 1 { // a start with several replicas is a panic there
		state.Panic, state.Peak = scaling.StampOf(start), r.InitialReady
	}
	if r.SeedPanic != nil && r.SeedPanic.Started != nil {
		state.Panic, state.Peak = scaling.StampOf(at(*r.SeedPanic.Started)), r.SeedPanic.Max
	}
	result := met
	spec := int32(-1)
	// What the delay may have differently by now.
	sighted, clamped, odd, noisy := false, false, false, false
	latest := math.Inf(-1)
	var recommended []knativeWish // while there was a delay
	for i, step := range r.Steps {
		if step.Spec != nil {
			r.Spec = *step.Spec
		}
		if spec < 0 {
			spec = step.Ready
		}
		if step.PodCountError {
			result = outcome{ruleReadyUnreadable}
			continue
		}
		now := at(step.T)
		c := r.Spec.config(step.Reachable == nil || *step.Reachable)
		s, err := proportional.New(c)
		if err != nil {
			if r.Spec.Target <= 0 || r.Spec.PanicThreshold <= 1 || r.Spec.MaxUp <= 1 || r.Spec.MaxDown <= 1 {
				return listed(ruleRefused)
			}
			return met, err
		}
		state.Loads = nil
		if step.Stable != nil && step.Burst != nil && step.MetricsError == nil && step.MetricError == nil {
			if x, y := float64(*step.Stable), float64(*step.Burst); !(x >= 0 && y >= 0 && max(x, y) <= 1e100) {
				return listed(ruleNotANumber)
			}
			if err := remember(&state, c, now, float64(*step.Stable), float64(*step.Burst)); err != nil {
				if err.Error() == ruleNoSuchLoads {
					return listed(ruleNoSuchLoads)
				}
				return met, err
			}
		}
		var d scaling.Decision
		state, d = s.Decide(state, now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: step.Ready})
		if step.T < latest { // from here on what is remembered differs too
			if d.Replicas != spec {
				return differs("step %d: the clock went back, got\n%s", i, d.Explain())
			}
			return listed(ruleClockBack)
		}
		latest = step.T
		if invalid := step.Want.Valid != nil && !*step.Want.Valid; invalid != (d.Verdict == scaling.Unknown) {
			return differs("step %d: valid %v, got %s", i, !invalid, d.Explain())
		} else if invalid {
			continue
		}
		ready := max(1, float64(step.Ready))
		most, least := math.Ceil(r.Spec.MaxUp*ready), math.Floor(ready/r.Spec.MaxDown)
		limited := func(x number) bool {
			n := math.Ceil(float64(x) / r.Spec.Target)
			return n > most || n < least
		}
		clamped = clamped || limited(*step.Stable) || limited(*step.Burst)
		odd = odd || math.Mod(step.T, 2) != 0 || math.Mod(r.Spec.ScaleDownDelay, 2) != 0
		noise := func(x number) bool {
			return float64(scaling.Ceil(float64(x)/r.Spec.Target)) != math.Ceil(float64(x)/r.Spec.Target)
		}
		delayed := c.Stabilization.Down > 0
		noisy = delayed && noisy || noise(*step.Stable) || noise(*step.Burst)
		burst := float64(*step.Burst) / r.Spec.Target
		if (math.Ceil(burst)/ready >= r.Spec.PanicThreshold) != (float64(scaling.Ceil(burst))/ready >= r.Spec.PanicThreshold) {
			return listed(ruleNoise) // a panic there, and none here
		}
		first := !sighted
		sighted = sighted || delayed
		if d.Replicas != step.Want.Desired {
			want, got, before := float64(step.Want.Desired), float64(d.Replicas), float64(spec)
			loaded := *step.Stable > 0 || state.Panic.Set && *step.Burst > 0
			if activation := float64(r.Spec.ActivationScale); activation > 0 && loaded { // it comes after the rates
				most = max(most, activation)
				if least > 0 {
					least = max(least, activation)
				}
			}
			switch {
			case noisy, want == most && float64(scaling.Ceil(r.Spec.MaxUp*ready)) != most,
				want == least && nearWhole(ready/r.Spec.MaxDown) && math.Round(ready/r.Spec.MaxDown) != least:
				return listed(ruleNoise)
			case want == most && most < got && got <= before, want == least && least > got && got >= before:
				return listed(ruleRateCrosses)
			case state.Panic.Set && d.Replicas == spec && step.Want.Desired < spec:
				return listed(ruleNeverFewer)
			case first && delayed && step.Want.Desired < spec && d.Replicas == spec:
				return listed(ruleFirstSight)
			case delayed && clamped:
				return listed(ruleLowDelay)
			case delayed && want > got && got >= before && slices.ContainsFunc(recommended, func(w knativeWish) bool {
				return w.at >= step.T-r.Spec.ScaleDownDelay && w.n >= step.Want.Desired
			}):
				return listed(ruleDelayRaises)
			case delayed && odd:
				return listed(ruleDelaySlots)
			}
			return differs("step %d: want %d, got\n%s", i, step.Want.Desired, d.Explain())
		}
		if len(step.Want.Started) > 0 {
			var want *float64
			if err := json.Unmarshal(step.Want.Started, &want); err != nil {
				return met, err
			}
			if want != nil && *want > step.T {
				return listed(ruleClockBack) // a panic of the future
			}
			got := state.Panic.Time().Sub(start).Seconds()
			if state.Panic.Set != (want != nil) || want != nil && math.Abs(got-*want) > 1e-3 {
				return differs("step %d: panic %v since %v, want %s", i, state.Panic.Set, got, step.Want.Started)
			}
		}
		spec = d.Replicas
		if delayed {
			recommended = append(recommended, knativeWish{step.T, step.Want.Desired})
		}
	}
	return result, nil
}

// A knativeWish is what was asked for at a time.
type knativeWish struct {
	at float64
	n  int32
}

// knativeStart checks what a fresh start does with a fleet whose load is gone: held as in a panic for a stable window,
// or let go.
func knativeStart(row json.RawMessage) (outcome, error) {
	var r struct {
		Ready int32 `json:"initial_ready"`
		Error bool  `json:"initial_ready_error"`
		Panic bool  `json:"want_in_panic"`
		Max   int32 `json:"want_max_panic_pods"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	c := proportional.KPA(anyCount, inflight)
	c.Down.MaxRate = 0
	s, err := proportional.New(c)
	if err != nil {
		return met, err
	}
	var state proportional.State
	for elapsed := time.Duration(0); elapsed < c.StableWindow; elapsed += 2 * time.Second {
		var d scaling.Decision
		state, d = s.Decide(state, start.Add(elapsed), holding(r.Ready, scaling.Exactly("inflight", 0)))
		if d.Replicas != r.Ready {
			return differs("%s: %d after a start with %d\n%s", elapsed, d.Replicas, r.Ready, d.Explain())
		}
	}
	_, d := s.Decide(state, start.Add(c.StableWindow), holding(r.Ready, scaling.Exactly("inflight", 0)))
	switch {
	case d.Replicas != 0:
		return differs("%d after a stable window\n%s", d.Replicas, d.Explain())
	case r.Panic == (r.Ready > 1) && (!r.Panic || r.Max == r.Ready):
		if r.Ready == 1 {
			return listed(ruleOneKept)
		}
		return met, nil
	}
	return differs("held")
}

// knativeWindow records and averages: the average is the load that a decision says it is based on.
func knativeWindow(row json.RawMessage) (outcome, error) {
	var r struct {
		Kind        string  `json:"kind"`
		Window      float64 `json:"window_s"`
		Granularity float64 `json:"granularity_s"`
		Ops         []struct {
			Op   string
			T    float64
			V    float64
			Want float64
		}
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	for _, op := range r.Ops {
		if op.Op != "rec" && op.Op != "avg" {
			return differs("op %q", op.Op)
		}
	}
	switch r.Kind {
	case "linear":
	case "weighted":
		return listed(ruleWeighted)
	default:
		return differs("kind %q", r.Kind)
	}
	c := pointwise(proportional.Metric{Name: "load", Target: 1, Measure: proportional.Total})
	c.StableWindow = time.Duration(r.Window * float64(time.Second))
	c.Resolution = time.Duration(r.Granularity * float64(time.Second))
	s, err := proportional.New(c)
	if err != nil {
		return met, err
	}
	var state proportional.State
	samples := map[float64][]float64{} // by bucket, with what is late left out
	first, latest := math.Inf(1), math.Inf(-1)
	late := false
	base := time.UnixMilli(start.UnixMilli() / c.Resolution.Milliseconds() * c.Resolution.Milliseconds())
	when := func(t float64) time.Time { return base.Add(time.Duration(t * float64(time.Second))) }
	bucket := func(t float64) float64 { return math.Floor(t / r.Granularity) }
	rules := map[string]bool{}
	for i, op := range r.Ops {
		if op.Op == "rec" {
			reading := scaling.Exactly("load", op.V)
			reading.At = when(op.T)
			state = s.Record(state, when(max(op.T, latest)), holding(0, reading))
			if op.T <= latest && !(op.T == latest && len(samples) > 0) {
				late = true
				continue
			}
			if op.T == latest { // a sample of the very same time is the same sample
				rules[ruleSeveral] = true
				continue
			}
			first, latest = min(first, op.T), op.T
			samples[bucket(op.T)] = append(samples[bucket(op.T)], op.V)
			continue
		}
		now := max(op.T, latest)
		_, d := s.Decide(mustCopy(state), when(now), holding(0))
		// By brute force: the average of the buckets in the window, each the average of its samples.
		sum, n, added := 0.0, 0.0, 0.0
		several := false
		for b, values := range samples {
			if b*r.Granularity <= bucket(now)*r.Granularity-r.Window {
				continue
			}
			total := 0.0
			for _, v := range values {
				total += v
			}
			several = several || len(values) > 1
			sum += total / float64(len(values))
			added += total
			n++
		}
		if n == 0 {
			if d.Verdict != scaling.Unknown {
				return differs("op %d: no sample, got %s", i, d.Explain())
			}
			rules[ruleSilent] = true
			continue
		}
		got := d.Steps()[0].Numbers[0]
		if math.Abs(got-sum/n) > 1e-9*(1+sum/n) {
			return differs("op %d: %v is not the brute force's %v", i, got, sum/n)
		}
		if math.Abs(got-op.Want) <= 1e-6*(1+math.Abs(op.Want)) {
			continue
		}
		lowest := max(bucket(first), math.Floor(bucket(now)-r.Window/r.Granularity)+1)
		switch {
		case several || rules[ruleSeveral]:
			rules[ruleSeveral] = true
		case late:
			rules[ruleLate] = true
		case n < bucket(latest)-lowest+1:
			rules[ruleGap] = true
		case math.Mod(r.Window, r.Granularity) != 0:
			rules[ruleSlots] = true
		default:
			return differs("op %d: %v, want %v", i, got, op.Want)
		}
	}
	if len(rules) == 0 {
		return met, nil
	}
	return listed(joinRules(rules))
}

func joinRules(rules map[string]bool) string {
	var names []string
	for _, rule := range []string{ruleSeveral, ruleLate, ruleGap, ruleSlots, ruleSilent} {
		if rules[rule] {
			names = append(names, rule)
		}
	}
	return strings.Join(names, "; ")
}

// mustCopy returns a copy of a state by way of JSON.
func mustCopy(state proportional.State) (c proportional.State) {
	data, err := json.Marshal(state)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		panic(err)
	}
	return c
}

// delayed returns what a scale-down delay makes of recommendations, the answer of each being the count of the next.
func delayed(delay time.Duration, times []time.Time, values []float64) ([]int32, error) {
	c := pointwise(proportional.Metric{Name: "load", Target: 1, Measure: proportional.Total})
	c.Stabilization.Down = delay
	s, err := proportional.New(c)
	if err != nil {
		return nil, err
	}
	var state proportional.State
	var answers []int32
	spec := int32(0)
	for i, now := range times {
		var d scaling.Decision
		state, d = s.Decide(state, now, holding(spec, scaling.Exactly("load", values[i])))
		spec = d.Replicas
		answers = append(answers, spec)
	}
	return answers, nil
}

func knativeSlidingMax(row json.RawMessage) (outcome, error) {
	var r struct {
		Size   float64
		Index  []float64
		Values []float64
		Want   []float64 `json:"want_max_after_each"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	if len(r.Values) != len(r.Index) || len(r.Want) != len(r.Index) {
		return differs("lists of different lengths")
	}
	times := make([]time.Time, len(r.Index))
	for i, index := range r.Index {
		times[i] = at(index)
	}
	got, err := delayed(time.Duration(r.Size)*time.Second, times, r.Values)
	if err != nil {
		return met, err
	}
	for i := range got {
		if float64(got[i]) != r.Want[i] {
			return differs("%v, want %v", got, r.Want)
		}
	}
	return met, nil
}

func knativeSlidingMaxTimed(row json.RawMessage) (outcome, error) {
	var r struct {
		Window      float64 `json:"window_s"`
		Granularity float64 `json:"granularity_s"`
		Rec         [][2]float64
		Want        float64
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	var times []time.Time
	var values []float64
	for _, rec := range r.Rec {
		times, values = append(times, at(math.Floor(rec[0]/r.Granularity)*r.Granularity)), append(values, rec[1])
	}
	delay := time.Duration(math.Ceil(r.Window/r.Granularity) * r.Granularity * float64(time.Second))
	got, err := delayed(delay, times, values)
	if err != nil || len(got) == 0 {
		return met, err
	}
	if last := got[len(got)-1]; float64(last) != r.Want {
		return differs("%d, want %v", last, r.Want)
	}
	return met, nil
}

func knativePanicWindow(row json.RawMessage) (outcome, error) {
	var r struct {
		Stable float64 `json:"stable_s"`
		Pct    float64
		Want   float64 `json:"want_panic_s"`
	}
	if err := decode(row, &r); err != nil {
		return met, err
	}
	got := proportional.PanicWindow(time.Duration(r.Stable*float64(time.Second)), r.Pct)
	if got.Seconds() != r.Want {
		return differs("%s", got)
	}
	return met, nil
}
