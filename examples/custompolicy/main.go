// Custompolicy is a scaling policy of one's own, in a hundred lines: it keeps the queue of a replica short, and waits
// before it takes one away. Its test checks it for the properties that every policy has, and
//
//	go run ./examples/custompolicy
//
// has the simulator say what it would have cost and served on llm-d's benchmark ramp.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// shortQueue asks for one replica more while the queue of a replica is longer than most, certainly, and for one fewer
// once it may have been empty at most, and in no doubt, for a while. The configuration is the value itself.
type shortQueue struct {
	most   float64 // waiting requests a replica
	quiet  time.Duration
	bounds scaling.Bounds
}

// memory is what it remembers: plain data, whose zero value is a fresh start.
type memory struct {
	Last       scaling.Stamp `json:"last,omitzero"`
	EmptySince scaling.Stamp `json:"emptySince,omitzero"`
}

// Codes are the rules by which it decides, each with the inequality that must hold of its numbers.
const (
	noQueue   scaling.Code = "NoQueue"
	longQueue scaling.Code = "LongQueue lower > most"
	shortOne  scaling.Code = "ShortQueue lower <= most"
	emptyFor  scaling.Code = "EmptyFor quiet:s >= wanted:s"
	waiting   scaling.Code = "Waiting quiet:s < wanted:s"
)

func (shortQueue) Kind() scaling.Kind {
	return scaling.Kind{Name: "example.com/short-queue", Version: 1}
}

// Decide scales up on Lower alone and down on Upper alone: no guess about a pod that gave no value can move the fleet.
func (q shortQueue) Decide(s memory, now time.Time, obs scaling.Observation) (memory, scaling.Decision) {
	d := scaling.HoldAt(obs.SpecReplicas)
	queue, at := obs.Reading(sim.MetricWaiting), scaling.StampOf(now)
	back := s.Last.Set && at.Milli < s.Last.Milli
	s.Last = at
	if back || !queue.Known() || queue.Upper > 0 {
		s.EmptySince = scaling.Stamp{}
	} else if !s.EmptySince.Set {
		s.EmptySince = at
	}
	switch quiet := now.Sub(s.EmptySince.Time()); {
	case back:
		d.To(obs.SpecReplicas, scaling.ClockBack, "")
	case !queue.Known():
		d = scaling.UnknownAt(obs.SpecReplicas, noQueue, sim.MetricWaiting)
	case queue.Lower > q.most:
		d.To(scaling.Plus(obs.SpecReplicas, 1), longQueue, sim.MetricWaiting, queue.Lower, q.most)
	case queue.Upper > 0:
		d.To(obs.SpecReplicas, shortOne, sim.MetricWaiting, queue.Lower, q.most)
	case quiet >= q.quiet:
		d.To(scaling.Plus(obs.SpecReplicas, -1), emptyFor, sim.MetricWaiting, quiet.Seconds(), q.quiet.Seconds())
	default:
		d.To(obs.SpecReplicas, waiting, sim.MetricWaiting, quiet.Seconds(), q.quiet.Seconds())
		d.NextBy(s.EmptySince.Time().Add(q.quiet))
	}
	d.Clamp(q.bounds)
	return s, d
}

// Applied begins the wait anew: a cooldown starts when something was carried out, and not before.
func (shortQueue) Applied(s memory, _ time.Time, _, _ int32) memory { return memory{Last: s.Last} }

func newPolicy() scaling.Policy {
	return scaling.New(shortQueue{most: 2, quiet: 2 * time.Minute, bounds: sim.RampBounds()})
}

func main() {
	cli.Alone("custompolicy simulates a policy that keeps queues short on llm-d's benchmark ramp. It takes no arguments.")
	ramp := sim.Ramp()
	ramp.Metrics = []sim.Metric{{Name: sim.MetricWaiting, Signal: sim.Waiting, Fill: 2}}
	newGroup := func() (scaling.Group, error) { return scaling.GroupOf(newPolicy()), nil }
	r, err := sim.Run(context.Background(), &ramp, newGroup, sim.Options{Seed: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%.1f %% in time, %.2f replica-hours, %d changes\n", 100*r.Attainment, r.ReplicaHours, r.Actions)
}
