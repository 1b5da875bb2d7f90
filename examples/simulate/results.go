package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
)

// A document is what -json writes. It has no wall times and nothing of the machine: the same flags give the same bytes.
type document struct {
	Scenario   sim.Scenario      `json:"scenario"`
	Traffic    traffic           `json:"traffic"`
	Bounds     scaling.Bounds    `json:"bounds"`
	Alpha      float64           `json:"alpha"`
	Seeds      int               `json:"seeds"`
	Capacity   oracle.Capacity   `json:"capacity"` // 0 where a replica misses the SLO by itself; then there is no demand
	DemandStep time.Duration     `json:"demandStep"`
	Demand     [][]int32         `json:"demand"` // for each seed
	Floor      []float64         `json:"floor"`  // replica-hours, for each seed
	Replays    []oracle.Replayed `json:"replays"`
	Policies   []result          `json:"policies"` // in the order of the table
	Sweep      []result          `json:"sweep"`
	Kinds      []result          `json:"kinds,omitempty"`
	Apart      []result          `json:"disaggregated,omitempty"`
	Fidelity   []fidelity        `json:"fidelity,omitempty"`
	// Days are those that certainty is by, and Changes what would change the verdict on a history.
	Days    int      `json:"days,omitempty"`
	Changes *changes `json:"changes,omitempty"`
}

type traffic struct {
	Title     string        `json:"title"`
	Source    string        `json:"source"`
	Licence   string        `json:"licence"`
	Citation  string        `json:"citation"`
	Length    time.Duration `json:"length"`
	RateScale float64       `json:"rateScale"`
}

// A result is a line of the table. Results are without the timelines that the pictures show.
type result struct {
	Name    string `json:"name"`
	Sort    sort   `json:"sort"`
	Attains bool   `json:"attains"`
	// Recommended is true of the policy that is recommended to who does not know which to take.
	Recommended bool `json:"recommended,omitempty"`
	// Ratio is to the oracle's replica-hours; nil where the policy does not attain alpha, there is no oracle, or a static
	// fleet is cheaper as it begins with other replicas.
	Ratio        *estimate    `json:"ratio"`
	Attainment   estimate     `json:"attainment"`
	ReplicaHours estimate     `json:"replicaHours"`
	Results      []sim.Result `json:"results"` // for each seed
	// Certainty is nil where there are fewer than three days.
	Certainty *certainty `json:"certainty,omitempty"`
}

// json writes all results.
func (c *comparison) json(w io.Writer) error {
	t := c.world
	return writeJSON(w, document{
		Scenario: t.Scenario, Bounds: t.bounds, Alpha: c.alpha, Seeds: c.seeds, Capacity: c.capacity,
		Traffic:    traffic{t.title, t.source, t.licence, t.citation, t.Workload.Duration(), t.rateScale},
		DemandStep: c.demandStep, Demand: c.demand, Floor: c.floor, Replays: c.replays,
		Policies: resultsOf(c.lines), Sweep: resultsOf(c.sweep), Kinds: resultsOf(c.kinds), Fidelity: c.fidelity,
		Apart: resultsOf(c.apart.all()), Days: len(c.arrivals), Changes: c.changes,
	})
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(v)
}

func resultsOf(lines []*line) []result {
	all := make([]result, 0, len(lines))
	for _, l := range lines {
		r := result{
			Name: l.name, Sort: l.sort, Attains: l.summary.attains, Recommended: l.name == recommendedName,
			Attainment: l.summary.attained, ReplicaHours: l.summary.hours, Certainty: l.certainty,
		}
		if l.summary.attains && l.summary.ratio.Mean > 0 {
			r.Ratio = &l.summary.ratio
		}
		for _, one := range l.results {
			one.Timeline = nil
			r.Results = append(r.Results, one)
		}
		all = append(all, r)
	}
	return all
}
