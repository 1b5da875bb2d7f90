package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/inferscale/inferscale/sim"
)

// The margins of all pictures of time, so that they can be read against each other.
const (
	marginLeft  = 44.0
	marginRight = 12.0
)

// frame is what all pictures of time have in common: one scale for each thing.
type frame struct {
	unit                   string
	perUnit                float64 // nanoseconds
	times                  []tick
	x                      scale
	replicas, waiting, end float64
	demand                 []point
	oracle                 []point
}

func (c *comparison) frame() *frame {
	length := c.world.length()
	unit, per, ticks := timeTicks(length)
	f := &frame{unit: unit, perUnit: float64(per), times: ticks, end: float64(length) / float64(per), waiting: 10}
	f.x = linear(0, f.end)
	for i, n := range c.demand[0] {
		f.demand = append(f.demand, point{float64(i) * float64(c.demandStep) / f.perUnit, float64(n)})
		f.replicas = max(f.replicas, float64(n))
	}
	if n := len(f.demand); n > 0 {
		f.demand = append(f.demand, point{min(f.end, float64(n)*float64(c.demandStep)/f.perUnit), f.demand[n-1].y})
	}
	for _, l := range c.lines {
		for _, m := range l.results[0].Timeline {
			f.replicas = max(f.replicas, float64(m.Spec), float64(m.Ready))
			f.waiting = max(f.waiting, float64(m.Waiting))
		}
		if l.sort == ofOracle {
			f.oracle = f.of(&l.results[0], func(m *sim.Moment) float64 { return float64(m.Spec) })
		}
	}
	return f
}

// of returns a value over the time of a run.
func (f *frame) of(r *sim.Result, value func(m *sim.Moment) float64) []point {
	points := make([]point, 0, len(r.Timeline))
	for i := range r.Timeline {
		m := &r.Timeline[i]
		if x := float64(m.At) / f.perUnit; x <= f.end {
			points = append(points, point{x, value(m)})
		}
	}
	return points
}

// offered returns the rate of the load over time. A moment's rate is that of the time before it, and there is none before
// the first one.
func (f *frame) offered(r *sim.Result) []point {
	rate := f.of(r, func(m *sim.Moment) float64 { return m.Rate })
	if len(rate) > 1 {
		rate[0].y = rate[1].y
	}
	return rate
}

// loadPicture draws the offered rate.
func (c *comparison) loadPicture() *picture {
	const width, height = 1200, 190
	f := c.frame()
	r := &c.lines[0].results[0]
	rate := f.offered(r)
	highest := 1.0
	for _, v := range rate {
		highest = max(highest, v.y)
	}
	pic := newPicture("load", width, height, "Offered load",
		fmt.Sprintf("Requests per second over time: up to %.1f, %.1f on average.", highest, float64(r.Requests)/c.world.Workload.Duration().Seconds()))
	p := &panel{picture: pic, left: marginLeft, right: width - marginRight, bottom: 40, top: height - 22, x: f.x, y: linear(0, highest)}
	p.yAxis("requests per second", countTicks(highest, 4)...)
	p.xAxis(f.unit, f.times...)
	p.curve(rate, blue(), 1.2)
	return pic
}

// fleetPicture draws what a policy did over time: replicas, queue and cache.
func (c *comparison) fleetPicture(f *frame, id string, l *line) *picture {
	const width, height = 592, 330
	r := &l.results[0]
	pic := newPicture(id, width, height, l.name+": replicas, queue and KV cache over time",
		fmt.Sprintf("%s attains %s %% with %.2f replica-hours. At most %d requests wait; %d changes, %d reversals.",
			l.name, percent(r.Attainment), r.ReplicaHours, mostWaiting(r), r.Actions, r.Reversals))
	within := func(bottom, top float64, y scale) *panel {
		return &panel{picture: pic, left: marginLeft, right: width - marginRight, bottom: bottom, top: top, x: f.x, y: y}
	}

	replicas := within(186, height-20, linear(0, f.replicas))
	replicas.area(f.demand, shade())
	replicas.yAxis("replicas", countTicks(f.replicas, 4)...)
	if l.sort != ofOracle {
		replicas.steps(f.oracle, black(), 1, nil)
	}
	spec := f.of(r, func(m *sim.Moment) float64 { return float64(m.Spec) })
	ready := f.of(r, func(m *sim.Moment) float64 { return float64(m.Ready) })
	replicas.steps(spec, vermillion(), 1.4, dashed())
	replicas.steps(ready, blue(), 2, nil)
	replicas.xAxis("")

	waiting := within(104, 162, crowd(f.waiting))
	var ticks []tick
	for v := 10.0; v <= f.waiting; v *= 100 {
		ticks = append(ticks, tick{v, strconv.FormatFloat(v, 'f', -1, 64)})
	}
	waiting.yAxis("waiting requests, logarithmic", append([]tick{{0, "0"}}, ticks...)...)
	waiting.area(f.of(r, func(m *sim.Moment) float64 { return float64(m.Waiting) }), purple())
	waiting.xAxis("")

	kv := within(36, 82, linear(0, 1))
	kv.yAxis("KV cache in use", tick{0, "0"}, tick{0.5, "50 %"}, tick{1, "100 %"})
	kv.curve(f.of(r, func(m *sim.Moment) float64 { return math.Min(m.KV, 1) }), green(), 1.2)
	kv.xAxis(f.unit, f.times...)
	return pic
}

func mostWaiting(r *sim.Result) int32 {
	n := int32(0)
	for i := range r.Timeline {
		n = max(n, r.Timeline[i].Waiting)
	}
	return n
}
