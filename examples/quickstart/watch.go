package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// errNoAnswer is the failure of a watch in which no target ever gave a value.
var errNoAnswer = errors.New("no target ever answered with a value")

// watch scrapes real endpoints and prints what each said, the reading, and what would be decided.
func watch(ctx context.Context, o options, out io.Writer) error {
	metric := scrape.Named(o.metric)
	metric.Fill = o.high
	pods, err := pods(o.targets)
	if err != nil {
		return &usageError{err}
	}
	scraper, err := scrape.New(scrape.Config{
		Metrics: []scrape.Metric{metric}, Interval: o.interval, Timeout: o.timeout, AllowLocal: true,
	})
	if err != nil {
		return &usageError{err}
	}
	defer scraper.Close()
	policy, err := watchPolicy(o, len(pods))
	if err != nil {
		return &usageError{err}
	}

	view := newView(out, o.json)
	answered := false
	next := time.NewTicker(o.interval)
	defer next.Stop()
	for {
		now := time.Now()
		sweep := scraper.Scrape(ctx, pods)
		if ctx.Err() == nil {
			ready := int32(0)
			for _, p := range sweep.Pods {
				if p.Values[0].OK {
					ready++
				}
			}
			answered = answered || ready > 0
			obs := scaling.Observation{SpecReplicas: int32(len(pods)), ReadyReplicas: ready, Readings: sweep.Readings}
			var d *scaling.Decision
			if policy != nil {
				decided := policy.Decide(now, obs)
				d = &decided
			}
			view.watched(now, metric, sweep, d)
		}
		if !o.once {
			select {
			case <-next.C:
				continue
			case <-ctx.Done():
			}
		}
		if !answered {
			return errNoAnswer
		}
		return nil
	}
}

// pods makes a pod of every URL.
func pods(targets string) ([]scrape.Pod, error) {
	var pods []scrape.Pod
	seen := map[string]bool{}
	for target := range strings.SplitSeq(targets, ",") {
		target = strings.TrimSpace(target)
		switch {
		case target == "":
			return nil, fmt.Errorf("-targets %q: an entry is empty", targets)
		case seen[target]:
			return nil, fmt.Errorf("-targets: %s is there twice", target)
		}
		seen[target] = true
		pods = append(pods, scrape.Pod{Name: target, URL: target})
	}
	return pods, nil
}

// watchPolicy decides with the seed's windows and cooldowns; nil without -high.
func watchPolicy(o options, targets int) (scaling.Policy, error) {
	if o.high == 0 && o.low == 0 {
		return nil, nil //nolint:nilnil // no thresholds, no policy
	}
	most := o.max
	if most == 0 {
		most = 2 * targets
	}
	if o.min > math.MaxInt32 || most > math.MaxInt32 {
		return nil, fmt.Errorf("-min %d, -max %d: must be at most %d", o.min, most, math.MaxInt32)
	}
	config := realtime.Kaito(
		scaling.Bounds{Min: int32(o.min), Max: int32(most)},
		realtime.Metric{Name: o.metric, High: o.high, Low: o.low},
	)
	config.Period = o.interval
	scaler, err := realtime.New(config)
	if err != nil {
		return nil, err
	}
	return scaling.New(scaler), nil
}

// watched prints one sweep: a line a target, the reading, the decision.
func (v *view) watched(now time.Time, metric scrape.Metric, sweep scrape.Sweep, d *scaling.Decision) {
	reading := sweep.Readings[0]
	if v.json {
		targets := make([]map[string]any, 0, len(sweep.Pods))
		for _, p := range sweep.Pods {
			t := map[string]any{"target": p.Name}
			value := p.Values[0]
			if value.OK {
				t["value"], t["min"], t["max"], t["series"] = value.Value, value.Min, value.Max, value.Series
			}
			if value.Err != nil {
				t["reason"], t["error"] = value.Err.Reason.String(), value.Err.Error()
			}
			targets = append(targets, t)
		}
		object := map[string]any{"time": now, "metric": metric.Name, "targets": targets, "reading": readable(reading)}
		if d != nil {
			object["decision"] = d
		}
		v.object(object)
		return
	}
	fmt.Fprintf(v.out, "%s  %s\n", now.Format(time.TimeOnly), metric.Name)
	for _, p := range sweep.Pods {
		value := p.Values[0]
		line := "no value"
		if value.OK {
			line = number(value.Value)
			if value.Engines > 1 {
				line += fmt.Sprintf(" over %d engines (min %s, max %s)", value.Engines, number(value.Min), number(value.Max))
			}
		}
		if value.Reused {
			line += ", its last value"
		}
		if value.Err != nil {
			line += fmt.Sprintf("  [%s: %v]", value.Err.Reason, value.Err.Err)
		}
		fmt.Fprintf(v.out, "  %-44s  %s\n", p.Name, line)
	}
	if reading.Known() {
		fmt.Fprintf(v.out, "  mean a target: %s  (%d with a value, %d without)\n", interval(reading), reading.Values, reading.NotReady+reading.Failed)
	} else {
		fmt.Fprintf(v.out, "  mean a target: unknown  (%v)\n", sweep.Errors[0])
	}
	if d != nil {
		for line := range strings.Lines(d.Explain()) {
			fmt.Fprint(v.out, "  ", line)
		}
	}
}

// readable is a reading as JSON can hold it: an upper end that nothing limits is left out.
func readable(r scaling.Reading) map[string]any {
	m := map[string]any{"values": r.Values, "notReady": r.NotReady, "failed": r.Failed, "reused": r.Reused}
	if r.Known() {
		m["lower"] = r.Lower
		if !math.IsInf(r.Upper, 1) {
			m["upper"] = r.Upper
		}
	}
	return m
}
