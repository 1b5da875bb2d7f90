package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A refusedError says why there is no verdict: the history is not sufficient for one.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// fromHistory reports whether the traffic is of a Prometheus, or of what one answered.
func (o *options) fromHistory() bool { return o.prometheus.url != "" || o.history != "" }

// historyFlags are those of the import.
func historyFlags() []string {
	return []string{
		"prometheus", "model", "range", "end", "step", "engine", "namespace", "match", "pod-label", "router",
		"http-config", "bearer-token-file", "tls-ca", "tls-cert", "tls-key", "tenant", "max-series", "max-mb", "dump",
	}
}

// checkHistory refuses flags of the import that do not go together, and reads those that are texts.
func (o *options) checkHistory() error {
	r := &o.prometheus
	for _, name := range historyFlags() {
		if o.set[name] && r.url == "" {
			return misuse("-%s goes with -prometheus", name)
		}
	}
	if o.set["cold-start-tail"] && !o.set["cold-start"] && (o.fromHistory() || o.document != nil && o.document.Startup != nil) {
		return misuse("-cold-start-tail goes with -cold-start where the starts are those of a history or of the file of -server")
	}
	if !o.fromHistory() {
		if o.set["manifest"] || o.set["scaledobject"] {
			return misuse("-manifest and -scaledobject go with -prometheus or -history")
		}
		return nil
	}
	for _, name := range []string{"trace", "scenario", "prefix-cache"} {
		if o.set[name] {
			return misuse("-%s does not go with -prometheus or -history", name)
		}
	}
	if o.history != "" && r.url != "" {
		return misuse("-history does not go with -prometheus")
	}
	length, err := model.ParseDuration(o.span)
	if err != nil || length <= 0 {
		return misuse("-range %q: must be a time as Prometheus writes it, as 7d", o.span)
	}
	r.length, r.end = time.Duration(length), time.Now()
	if o.until != "" {
		if r.end, err = time.Parse(time.RFC3339, o.until); err != nil {
			return misuse("-end %q: must be a time, as 2026-01-31T00:00:00Z", o.until)
		}
	}
	for _, name := range []string{"bearer-token-file", "tls-ca", "tls-cert", "tls-key", "tenant"} {
		if o.set[name] && o.set["http-config"] {
			return misuse("-%s does not go with -http-config, which says all of it", name)
		}
	}
	if o.set["step"] && r.options.Step == 0 {
		return misuse("-step 0s: must be whole seconds, at least 1s and at most 1h")
	}
	if year := r.end.UTC().Year(); year < 1970 || year >= 2200 {
		return misuse("-end %q: must be within 1970 and 2200", o.until)
	}
	if (r.cert == "") != (r.key == "") {
		return misuse("-tls-cert and -tls-key go together")
	}
	if r.maxSeries < 1 {
		return misuse("-max-series %d: must be at least 1", r.maxSeries)
	}
	if o.maxMB < 1 || o.maxMB > 1<<20 {
		return misuse("-max-mb %d: must be within 1 and %d", o.maxMB, 1<<20)
	}
	r.maxBytes = int64(o.maxMB) << 20
	if r.options.Router = history.Engine(strings.ToUpper(o.router)); o.router != "" && r.options.Router != history.EPP {
		return misuse("-router %q: must be epp", o.router)
	}
	return nil
}

// A past is what a fleet did, and what follows of it.
type past struct {
	fleet   *history.Fleet
	traffic *history.Recorded
	notes   []string
}

// load reads the history that the flags ask for.
func (o *options) load(ctx context.Context, stderr io.Writer) (*past, error) {
	var d *history.Dump
	var err error
	if o.history != "" {
		d, err = readDump(o.history)
	} else {
		o.prometheus.stderr = stderr
		if d, err = o.prometheus.fetch(ctx); err == nil && o.dump != "" {
			err = writeDump(o.dump, d)
		}
	}
	if err != nil {
		return nil, err
	}
	fleet, err := history.Reduce(d)
	if err != nil {
		return nil, refused(err)
	}
	p := &past{fleet: fleet}
	for _, n := range fleet.Notes {
		p.notes = append(p.notes, "Warning: history: "+n.String())
	}
	var filled int
	if p.traffic, filled, err = fleet.Workload(); err != nil {
		for _, n := range p.notes {
			fmt.Fprintf(stderr, "simulate: %s\n", strings.TrimPrefix(n, "Warning: "))
		}
		return nil, refused(err)
	}
	if filled > 0 {
		p.notes = append(p.notes, fmt.Sprintf("Warning: history: what came when is not known for %s, and taken from the time around it.", time.Duration(filled)*fleet.Step))
	}
	return p, nil
}

