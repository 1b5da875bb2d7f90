package suite

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A shape describes requests, and how soon their first token must come.
type shape struct {
	prompt, answer sim.Length
	ttft           time.Duration
}

func length(mean, deviation float64, most int32) sim.Length {
	return sim.Length{Mean: mean, Deviation: deviation, Min: 1, Max: most, LogNormal: true}
}

// shapeOf returns a shape of which requests are drawn one by one.
func shapeOf(name string) shape {
	switch name {
	case "code":
		return shape{length(1800, 4000, 32000), length(90, 120, 2000), 5 * time.Second}
	case "docs":
		return shape{length(9000, 6000, 48000), length(200, 150, 2000), 10 * time.Second}
	case "reason":
		return shape{length(400, 400, 8000), length(4000, 2500, 16000), 3 * time.Second}
	case "agents":
		return shape{length(2500, 1500, 8000), length(180, 150, 2000), 8 * time.Second}
	default: // chat, and drift, which begins as chat
		return shape{length(900, 900, 16000), length(250, 250, 4000), 3 * time.Second}
	}
}

// A flow is a part of the traffic: requests of one shape, with a share of the pattern that depends on the time.
type flow struct {
	shape
	perSecond float64 // at a load of 1
	share     func(x float64) float64
}

// flows returns the parts of a shape's traffic.
func flows(name string) []flow {
	if name != "drift" {
		return []flow{{shape: shapeOf(name), perSecond: 1, share: func(float64) float64 { return 1 }}}
	}
	to := func(x float64) float64 { return (1 - math.Cos(2*math.Pi*x)) / 2 }
	return []flow{
		{shape: shapeOf("chat"), perSecond: 1, share: func(x float64) float64 { return 1 - to(x) }},
		{shape: shapeOf("reason"), perSecond: 1, share: to},
	}
}

// made is synthetic traffic.
type made struct {
	pattern string
	flows   []flow
	agents  bool // the flow's requests begin sessions
}

// Duration returns how long the pattern lasts.
func (m made) Duration() time.Duration { return time.Duration(lasts(m.pattern)) * step }

// Arrivals returns the requests of one run: those of all flows in order of time.
func (m made) Arrivals(seed uint64) sim.Arrivals {
	load := pattern(m.pattern, seed)
	sources := make([]sim.Arrivals, len(m.flows))
	for i := range sources {
		s := m.series(i, load)
		sources[i] = s.Arrivals(seed + uint64(i)<<32)
		if m.agents {
			sources[i] = sessions(sources[i], s, seed)
		}
	}
	if len(sources) == 1 {
		return sources[0]
	}
	return merged(sources)
}

// series returns the traffic of one flow.
func (m made) series(i int, load []float64) sim.Series {
	f := &m.flows[i]
	s := sim.Series{Step: step, Rates: make([]sim.Rate, len(load)), Input: f.prompt, Output: f.answer}
	for k, x := range load {
		s.Rates[k].PerSecond = x * f.perSecond * f.share((float64(k)+0.5)/float64(len(load)))
	}
	return s
}

// Validate reports every wrong field at once, under field.
func (m made) Validate(field string) error {
	var e scaling.FieldErrors
	for i := range m.flows {
		e.Add(m.series(i, pattern(m.pattern, 1)).Validate(field))
	}
	return e.Err()
}

// merged returns requests of several sources in order of time.
func merged(sources []sim.Arrivals) sim.Arrivals {
	heads := make([]sim.Request, len(sources))
	more := make([]bool, len(sources))
	for i, next := range sources {
		heads[i], more[i] = next()
	}
	return func() (sim.Request, bool) {
		first := -1
		for i := range heads {
			if more[i] && (first < 0 || heads[i].At < heads[first].At) {
				first = i
			}
		}
		if first < 0 {
			return sim.Request{}, false
		}
		r := heads[first]
		heads[first], more[first] = sources[first]()
		return r, true
	}
}
