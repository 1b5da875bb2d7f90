package capacity

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A Recorder gathers the past of a fleet as a Scaler does but decides nothing. It answers what other replica counts would have
// attained. Its memory is bounded like that of a State.
type Recorder struct {
	config Config
	state  State
	shown  sim.SLO
}

// NewRecorder returns a Recorder, or an error with every rule that the configuration breaks.
func NewRecorder(c Config) (*Recorder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Recorder{config: c}, nil
}

// See records an observation. It returns false if the observation lacks one of the metrics (see Metrics).
func (r *Recorder) See(now time.Time, obs scaling.Observation) bool {
	r.state.turnBack(seconds(now), r.config.Scrape.Seconds())
	x, missing := read(now, &obs, r.config.SLO)
	if missing != "" {
		return false
	}
	if r.state.see(x, &obs) {
		r.shown = shown(&obs, r.config.SLO)
	}
	return true
}

// Past returns a copy of the gathered past, for a fleet whose replicas take this long to start.
func (r *Recorder) Past(start time.Duration) Past {
	if len(r.state.Samples) == 0 {
		return Past{}
	}
	p := r.state.past(start.Seconds())
	p.Shown = r.shown
	return p
}

// A Count is the replica count that is asked for from a time on.
type Count struct {
	At       time.Time `json:"at"`
	Replicas int32     `json:"replicas"`
}

// An Attainment says how many requests of a past would have met the SLO under other replica counts.
type Attainment struct {
	From time.Time `json:"from"` // start of the period whose requests count
	To   time.Time `json:"to"`
	// Attained is the share of requests that would have met the SLO, according to the simulator.
	Attained float64 `json:"attained"`
	// Measured is the share that met the SLO in the same period as histograms show: what is in the bucket of the SLO met it. Compare it
	// with what the simulator says of the real counts.
	Measured float64 `json:"measured"`
	// ReplicaHours is what the counts ask for in that period.
	ReplicaHours float64 `json:"replicaHours"`
	// Requests is how many requests were replayed. Of more than 80,000 a share is replayed, on the same share of the fleet.
	Requests int `json:"requests"`
}

// A past is replayed if it has at least 100 requests in at least two minutes.
const (
	leastReplayed = 100
	leastSpan     = 120.0
)

// Attained replays a past on a fleet with other replica counts, given in order of time. The replay has as many requests as came, with
// the observed lengths, on servers calibrated by the measured times per token (see the package comment). Only the time since the
// first count is replayed. known is false if fewer than 100 requests came in that time, if it is shorter than two minutes, or if the
// replay has more than 100 million events, as with servers that take microseconds for a step.
//
// It is a pure function of the past, and takes up to a second.
func (p *Past) Attained(c *Config, counts []Count) (a Attainment, known bool) {
	if len(p.Samples) < 2 || len(counts) == 0 {
		return a, false
	}
	own := *p.recent()
	first := seconds(counts[0].At)
	for len(own.Samples) > 1 && own.Samples[0].At < first-1 {
		own.Samples = own.Samples[1:]
	}
	warm := min(max(60, 3*own.residence()), 600)
	share := own.share(mostReplay)
	requests, from, to := own.traffic(mostReplay, share, warm)
	if len(requests) < leastReplayed || to-from < leastSpan {
		return a, false
	}
	server := slower(c.Server, p.slowness(&c.Server))
	server.PrefillToken *= 1 - own.hits(requests)
	b := bench{
		config: c, server: server, start: p.Start, requests: requests, most: mostLooks / 8,
		span: time.Duration((to - from + warm) * float64(time.Second)), warm: time.Duration(warm * float64(time.Second)),
	}
	enough := max(mostFleet, 2*own.most()) // more would attain no more
	at := func(t float64) float64 {
		k, _ := slices.BinarySearchFunc(counts, t, func(one Count, t float64) int {
			if seconds(one.At) <= t {
				return -1
			}
			return 1
		})
		return min(float64(counts[max(k-1, 0)].Replicas), enough)
	}
	var plan []int32
	for t := from - warm; t <= to; t += c.Control.Seconds() {
		plan = append(plan, scaling.Ceil(at(max(t, from))*share))
	}
	b.initial = plan[0]
	of := b.under(requests, b.initial, time.Duration(p.Start*float64(time.Second)), 0, 1, func() (scaling.Group, error) {
		return sim.Schedule(began(), c.Control, plan), nil
	})
	if b.exhausted() {
		return Attainment{}, false
	}
	a = Attainment{From: unix(from), To: unix(to), Attained: 1 - of.late, Measured: max(0, 1-own.late(from)), Requests: len(requests)}
	for i := range counts {
		begin, end := max(seconds(counts[i].At), from), to
		if i == 0 {
			begin = from
		}
		if i+1 < len(counts) {
			end = min(seconds(counts[i+1].At), to)
		}
		a.ReplicaHours += float64(counts[i].Replicas) * max(0, end-begin) / 3600
	}
	return a, true
}

func unix(t float64) time.Time { return time.UnixMilli(int64(math.Round(t * 1000))).UTC() }
