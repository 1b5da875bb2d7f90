package forecast

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/starts"
	"github.com/inferscale/inferscale/scaling"
)

// The codes of a decision. The subject is the name of the method.
const (
	// Foreseen is the demand that is expected within the lead: the demand of other days times today's ratio to them. One
	// replica takes each.
	Foreseen scaling.Code = "Foreseen expected, each, ratio, lead:s"
	// PartlyForeseen is the same forecast, made from data of which a part is not fully known.
	PartlyForeseen scaling.Code = "PartlyForeseen expected, each, ratio, lead:s"
	// Kept does not remove replicas that the unknown part of today's demand may need, nor, while the demand of other days rises, those that
	// it would need if today were as large, and a replica took as little, as at any time within the lead, less a tenth.
	Kept scaling.Code = "Kept from < floor"
	// Unscored makes no forecast: too few slots were backtested.
	Unscored scaling.Code = "Unscored scored < needed"
	// Unproven makes no forecast: a constant predicted about as well.
	Unproven scaling.Code = "Unproven loss >= limit"
	// Unlike makes no forecast for now: today is unlike other days, and following them has cost more than the limit.
	Unlike scaling.Code = "Unlike cost > worth"
	// Unseen makes no forecast: no other day is known, or nothing of today.
	Unseen scaling.Code = "Unseen days"
)

// A Sample is a demand of the past at a time, in the unit of the Source.
type Sample struct {
	At     time.Time
	Demand float64
}

// New returns base with a floor by forecast under it: never fewer replicas than base asks for, and enough for the demand
// that is expected at the time at which a replica requested now is ready.
//
// base decides first and sees every observation. A change that only the floor asks for is not reported to base, as in
// scaling.Floor. past is the known demand of earlier days, in order of time; a stored state replaces it. A sample stands for
// the time since the one before if that is at most 15 min, or at most four scrape and control intervals, whichever is longer.
//
// New returns an error with every rule that is broken, each a *scaling.FieldError.
func New(base scaling.Policy, source Source, c Config, past ...Sample) (scaling.Policy, error) {
	var e scaling.FieldErrors
	e.Check(base != nil, "base", base, "must be set")
	e.Check(source != nil, "source", nil, "must be set")
	e.Add(c.Validate())
	for i, x := range past {
		wrong := func(field string, value any, rule string) {
			e.Check(false, fmt.Sprintf("past[%d].%s", i, field), value, rule)
		}
		if x.At.IsZero() {
			wrong("at", x.At, "must be set")
		}
		if !(x.Demand >= 0 && x.Demand <= mostDemand) {
			wrong("demand", x.Demand, "must be a number from 0 to 1e15")
		}
		if i > 0 && !past[i-1].At.Before(x.At) {
			wrong("at", x.At, "must be after the one before")
		}
	}
	if err := e.Err(); err != nil {
		return scaling.New[State](nil), err
	}
	f := &floor{base: base, source: source, model: model{config: &c}}
	f.state.Zone, f.state.Demand = c.zone(), c.Demand
	f.learn()
	for _, x := range past {
		f.model.see(&f.state, seconds(x.At), max(mostGap, c.gap()), amount{lower: x.Demand, upper: x.Demand, known: true})
	}
	f.fresh = f.state.clone()
	return f, nil
}

// floor is a Policy: a base policy and the forecast.
type floor struct {
	base     scaling.Policy
	source   Source
	model    model
	state    State
	fresh    State // as New made it
	lift     lift
	outlook  outlook
	until    float64 // when the outlook ends
	envelope scaling.Envelope
	seen     scaling.Observation // scratch
	answer   scaling.Decision
}

// lift is the last change that the floor or the bounds asked for and base did not, until it is carried out.
type lift struct {
	From int32 `json:"from,omitempty"`
	To   int32 `json:"to,omitempty"`
}

