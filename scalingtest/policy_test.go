package scalingtest_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// The codes of a stepper.
const (
	tooMuch   scaling.Code = "TooMuch lower > high"
	tooLittle scaling.Code = "TooLittle upper < low"
	enough    scaling.Code = "Enough lower <= high, upper >= low"
	unknown   scaling.Code = "NoSample"
	waits     scaling.Code = "Waits elapsed:s < wait:s"
)

// A threshold is a metric with the values between which a stepper does nothing.
type threshold struct {
	name      string
	low, high float64
}

// A stepper is a small scaling.Policy, written by hand as a user's may be: one replica more if any metric is above its
// high threshold, one less if all are below their low one, and a wait after each change. It can have a fault.
type stepper struct {
	bounds     scaling.Bounds
	up, down   time.Duration
	thresholds []threshold // by name
	fault      string

	seen    time.Time
	changed time.Time
	log     []string
	stores  int  // how often it was stored
	asked   bool // for a change that is not reported yet
	kept    []scaling.Reading
	raw     []byte // its state, as long as it is that
	buffer  []byte
}

// newStepper returns a stepper with a fault; "" is none.
func newStepper(fault string) *stepper {
	return &stepper{
		bounds: scaling.Bounds{Min: 1, Max: 8}, up: time.Minute, down: 2 * time.Minute, fault: fault,
		thresholds: []threshold{{"cache", 0.25, 0.75}, {"queue", 4, 10}},
	}
}

// newPolicy returns the policy that most tests here are about. With the environment variable it is a faulty one.
func newPolicy() scaling.Policy { return newStepper(os.Getenv("SCALINGTEST_FAULT")) }

// everything are options under which every property is checked.
func everything() scalingtest.Options {
	return scalingtest.Options{
		Metrics:     []scalingtest.Metric{{Name: "cache", Low: 0.25, High: 0.75}, {Name: "queue", Low: 4, High: 10}},
		Bounds:      scaling.Bounds{Min: 1, Max: 8},
		Memory:      10 * time.Minute,
		MaxState:    150,
		Monotone:    true,
		NoFlap:      true,
		DeadZone:    []scalingtest.Metric{{Name: "cache", Low: 0.25, High: 0.75}, {Name: "queue", Low: 4, High: 10}},
		Cooldown:    &scalingtest.Cooldown{Up: time.Minute, Down: 2 * time.Minute},
		Refused:     true,
		Convergence: &scalingtest.Convergence{Within: 100, Want: settled},
		Twin:        newTwin,
	}
}

// settled returns the counts that a constant load allows in the end: none of the metrics above its high threshold, and
// not all below their low one, as far as the bounds go.
func settled(loads []scalingtest.Load) (least, most int32) {
	p := newStepper("")
	fits := func(n int32) bool {
		var obs scaling.Observation
		for _, l := range loads {
			obs.Readings = append(obs.Readings, scaling.Exactly(l.Metric, l.Sum/float64(n)))
		}
		asks, _ := p.judge(&obs)
		return asks == 0 || asks > 0 && n == p.bounds.Max || asks < 0 && n == p.bounds.Min
	}
	for n := p.bounds.Min; n <= p.bounds.Max; n++ {
		if fits(n) {
			if least == 0 {
				least = n
			}
			most = n
		}
	}
	return least, most
}

func (p *stepper) Decide(now time.Time, obs scaling.Observation) (d scaling.Decision) {
	back := p.seen.Sub(now)
	if p.seen.IsZero() || p.fault == "acts when the clock steps back" {
		back = 0
	}
	if back > 0 && !p.changed.IsZero() && p.fault != "waits for the time before the clock went back" {
		p.changed = now.Add(-p.seen.Sub(p.changed)) // not by back, which has no room for all that there can be
	}
	p.seen, p.raw = now, nil
	if p.fault == "local time" && now.Minute() < 30 {
		return scaling.UnknownAt(obs.SpecReplicas, unknown, "")
	}
	if p.fault == "keeps its input" {
		for _, r := range p.kept {
			p.log = append(p.log[:0], r.Metric)
		}
		p.kept = obs.Readings
	}
	if p.fault == "state that grows" {
		p.log = append(p.log, "decided")
	}
	if p.fault == remembersAMinute {
		if second := now.UTC().Format(time.TimeOnly); !slices.Contains(p.log, second) {
			p.log = append(p.log[max(0, len(p.log)-59):], second)
		}
	}
	if p.fault == "sorts its input" {
		slices.SortFunc(obs.Readings, func(a, b scaling.Reading) int { return strings.Compare(a.Metric, b.Metric) })
	}
	if p.fault == "appends to its input" {
		obs.Readings = append(obs.Readings, scaling.Exactly("mine", 1))
	}
	d.Start(obs.SpecReplicas)
	if !p.bounds.Contains(obs.SpecReplicas) && p.fault != "out of bounds" {
		d.Clamp(p.bounds)
		return d
	}
	if back > 0 {
		d.To(obs.SpecReplicas, scaling.ClockBack, "", back.Seconds())
		return d
	}
	asks, looks := p.judge(&obs)
	if p.fault == "a gap keeps the count" { // of the observations above high, of which two are needed
		switch {
		case asks > 0 && len(p.log) == 0:
			p.log, asks = []string{"high"}, 0
		case asks <= 0 && !slices.ContainsFunc(looks, func(l look) bool { return l.code == unknown }):
			p.log = nil
		}
	}
	if p.fault == "a missing sample starts anew" && asks > 0 { // of the observations above high, of which four are needed
		if p.log = append(p.log, "high"); len(p.log) < 4 {
			asks = 0
		}
	} else if p.fault == "a missing sample starts anew" {
		p.log = nil
	}
	p.step(&d, &obs, asks, looks)
	if p.fault != "out of bounds" {
		d.Clamp(p.bounds)
	}
	if d.Acts() {
		p.hold(&d, now)
	}
	p.asked = d.Acts()
	if p.fault == "unexplained" && d.Acts() {
		d.Replicas++
	}
	return d
}

