package main

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// heldOut is the share of a history that the checked server is calibrated by; the rest is what it is checked on.
const heldOut = 0.6

// believe simulates what was, on the part of the history that the server was not calibrated by, and refuses where what comes of
// it is too far from what was recorded.
func (o *options) believe(ctx context.Context, w *world, p *past, stdout, stderr io.Writer) error {
	t, err := o.replayed(ctx, w, p)
	if err != nil || t == nil {
		return err
	}
	w.trust = t
	if t.Trusted() {
		w.notes = append(w.notes, fmt.Sprintf("Checked from %s on: %s.", w.checkFrom.UTC().Format("2006-01-02 15:04"), t))
		return nil
	}
	for _, n := range w.notes {
		fmt.Fprintf(stderr, "simulate: %s\n", n)
	}
	if o.report != "" {
		if err := writeFile(o.report, stdout, w.trustPage); err != nil {
			return fmt.Errorf("-report: %w", err)
		}
	}
	return &refusedError{errors.New("the simulation is not what was recorded, so a ranking by it would be worth nothing:\n  " + strings.Join(t.Reasons, "\n  "))}
}

// replayed replays the replicas that were recorded, as the incumbent, with the traffic and the server of the history.
func (o *options) replayed(ctx context.Context, w *world, p *past) (*calibrate.Trust, error) {
	f := p.fleet
	from, to := o.steps(p)
	first := max(from, int(w.checkFrom.Sub(f.Start)/f.Step))
	if to-first < int(time.Hour/f.Step) && first > from { // -to leaves nothing of the rest
		w.notes = append(w.notes, "Warning: the server is checked on a part of what it was calibrated by, as -to leaves less than an hour of the rest.")
		first, w.checkFrom = from, w.Start
	}
	begin := max(from, first-int(time.Hour/f.Step)) // the fleet fills up before
	spec := counts(f.Spec[begin:to])
	if spec == nil {
		w.notes = append(w.notes, "Warning: the simulator was not checked, as the replicas that there were are not known.")
		return nil, nil
	}
	var spans []history.Span
	for _, s := range f.Spans {
		if s.From >= first && s.To <= to {
			spans = append(spans, s)
		}
	}
	recorded, simulated := make([]calibrate.Times, len(spans)), make([]calibrate.Times, len(spans))
	for i := range spans {
		at := f.Start.Add(time.Duration(spans[i].From) * f.Step)
		recorded[i] = calibrate.Times{From: at, TTFT: spans[i].TTFT, TPOT: spans[i].TPOT}
		simulated[i] = calibrate.Times{From: at, TTFT: like(spans[i].TTFT), TPOT: like(spans[i].TPOT)}
	}
	note := func(at time.Duration, seconds float64, of func(*calibrate.Times) calibrate.Distribution) {
		i := begin + int(at/f.Step)
		k, found := slices.BinarySearchFunc(spans, i, func(s history.Span, i int) int { return s.From - i })
		if !found {
			k--
		}
		if k >= 0 && i < spans[k].To {
			of(&simulated[k]).(*calibrate.Histogram).Add(seconds)
		}
	}
	s := w.Scenario
	s.Types = slices.Clone(w.Types)
	s.Types[0].Server, s.Types[0].Initial = w.checked, spec[0]
	s.Workload, s.Horizon, s.Metrics, s.Demand = p.traffic.Between(begin, to), 0, nil, nil
	s.Start = f.Start.Add(time.Duration(begin) * f.Step)
	s.Scrape, s.Control = sim.Scrape{Interval: 24 * time.Hour}, sim.Control{Interval: f.Step}
	r, err := sim.Run(ctx, &s, func() (scaling.Group, error) { return sim.Schedule(s.Start, f.Step, spec), nil }, sim.Options{
		Policy: incumbentName, Seed: seedOf(0), Request: func(x sim.Outcome) {
			note(x.Arrived+x.TTFT, x.TTFT.Seconds(), func(t *calibrate.Times) calibrate.Distribution { return t.TTFT })
			if x.Output > 1 {
				note(x.Arrived+x.Total, (x.Total-x.TTFT).Seconds()/float64(x.Output-1), func(t *calibrate.Times) calibrate.Distribution { return t.TPOT })
			}
		},
	})
	if err != nil {
		return nil, err
	}
	hours := 0.0
	for _, n := range spec {
		hours += float64(n) * f.Step.Hours()
	}
	t, err := calibrate.Compare(recorded, simulated, hours, r.AverageSpec*s.Workload.Duration().Hours(),
		calibrate.Check{TTFT: w.SLO.TTFT.Seconds() / 10, TPOT: w.SLO.TPOT.Seconds() / 10})
	return &t, err
}

