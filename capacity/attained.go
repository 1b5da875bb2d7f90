package capacity

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A Recorder gathers the past of a fleet as a Scaler does, and decides nothing: for those who ask what other counts would
// have attained. Its memory is bounded as a State's is.
type Recorder struct {
	config Config
	state  State
}

// NewRecorder returns a Recorder, or every rule that the configuration breaks.
func NewRecorder(c Config) (*Recorder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Recorder{config: c}, nil
}

// See notes what was seen. It reports whether the observation has all that is needed (Metrics).
func (r *Recorder) See(now time.Time, obs scaling.Observation) bool {
	r.state.turnBack(seconds(now))
	x, missing := read(now, &obs, r.config.SLO)
	if missing != "" {
		return false
	}
	r.state.see(x, &obs)
	return true
}

// Past returns a copy of what was gathered, of a fleet whose replicas take so long to start.
func (r *Recorder) Past(start time.Duration) Past {
	if len(r.state.Samples) == 0 {
		return Past{}
	}
	return r.state.past(start.Seconds())
}

// A Count is how many replicas are asked for from a time on.
type Count struct {
	At       time.Time `json:"at"`
	Replicas int32     `json:"replicas"`
}

// An Attainment is what counts would have attained of a past.
type Attainment struct {
	From time.Time `json:"from"` // of the requests that count
	To   time.Time `json:"to"`
	// Attained is the share of requests that would have met the SLO, by the simulator.
	Attained float64 `json:"attained"`
	// Measured is the share that met it in truth, in the same time: what the simulator says of the real counts is to be
	// compared with it.
	Measured float64 `json:"measured"`
	// ReplicaHours are those that the counts ask for in the time.
	ReplicaHours float64 `json:"replicaHours"`
	// Requests is how many were replayed, on as small a share of the fleet where there were more than 80,000.
	Requests int `json:"requests"`
}

// leastReplayed is the least that is replayed: 100 requests, within two minutes at least.
const (
	leastReplayed = 100
	leastSpan     = 120.0
)

// Attained replays a past on a fleet that is asked for other counts, in order of time: as many requests as came, of lengths as they
// were, on servers that are calibrated by the times per token that were measured (see package capacity). Before the first count it has that. It is not
// known where less than 100 requests came, or in less than two minutes; only the time since the first count is replayed.
//
// It is a pure function of the past, and takes up to a second.
func (p *Past) Attained(c *Config, counts []Count) (a Attainment, known bool) {
	if len(p.Samples) < 2 || len(counts) == 0 {
		return a, false
	}
	own := *p
	first := seconds(counts[0].At)
	for len(own.Samples) > 1 && own.Samples[0].At < first-1 {
		own.Samples = own.Samples[1:]
	}
	warm := min(max(60, 3*own.residence()), 600)
	share := own.share()
	requests, from, to := own.traffic(mostReplay, share, warm)
	if len(requests) < leastReplayed || to-from < leastSpan {
		return a, false
	}
	server := slower(c.Server, p.slowness(&c.Server))
	server.PrefillToken *= 1 - own.hits(requests)
	b := bench{
		config: c, server: server, start: p.Start, requests: requests,
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
	late, _ := b.under(requests, b.initial, time.Duration(p.Start*float64(time.Second)), 0, 1, func() (scaling.Group, error) {
		return sim.Schedule(began(), c.Control, plan), nil
	})
	a = Attainment{From: unix(from), To: unix(to), Attained: 1 - late, Measured: max(0, 1-own.late(from)), Requests: len(requests)}
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