// A look is what one metric says.
type look struct {
	subject string
	asks    int
	code    scaling.Code
	numbers []float64
}

// judge returns +1 if more is asked for, -1 if less, and what every metric says.
func (p *stepper) judge(obs *scaling.Observation) (asks int, looks []look) {
	all := -1
	anything := false
	for _, t := range p.thresholds {
		l := p.look(t, obs.Reading(t.name))
		looks = append(looks, l)
		if p.fault == "missing has no say" && l.code == unknown {
			continue
		}
		asks = max(asks, l.asks)
		all = max(all, l.asks)
		anything = anything || l.code != unknown
	}
	if asks == 0 && all < 0 && anything {
		asks = -1
	}
	return asks, looks
}

func (p *stepper) look(t threshold, r scaling.Reading) look {
	if p.fault == "takes much for an error" && r.Lower > 100*t.high {
		return look{t.name, 0, enough, []float64{t.high, t.high, t.high, t.low}}
	}
	if p.fault == "panics on infinity" && r.Values > 0 && r.Lower > 1e308 {
		_ = p.thresholds[int(r.Lower/1e300)]
	}
	known := r.Known()
	if p.fault == "acts on NaN" && r.Values > 0 && r.Lower != r.Lower {
		known, r.Lower, r.Upper = true, 0, 0
	}
	if p.fault == "acts without data" && !known {
		known, r.Lower, r.Upper = true, 0, 0
	}
	known = wrongEnd(p.fault, t, known, &r)
	high := t.high
	if p.fault == "not monotone" && t.name == "queue" && r.Lower > 20 {
		high = 40
	}
	low := t.low
	if p.fault == "flaps" {
		low = t.high * 0.9
	}
	if p.fault == "acts in the dead zone" {
		high = t.high - (t.high-t.low)/8
	}
	switch {
	case !known:
		return look{t.name, 0, unknown, nil}
	case r.Lower > high:
		return look{t.name, +1, tooMuch, []float64{r.Lower, high}}
	case r.Upper < low:
		return look{t.name, -1, tooLittle, []float64{r.Upper, low}}
	}
	return look{t.name, 0, enough, []float64{r.Lower, high, r.Upper, low}}
}

// wrongEnd changes what is known of a metric as a policy does that reads the wrong end of an interval, or takes what is
// missing for a number.
func wrongEnd(fault string, t threshold, known bool, r *scaling.Reading) bool {
	switch {
	case fault == "scales up on Upper" && r.Upper > t.high:
		r.Lower = r.Upper
	case fault == "scales down on Lower" && r.Lower < t.low:
		r.Upper = r.Lower
	case fault == "scales on the middle" && known && r.Upper < 1e9:
		r.Lower = (r.Lower + r.Upper) / 2
		r.Upper = r.Lower
	case fault == "those that answer are all" && known && r.Failed > 0:
		r.Lower *= float64(r.Values+r.Failed) / float64(r.Values)
	case fault == "missing is full" && !known:
		r.Lower, r.Upper = 2*t.high, 2*t.high
		return true
	case fault == "missing is the low threshold" && !known && t.name == "queue":
		r.Lower, r.Upper = t.low/2, t.low/2
		return true
	}
	return known
}