// like returns an empty histogram with the bounds of most of what was counted.
func like(m history.Mixture) *calibrate.Histogram {
	var bounds []float64
	most := -1.0
	for i := range m {
		if n := m[i].Total(); n > most {
			bounds, most = m[i].Bounds, n
		}
	}
	return calibrate.NewHistogram(bounds)
}

// steps returns the intervals that -from and -to choose.
func (o *options) steps(p *past) (from, to int) {
	from, to = int(o.from/p.fleet.Step), len(p.traffic.Counts)
	if o.to != 0 {
		to = int(o.to / p.fleet.Step)
	}
	return from, to
}

// trustPicture draws recorded and simulated times by hour.
func (w *world) trustPicture() *picture {
	const width, height = 1200, 430
	t := w.trust
	pic := newPicture("trust", width, height, "Recorded and simulated times by hour", t.String())
	if len(t.Hours) == 0 {
		return pic
	}
	start := t.Hours[0].From
	hours := func(h *calibrate.Comparison) float64 { return h.From.Sub(start).Hours() }
	end := hours(&t.Hours[len(t.Hours)-1]) + 1
	for k, name := range []string{"time to first token, s", "time per token, s"} {
		low, high := math.Inf(1), 0.0
		for i := range t.Hours {
			for _, x := range [][4]float64{t.Hours[i].Recorded, t.Hours[i].Simulated} {
				for _, v := range x[2*k : 2*k+2] {
					if v > 0 {
						low, high = min(low, v), max(high, v)
					}
				}
			}
		}
		if high == 0 {
			continue
		}
		low, high = low/1.3, high*1.3
		bottom := 40 + float64(1-k)*205
		p := &panel{picture: pic, left: marginLeft + 14, right: width - marginRight, bottom: bottom, top: bottom + 150, x: linear(0, end), y: logarithmic(low, high)}
		p.yAxis(fmt.Sprintf("%s: off by %.1f %% (p50) and %.1f %% (p90)", name, 100*t.Error[2*k], 100*t.Error[2*k+1]), decades(low, high)...)
		p.xAxis("hours from "+start.UTC().Format("2006-01-02 15:04"), ticksWithin(0, end, niceStep(end, 12))...)
		for q := range 2 {
			c := blue()
			if q == 1 {
				c = vermillion()
			}
			var line []point
			for i := range t.Hours {
				h := &t.Hours[i]
				if v := h.Simulated[2*k+q]; v > 0 {
					line = append(line, point{hours(h) + 0.5, v})
				}
			}
			p.curve(line, c, 1.6)
			for i := range t.Hours {
				h := &t.Hours[i]
				if v := h.Recorded[2*k+q]; v > 0 {
					p.dot(c, 3, p.px(hours(h)+0.5), p.py(v))
				}
			}
		}
	}
	return pic
}

// decades returns ticks of a logarithmic scale: the fewer in each power of ten, the more of these there are.
func decades(low, high float64) (ticks []tick) {
	within := []float64{1, 1.5, 2, 3, 5, 7}
	switch {
	case high > 500*low:
		within = within[:1]
	case high > 5*low:
		within = []float64{1, 2, 5}
	}
	for power := -4; power < 5; power++ {
		for _, m := range within {
			if v := m * math.Pow10(power); v >= low && v <= high {
				ticks = append(ticks, tick{v, strconv.FormatFloat(v, 'f', max(0, 1-power), 64)})
			}
		}
	}
	return ticks
}

// trustPage writes the report of a refusal: what was compared, and why it does not do.
func (w *world) trustPage(out io.Writer) error {
	drawn, err := w.trustPicture().inline()
	if err != nil {
		return err
	}
	t, err := template.New("refused").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><title>No verdict</title>
<style>body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 1200px; padding: 24px 20px; } svg { width: 100%; height: auto; } li { max-width: 860px; }</style></head>
<body><h1>No verdict: what was cannot be simulated</h1>
<p>{{.Title}}. The replicas that there were have been replayed with the calibrated server. Dots are what was recorded, lines what the simulator says: blue the median, red the 90th percentile.</p>
<ul>{{range .Reasons}}<li>{{.}}</li>{{end}}</ul>
<figure>{{.Picture}}</figure>
<ul>{{range .Notes}}<li>{{.}}</li>{{end}}</ul></body></html>
`)
	if err != nil {
		return err
	}
	return t.Execute(out, struct {
		Title          string
		Reasons, Notes []string
		Picture        template.HTML
	}{w.title, w.trust.Reasons, w.notes, drawn})
}