func kind() scaling.Kind { return scaling.Kind{Name: "forecast", Version: 1} }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// Decide asks base, records the demand and raises the decision to the floor.
func (f *floor) Decide(now time.Time, obs scaling.Observation) scaling.Decision {
	if f.envelope.Refused() {
		return scaling.UnknownAt(obs.SpecReplicas, scaling.StateRefused, kind().Name)
	}
	// The source gets pointers to fields of f: pointers to local variables would cost an allocation per decision.
	f.seen, f.answer = obs, f.base.Decide(now, obs)
	d := &f.answer
	wish := d.Verdict
	demand, each := f.source(&f.seen, d)
	at, s := seconds(now), &f.state
	back := s.Set && at < s.At
	if back {
		f.until = 0
	}
	if s.Set && at-s.At > f.model.config.gap() {
		starts.Unseen(&s.Learned, obs.ReadyReplicas)
	}
	a := amountOf(demand, at, f.model.config.gap())
	f.model.see(s, at, f.model.config.gap(), a)
	if starts.See(&s.Learned, at, obs.SpecReplicas, obs.ReadyReplicas) {
		f.learn()
	}
	if !back && each > 0 && !math.IsInf(each, 1) {
		f.raise(d, a.known, each)
	}
	d.Clamp(f.model.config.Bounds)
	f.lift = lift{}
	if d.Acts() && d.Verdict != wish {
		f.lift = lift{From: d.From, To: d.Replicas}
	}
	f.seen = scaling.Observation{}
	return *d
}

// raise raises a decision to the floor, if a forecast is in force.
func (f *floor) raise(d *scaling.Decision, known bool, each float64) {
	s, o := &f.state, &f.outlook
	if f.until == 0 || s.At >= f.until || o.slot != s.Now.Number || o.lead != f.model.lead {
		*o = f.model.look(s)
		f.until = min(float64(o.from+dilation+1)*slot, float64(o.to-dilation+1)*slot-o.lead)
	}
	if !o.known {
		f.excuse(d)
		return
	}
	lower, ratio := o.bunch.expect(s)
	if !known || o.doubted || s.Now.Seen == 0 && len(s.Past) == 0 {
		lower = 0
	}
	lower *= s.Unit
	code := Foreseen
	if o.marks|s.marks() != 0 {
		code = PartlyForeseen
	}
	least, subject := f.model.config.count(lower, each), o.method.String()
	d.NextBy(time.UnixMilli(int64(math.Ceil(f.until * 1000))))
	if lower > 0 {
		s.Now.Asked = max(s.Now.Asked, min(ratio/each, math.MaxFloat64))
	}
	keep := int32(math.MinInt32)
	if d.Replicas < d.From {
		asked := s.asked(f.model.lead) / (1 + spare)
		keep = min(d.From, max(f.model.config.count(o.bunch.most(s)*s.Unit, each), f.model.config.count(o.bunch.rise()*s.Unit*asked, 1)))
	}
	if d.Replicas >= max(least, keep) {
		d.Consider(least, code, subject, lower, each, ratio, o.lead)
		return
	}
	d.To(d.Replicas, code, subject, lower, each, ratio, o.lead)
	if least >= keep {
		d.To(least, scaling.Lifted, subject, float64(d.Replicas), float64(least))
	} else {
		d.To(keep, Kept, subject, float64(d.Replicas), float64(keep))
	}
}

// excuse explains why there is no forecast.
func (f *floor) excuse(d *scaling.Decision) {
	o := &f.outlook
	x := &f.state.Scores[o.method] // they do not prove a method that was tried: a proven one keeps replicas, and needs no excuse
	switch {
	case !o.tried:
		d.Consider(d.From, Unseen, "", float64(len(f.state.Days)))
	case x.Slots < enough:
		d.Consider(d.From, Unscored, o.method.String(), x.Slots, enough)
	case x.Loss >= x.limit():
		d.Consider(d.From, Unproven, o.method.String(), x.Loss, x.limit())
	default:
		d.Consider(d.From, Unlike, o.method.String(), x.OnTime, x.mayToday())
	}
}

// marks returns the marks of the last 30 min: what was not fully known.
func (s *State) marks() (mark uint16) {
	mark = s.Now.Marks
	for i := range s.Past {
		mark |= s.Past[i].Marks
	}
	return mark
}