// step takes the decision one replica further, for the reason of the first metric that wants it.
func (p *stepper) step(d *scaling.Decision, obs *scaling.Observation, asks int, looks []look) {
	deciding := slices.IndexFunc(looks, func(l look) bool { return l.asks == asks })
	if p.fault == "order of a map" {
		byName := map[string]int{}
		for i, l := range looks {
			if l.asks == asks {
				byName[l.subject] = i
			}
		}
		for _, i := range byName {
			deciding = i
			break
		}
	}
	if p.fault == "order of the readings" {
		for _, r := range obs.Readings {
			if i := slices.IndexFunc(looks, func(l look) bool { return l.subject == r.Metric && l.asks == asks }); i >= 0 {
				deciding = i
				break
			}
		}
	}
	by := int32(asks)
	if p.fault == "counts overflow" && asks > 0 {
		by = int32(int64(math.Ceil(float64(d.From)*looks[deciding].numbers[0]/looks[deciding].numbers[1]))) - d.From
	}
	if p.fault == "two steps at once" {
		by *= 2
	}
	known := false
	for i, l := range looks {
		known = known || l.code != unknown
		if i == deciding {
			d.To(d.From+by, l.code, l.subject, l.numbers...)
		}
	}
	for i, l := range looks {
		if i != deciding {
			d.Consider(d.From+int32(l.asks), l.code, l.subject, l.numbers...)
		}
	}
	if !known {
		d.Verdict = scaling.Unknown
	}
}

// hold takes a change back that comes too early.
func (p *stepper) hold(d *scaling.Decision, now time.Time) {
	wait := p.up
	if d.Verdict == scaling.Down {
		wait = p.down
	}
	elapsed := now.Sub(p.changed)
	if p.fault == "reads the clock" || p.fault == "counts from the clock" {
		elapsed = time.Since(p.changed)
	}
	early := elapsed < wait
	switch p.fault {
	case "a tick too late":
		early = elapsed <= wait
	case "a tick too early":
		early = elapsed+15*time.Second < wait
	}
	if !p.changed.IsZero() && early {
		if p.fault == "stores whole seconds" {
			elapsed = 0 // so that only what it does can tell
		}
		d.To(d.From, waits, "", elapsed.Seconds(), wait.Seconds())
	}
	if p.fault == "refused write starts the wait" && d.Acts() {
		p.changed = now
	}
}

func (p *stepper) Applied(now time.Time, from, to int32) {
	p.raw = nil
	if p.fault == "forgets what it asked for" && !p.asked {
		return
	}
	if p.bounds.Contains(from) && from != to {
		p.changed = now
	}
	if p.fault == "counts from the clock" {
		p.changed = time.Now()
	}
}

type stepperState struct {
	Seen    scaling.Stamp `json:"seen,omitzero"`
	Changed scaling.Stamp `json:"changed,omitzero"`
	Log     []string      `json:"log,omitempty"`
}

func (p *stepper) MarshalJSON() ([]byte, error) {
	s := stepperState{Log: p.log}
	if !p.seen.IsZero() {
		s.Seen = scaling.StampOf(p.seen)
	}
	if !p.changed.IsZero() && p.fault != "forgets a field" {
		s.Changed = scaling.StampOf(p.changed)
	}
	if p.fault == "stores whole seconds" && s.Changed.Set {
		s.Changed = scaling.StampOf(p.changed.Truncate(time.Second))
	}
	if p.fault == "cannot be stored" && s.Changed.Set {
		return nil, fmt.Errorf("no place for %v", p.changed)
	}
	data, err := json.Marshal(s)
	if p.fault == "keeps the bytes of its state" && p.raw != nil {
		return p.raw, nil
	}
	if p.fault == "stores into one buffer" {
		p.buffer = append(p.buffer[:0], data...)
		return p.buffer, err
	}
	return data, err
}

func (p *stepper) Snapshot() (restore func() error, err error) {
	was := *p
	was.log = slices.Clone(p.log)
	return func() error {
		changed := p.changed
		if *p = was; p.fault == "is taken back but for a field" {
			p.changed = changed
		}
		p.log = slices.Clone(was.log)
		return nil
	}, nil
}

func (p *stepper) MarshalDurable() ([]byte, error) {
	p.stores++
	if p.fault == "counts what it stores" {
		return json.Marshal(stepperState{Changed: scaling.StampOf(time.UnixMilli(int64(p.stores)))})
	}
	return p.MarshalJSON()
}

func (p *stepper) UnmarshalJSON(data []byte) error {
	var s stepperState
	if p.fault == "takes its state back on top of its own" {
		s = stepperState{Seen: scaling.StampOf(p.seen), Changed: scaling.StampOf(p.changed)}
		s.Seen.Set, s.Changed.Set = !p.seen.IsZero(), !p.changed.IsZero()
	}
	p.raw = data
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	p.seen, p.changed, p.log = s.Seen.Time(), s.Changed.Time(), s.Log
	if p.fault == "takes its state back wrong" && s.Changed.Set {
		p.changed = p.changed.Add(time.Minute)
	}
	return nil
}
