package policyfile

import (
	"fmt"
	"time"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

func (b realtimeBody) build(bounds scaling.Bounds) (scaling.Policy, error) {
	b.Bounds = bounds
	return live(realtime.New(b.Config))
}

func (b proportionalBody) build(bounds scaling.Bounds) (scaling.Policy, error) {
	b.Bounds = bounds
	return live(proportional.New(b.Config))
}

func (b saturationBody) build(bounds scaling.Bounds) (scaling.Policy, error) {
	b.Bounds = bounds
	single, err := saturation.NewSingle(b.SingleConfig)
	if err != nil {
		return nil, err
	}
	return single, nil
}

func (b cronBody) build(bounds scaling.Bounds) (scaling.Policy, error) {
	scaler, err := b.timetable(bounds)
	return live(scaler, err)
}

func (b cronBody) timetable(bounds scaling.Bounds) (cronscale.Scaler, error) {
	b.Bounds = bounds
	return cronscale.New(b.Config)
}

func (b staticBody) build(bounds scaling.Bounds) (scaling.Policy, error) {
	var e scaling.FieldErrors
	e.Check(b.Replicas >= 0, "replicas", b.Replicas, "must not be negative")
	return live(static{b.Replicas, bounds}, e.Err())
}

func (b floorBody) build(bounds scaling.Bounds) (scaling.Policy, error) {
	base, err := b.Base.build(bounds)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	timetable, err := b.Cron.timetable(bounds)
	if err != nil {
		return nil, fmt.Errorf("cron: %w", err)
	}
	return scaling.Floor(base, timetable, bounds)
}

func (b highestBody) build(bounds scaling.Bounds) (scaling.Policy, error) {
	members := make([]scaling.Member, 0, len(b.Members))
	for _, m := range b.Members {
		p, err := m.build(bounds)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", m.Name, err)
		}
		members = append(members, scaling.Member{Name: m.Name, Policy: p})
	}
	return scaling.Highest(members...)
}

// live returns the policy of a stepper, unless there is an error.
func live[S any](stepper scaling.Stepper[S], err error) (scaling.Policy, error) {
	if err != nil {
		return nil, err
	}
	return scaling.New(stepper), nil
}

func (b realtimeBody) metrics() []MetricUse {
	var all []MetricUse
	for _, m := range b.Metrics {
		all = append(all, MetricUse{m.Name, m.High})
	}
	return all
}

func (b proportionalBody) metrics() []MetricUse {
	var all []MetricUse
	for _, m := range b.Metrics {
		all = append(all, MetricUse{m.Name, m.Target})
	}
	return all
}

func (b saturationBody) metrics() []MetricUse {
	return []MetricUse{{b.KV, b.KVCache}, {b.Queue, b.QueueLength}}
}

func (cronBody) metrics() []MetricUse    { return nil }
func (staticBody) metrics() []MetricUse  { return nil }
func (b floorBody) metrics() []MetricUse { return b.Base.Metrics() }

func (b highestBody) metrics() []MetricUse {
	var all []MetricUse
	for _, m := range b.Members {
		all = append(all, m.Metrics()...)
	}
	return all
}

// Fixed takes the count to the one that a static policy has.
const Fixed scaling.Code = "Fixed replicas"

// static asks for one count, within bounds.
type static struct {
	replicas int32
	bounds   scaling.Bounds
}

// Kind names the algorithm and the version of its state, which is none.
func (static) Kind() scaling.Kind { return scaling.Kind{Name: "static", Version: 1} }

// Decide asks for the count.
func (s static) Decide(_ struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(s.replicas, Fixed, "", float64(s.replicas))
	d.Clamp(s.bounds)
	return struct{}{}, d
}

// Applied has nothing to record.
func (static) Applied(struct{}, time.Time, int32, int32) struct{} { return struct{}{} }