// Applied records a change of the replica count, to learn how long a start takes, and passes base its own changes.
func (f *floor) Applied(now time.Time, from, to int32) {
	if f.envelope.Refused() {
		return
	}
	starts.Applied(&f.state.Learned, seconds(now), from, to)
	// All of the lift, or the part of it that a limit around the floor let through.
	if l := f.lift; from == l.From && (l.From < to && to <= l.To || l.To <= to && to < l.From) {
		f.lift = lift{}
		return
	}
	f.base.Applied(now, from, to)
}

type stored struct {
	Base   json.RawMessage `json:"base"`
	Lift   *lift           `json:"lift,omitempty"`
	Memory State           `json:"memory"`
	// Learns tells package loop that storing the rest every five minutes is enough: what is learned of a day does not affect
	// the next answer. It is never stored itself.
	Learns bool `json:"volatile,omitempty"`
}

// MarshalJSON returns the state to store, with base's state in it.
func (f *floor) MarshalJSON() ([]byte, error) { return f.marshal(f.base.MarshalJSON, true) }

// MarshalDurable returns it without what is volatile; see scaling.Durable.
func (f *floor) MarshalDurable() ([]byte, error) {
	return f.marshal(func() ([]byte, error) { return scaling.Durable(f.base) }, false)
}

func (f *floor) marshal(base func() ([]byte, error), volatile bool) ([]byte, error) {
	return f.envelope.Seal(kind(), func() (any, error) {
		base, err := base()
		if err != nil {
			return nil, err
		}
		s := stored{Base: base, Memory: f.state, Learns: volatile}
		if f.lift != (lift{}) {
			s.Lift = &f.lift
		}
		return s, nil
	})
}

// Snapshot keeps the state and base's; see scaling.Snapshot.
func (f *floor) Snapshot() (restore func() error, err error) {
	was, state := *f, f.state.clone()
	base, err := scaling.Snapshot(f.base)
	return func() error {
		f.state, f.lift, f.outlook, f.until, f.model.lead, f.envelope = state.clone(), was.lift, was.outlook, was.until, was.model.lead, was.envelope
		return base()
	}, err
}

// UnmarshalJSON restores a stored state. Days of another time zone are discarded, and so is everything about another demand.
// The state of base alone, which it stored before it had a floor, is restored, too: the floor then begins anew.
func (f *floor) UnmarshalJSON(data []byte) error {
	var of scaling.Kind
	if json.Unmarshal(data, &of) == nil && of.Name != "" && of.Name != kind().Name {
		err := f.base.UnmarshalJSON(data)
		if err == nil {
			f.envelope, f.state, f.lift, f.outlook, f.until = scaling.Envelope{}, f.fresh.clone(), lift{}, outlook{}, 0
			f.learn()
			return nil
		}
		if !errors.Is(err, scaling.ErrOtherState) { // it is base's, and base says what is wrong with it
			_ = f.envelope.Open(kind(), data, f.load) // keeps it as refused
			return err
		}
	}
	return f.envelope.Open(kind(), data, f.load)
}

func (f *floor) load(data []byte) error {
	s, err := scaling.DecodeState[stored](data)
	if err != nil {
		return err
	}
	if err := s.Memory.Validate(); err != nil {
		return err
	}
	if err := f.base.UnmarshalJSON(s.Base); err != nil {
		return err
	}
	f.state, f.lift, f.outlook, f.until = s.Memory, lift{}, outlook{}, 0
	if s.Lift != nil {
		f.lift = *s.Lift
	}
	if demand := f.model.config.Demand; s.Memory.Demand != demand {
		f.state = State{Demand: demand, Learned: s.Memory.Learned}
	}
	if zone := f.model.config.zone(); f.state.Zone != zone {
		f.state.Zone, f.state.Days, f.state.Scores, f.state.Sure = zone, nil, [methods]Score{}, [methods]Score{}
	}
	f.learn()
	return nil
}

// zone returns the name of the time zone; that of nil is UTC's.
func (c *Config) zone() string { return c.Location.String() }

// learn sets the lead: the P90 of the observed starts, plus a scrape and a control interval.
func (f *floor) learn() {
	c := f.model.config
	f.model.lead = min(starts.P90(f.state.Starts, c.ColdStart.Seconds())+c.Scrape.Seconds()+c.Control.Seconds(), mostLead)
}