// refused makes a refusal of what package history refuses.
func refused(err error) error {
	if _, ok := errors.AsType[*history.RefusedError](err); ok {
		return &refusedError{err}
	}
	return err
}

func readDump(name string) (*history.Dump, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, misuse("-history: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	d, err := history.Read(f)
	if err != nil {
		return nil, misuse("-history %s: %w", name, err)
	}
	return d, nil
}

// writeDump writes a dump, packed where its name says so.
func writeDump(name string, d *history.Dump) error {
	err := writeThrough(name, 0o600, func(w io.Writer) error {
		if !strings.HasSuffix(name, ".gz") {
			return d.Write(w)
		}
		packed := gzip.NewWriter(w)
		return errors.Join(d.Write(packed), packed.Close())
	})
	if err != nil {
		return fmt.Errorf("-dump: %w", err)
	}
	return nil
}

// recorded makes the world that of a history.
func (o *options) recorded(w *world, p *past) error {
	f := p.fleet
	w.Name, w.source = "history", "Prometheus"
	w.notes = append(w.notes, p.notes...)
	w.notes = append(w.notes, fmt.Sprintf("The history has %s.", f.Repairs))
	if c := p.traffic.Correlation; math.Abs(c) >= 0.1 {
		w.notes = append(w.notes, fmt.Sprintf("Calibrated: lengths of prompts and answers are correlated by %.2f, by the tokens in the cache.", c))
	}
	w.fleet = f
	w.workload, w.namespace, w.kind, w.engine = cmp.Or(o.prometheus.options.Workload, f.Target.Name), f.Target.Namespace, f.Target.Kind, string(f.Engine)
	if o.from%f.Step != 0 || o.to%f.Step != 0 {
		return misuse("-from %s, -to %s: must be multiples of the history's step, %s", o.from, o.to, f.Step)
	}
	from, to := o.steps(p)
	if from >= to || to > len(p.traffic.Counts) {
		return misuse("-from %s, -to %s: must be within the history's length, %s", o.from, o.to, p.traffic.Duration())
	}
	traffic := p.traffic.Between(from, to)
	if err := w.fits("the history", traffic); err != nil {
		return err
	}
	w.Workload, w.rateScale = sim.Scaled(traffic, o.rateScale), o.rateScale
	switch {
	case !some(traffic):
		return &refusedError{errors.New("the history has no requests between -from and -to")}
	case !some(w.Workload):
		return misuse("-rate-scale %g: leaves the history no requests", o.rateScale)
	}
	w.Horizon, w.Scrape.Interval = 0, f.Step
	w.Start = f.Start.Add(time.Duration(from) * f.Step)
	w.title = fmt.Sprintf("Traffic of %s from %s to %s, as its Prometheus has it",
		nameOf(f), w.Start.Format("2006-01-02 15:04"), w.Start.Add(traffic.Duration()).Format("2006-01-02 15:04 MST"))
	server, err := o.calibrated(w, f)
	if err != nil {
		return err
	}
	spec := counts(f.Spec[from:to])
	if spec != nil {
		low, high := slices.Min(spec), slices.Max(spec)
		if !o.set["min"] {
			w.bounds.Min = max(1, low)
		}
		if !o.set["max"] {
			w.bounds.Max = max(2*high, w.bounds.Min+1)
		}
		w.bounds = o.ordered(w.bounds)
		w.notes = append(w.notes, fmt.Sprintf("There were %d to %d replicas, so the bounds are %d to %d: -min and -max set others.", low, high, w.bounds.Min, w.bounds.Max))
	} else {
		w.bounds = o.ordered(w.bounds)
		w.notes = append(w.notes, fmt.Sprintf("Warning: history: without the replicas that were asked for there is no incumbent, and the bounds are -min %d and -max %d.", w.bounds.Min, w.bounds.Max))
	}
	w.Types = []sim.Type{{Server: server, Initial: w.bounds.Min, Startup: o.starts(w, f)}}
	if spec == nil {
		w.atDemand = true
		return nil
	}
	w.Types[0].Initial = w.bounds.Clamp(spec[0])
	w.incumbent = &contender{
		name: incumbentName, sort: ofIncumbent, note: "the replicas that were asked for, as they were recorded",
		initial:    spec[0],
		controller: func(uint64) (scaling.Group, error) { return sim.Schedule(w.Start, f.Step, spec), nil },
	}
	return nil
}

// ordered returns bounds in which the one that was not given makes way for the other.
func (o *options) ordered(b scaling.Bounds) scaling.Bounds {
	if !o.set["max"] {
		b.Max = max(b.Max, b.Min)
	}
	if !o.set["min"] {
		b.Min = min(b.Min, b.Max)
	}
	return b
}

// incumbentName is the line of what there was.
const incumbentName = "incumbent"

func nameOf(f *history.Fleet) string {
	if f.Model == "" {
		return "a fleet of " + string(f.Engine)
	}
	return f.Model
}

// counts returns the counts of replicas, where one is not known that of before; nil if a fifth and more are not.
func counts(spec []float64) []int32 {
	unknown, last := 0, int32(0)
	for _, x := range slices.Backward(spec) {
		if !math.IsNaN(x) {
			last = scaling.Saturate(x)
		}
	}
	out := make([]int32, len(spec))
	for i, x := range spec {
		if math.IsNaN(x) {
			unknown++
		} else {
			last = scaling.Saturate(x)
		}
		out[i] = last
	}
	if unknown*5 >= len(spec) {
		return nil
	}
	return out
}

// calibrated returns the server: that of -server, or else what the history says. What is checked is that of its first part, on the
// rest: the estimator is believed, and given all.
func (o *options) calibrated(w *world, f *history.Fleet) (sim.Server, error) {
	w.checkFrom = w.Start
	if o.set["server"] {
		w.notes = append(w.notes, "The server is that of -server, and not calibrated by the history.")
		w.notes = append(w.notes, o.doubts()...)
		s, err := o.server()
		w.checked = s
		return s, err
	}
	options := calibrate.Options{Name: nameOf(f) + ", calibrated", KVTokens: o.kvTokens}
	r, err := calibrate.Fit(f.Points(), options)
	if err != nil {
		return sim.Server{}, &refusedError{fmt.Errorf("the server cannot be calibrated: %w. Say which it is with -server", err)}
	}
	if !r.KVTokens.Known() || r.KVTokens.Value < 1 {
		return sim.Server{}, &refusedError{fmt.Errorf("the server cannot be calibrated: the size of its KV cache is not known: %s. Give it with -kv-tokens, or say which it is with -server", r.KVTokens.Unknown)}
	}
	if s, err := startsOf(f); err == nil {
		r.Startup = s
	}
	if o.writeServer != "" {
		if err := writeFile(o.writeServer, io.Discard, raw(r.Text())); err != nil {
			return sim.Server{}, fmt.Errorf("-write-server: %w", err)
		}
	}
	server, err := r.Server()
	if err != nil {
		return sim.Server{}, &refusedError{fmt.Errorf("the server cannot be calibrated: %w", err)}
	}
	w.checked = server
	at, points, _ := calibrate.SplitAt(f.Points(), heldOut)
	if first, err := calibrate.Fit(points, options); err == nil {
		if s, err := first.Server(); err == nil {
			w.checked, w.checkFrom = s, at
		}
	}
	if w.checkFrom.Equal(w.Start) {
		w.notes = append(w.notes, "Warning: the history is so short that the server is checked on what it was calibrated by.")
	}
	for _, e := range []struct {
		name  string
		unit  string
		scale float64
		of    calibrate.Estimate
	}{
		{"a step", "ms", 1e3, r.Base},
		{"a prompt token", "us", 1e6, r.PrefillToken},
		{"a sequence", "us", 1e6, r.Sequence},
		{"a token in the cache", "ns", 1e9, r.KVToken},
	} {
		text := fmt.Sprintf("Calibrated: %s takes %.4g %s, within %.4g and %.4g", e.name, e.of.Value*e.scale, e.unit, e.of.Lower*e.scale, e.of.Upper*e.scale)
		if !e.of.Known() {
			text = "Warning: " + strings.ToLower(text[:1]) + text[1:] + ": " + e.of.Unknown
		}
		w.notes = append(w.notes, text+".")
	}
	return server, nil
}

// starts returns how long replicas take: what -cold-start says, or the history.
func (o *options) starts(w *world, f *history.Fleet) sim.Startup {
	if !o.set["cold-start"] && len(f.Starts) > 0 {
		if found, err := startsOf(f); err == nil {
			w.notes = append(w.notes, fmt.Sprintf("Calibrated: %d starts took %s (median, %s and less nine in ten), and at most %s.", found.Starts, inWords(found.P50), inWords(found.P90), inWords(found.Max)))
			return found.Sim()
		}
	}
	if !o.set["cold-start"] {
		w.notes = append(w.notes, fmt.Sprintf("Warning: history: no start was seen, so it is taken to be -cold-start %s.", o.coldStart))
	}
	if o.coldStartTail {
		return sim.HeavyTail(o.coldStart)
	}
	return sim.ColdStart(o.coldStart)
}

// startsOf returns how long the starts of a history took.
func startsOf(f *history.Fleet) (*calibrate.Startup, error) {
	return calibrate.Starts(each(f.Starts, history.Start.Took))
}
