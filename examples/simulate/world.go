package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

// A world is everything about a comparison but the policies: one scenario, and where it is from.
type world struct {
	sim.Scenario

	bounds scaling.Bounds
	// Title says what traffic it is, in words; Source, Licence and Citation where it is from.
	title, source, licence, citation string
	rateScale                        float64
	// atDemand starts the fleet with what the first minutes need, instead of the minimum.
	atDemand bool
	// notes are of a history: what is calibrated and what is missing. incumbent is what there was.
	notes     []string
	incumbent *contender
	// workload is what is scaled, in namespace and of kind, and engine what its pods run; empty is not known.
	workload, namespace, kind, engine string
	fleet                             *history.Fleet
	// origin is when clocks show zero.
	origin time.Time
	// checkFrom is from when on the history is not what the server was calibrated by, and trust what was found there.
	// checked is the server of that check.
	checkFrom time.Time
	trust     *calibrate.Trust
	checked   sim.Server
}

func (o *options) world(p *past) (*world, error) {
	w := &world{bounds: scaling.Bounds{Min: int32(o.min), Max: int32(o.max)}, rateScale: 1, origin: midnight()}
	w.Scenario = sim.Ramp()
	w.SLO = sim.SLO{TTFT: o.ttft, TPOT: o.tpot}
	w.Scrape.FailureRate = o.scrapeFailures
	if p != nil {
		w.origin = p.fleet.Start
		return w, o.recorded(w, p)
	}
	if o.scenario == ramp {
		w.title = "llm-d's benchmark of SLO-aware autoscaling: 2, 4, 6, 8, 10, 4 and 1 requests/s"
		w.source, w.licence = "llm-d, guides/workload-autoscaling/slo-aware/benchmark-templates", "Apache-2.0"
	} else if err := o.traffic(w); err != nil {
		return nil, err
	}
	server, err := o.server()
	if err != nil {
		return nil, err
	}
	startup := sim.ColdStart(o.coldStart)
	switch {
	case o.coldStartTail:
		startup = sim.HeavyTail(o.coldStart)
	case !o.set["cold-start"] && o.document != nil && o.document.Startup != nil:
		startup = o.document.Startup.Sim()
	}
	w.Types = []sim.Type{{Server: server, Initial: w.bounds.Min, Startup: startup}}
	w.notes = append(w.notes, o.doubts()...)
	w.Start = midnight().Add(o.from)
	return w, nil
}

// midnight is when traffic begins, on a Monday: clocks show how long it has been.
func midnight() time.Time { return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) }

// traffic makes the world that of a trace.
func (o *options) traffic(w *world) error {
	traffic, err := o.open(w)
	if err != nil {
		return err
	}
	if traffic, err = window(traffic, o.from, o.to); err != nil {
		return err
	}
	if err := w.fits("-trace "+o.trace, traffic); err != nil {
		return err
	}
	if err := o.cachePrefixes(w, traffic); err != nil {
		return err
	}
	w.Workload = sim.Scaled(traffic, o.rateScale)
	if !some(w.Workload) {
		return misuse("-trace %s at -rate-scale %g: has no requests", o.trace, o.rateScale)
	}
	w.rateScale = o.rateScale
	w.Horizon = 0
	w.Scrape.Interval = 15 * time.Second
	w.atDemand = true
	return nil
}

// some reports whether traffic has requests with every seed by which the capacity of a replica is found.
func some(traffic sim.Workload) bool {
	for i := range capacitySeeds {
		if _, ok := traffic.Arrivals(seedOf(i))(); !ok {
			return false
		}
	}
	return true
}

// fits refuses traffic that is none, or longer than a run can be, before a request of it is made.
func (w *world) fits(name string, traffic sim.Workload) error {
	if most := sim.MaxDuration - w.Grace; traffic.Duration() > most {
		return misuse("%s: lasts %s: must be at most %s, -from and -to cut a part out", name, traffic.Duration(), most)
	}
	if err := traffic.Validate("traffic"); err != nil {
		return misuse("%s: %w", name, err)
	}
	return nil
}

// cachePrefixes turns prefix caching on where it is asked for.
func (o *options) cachePrefixes(w *world, traffic sim.Workload) error {
	if !o.set["prefix-cache"] {
		return nil
	}
	if err := w.Router.UnmarshalText([]byte(o.prefixCache)); err != nil {
		return misuse("-prefix-cache %q: must be PrefixCache, LeastLoaded or RoundRobin", o.prefixCache)
	}
	trace, _ := traffic.(sim.Trace)
	if !slices.ContainsFunc(trace.Requests, func(r sim.Request) bool { return len(r.Blocks) > 0 }) {
		return misuse("-prefix-cache: the requests of -trace %s have no blocks; those of %s have, and of files as Mooncake's", o.trace, traces.NameMooncakeSynthetic)
	}
	w.BlockTokens = traces.BlockTokens
	w.notes = append(w.notes, fmt.Sprintf("Replicas cache prefixes, router %s: one endless cache would hit %.1f %% of the prompt tokens.", w.Router, 100*traces.PrefixShare(trace)))
	return nil
}

// open reads the trace that the flags name.
func (o *options) open(w *world) (sim.Workload, error) {
	for _, info := range traces.List() {
		if info.Name == o.trace {
			w.Name, w.title, w.source, w.licence, w.citation = info.Name, info.Title, info.Source, info.Licence, info.Citation
			return traces.Open(o.trace)
		}
	}
	f, err := os.Open(o.trace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, misuse("-trace %q: neither a file nor one of %s", o.trace, strings.Join(each(traces.List(), func(i traces.Info) string { return i.Name }), ", "))
	}
	var all sim.Workload
	if err == nil {
		defer f.Close() //nolint:errcheck // it was only read
		w.Name = filepath.Base(o.trace)
		w.title = "Traffic of " + w.Name
		all, err = traces.Read(f, w.Name)
	}
	if err != nil {
		if row, ok := errors.AsType[*traces.RowError](err); ok && row.Column != "" {
			err = fmt.Errorf("%w\n-convert makes a trace of a log with other columns or in another order, and leaves out requests without tokens", err)
		}
		return nil, misuse("-trace: %w", err)
	}
	return all, nil
}

// window cuts the part in [from, to) out of traffic; a to of 0 is its end.
func window(traffic sim.Workload, from, to time.Duration) (sim.Workload, error) {
	if to == 0 {
		to = traffic.Duration()
	}
	if from == 0 && to == traffic.Duration() {
		return traffic, nil
	}
	if from >= traffic.Duration() || to > traffic.Duration() {
		return nil, misuse("-from %s, -to %s: must be within the trace's length, %s", from, to, traffic.Duration())
	}
	switch t := traffic.(type) {
	case sim.Series:
		s, err := traces.Slice(t, from, to)
		if err != nil {
			return nil, misuse("-from, -to: %w", err)
		}
		return s, nil
	case sim.Trace:
		part := sim.Trace{Length: to - from}
		for _, r := range t.Requests {
			if r.At >= from && r.At < to {
				r.At -= from
				part.Requests = append(part.Requests, r)
			}
		}
		if len(part.Requests) == 0 {
			return nil, misuse("-from %s, -to %s: the trace has no requests there", from, to)
		}
		return part, nil
	default:
		return nil, misuse("-from and -to do not go with this trace")
	}
}
