package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// errNoAnswer is the failure of a watch in which no target ever gave a value.
var errNoAnswer = errors.New("no target ever answered with a value")

// watch scrapes real endpoints and prints what each said, the reading, and what would be decided.
func watch(ctx context.Context, o options, out, stderr io.Writer) error {
	pods, err := pods(o.targets)
	if err != nil {
		return &usageError{err}
	}
	what, err := watched(o, len(pods), stderr)
	if err != nil {
		return err
	}
	scraper, err := scrape.New(scrape.Config{
		Metrics: what.metrics, Interval: o.interval, Timeout: o.timeout, AllowLocal: true,
	})
	if err != nil {
		return &usageError{err}
	}
	defer scraper.Close()
	view := &view{out: out, json: o.json, shown: what.first()}
	answered := false
	next := time.NewTicker(o.interval)
	defer next.Stop()
	for {
		now := time.Now()
		sweep := scraper.Scrape(ctx, pods)
		if ctx.Err() == nil {
			ready := int32(0)
			for _, p := range sweep.Pods {
				if slices.ContainsFunc(p.Values, func(v scrape.PodValue) bool { return v.OK }) {
					ready++
				}
			}
			answered = answered || ready > 0
			obs := scaling.Observation{SpecReplicas: int32(len(pods)), ReadyReplicas: ready, Readings: sweep.Readings, Histograms: sweep.Histograms}
			var d *scaling.Decision
			if what.policy != nil {
				decided := what.policy.Decide(now, obs)
				d = &decided
			}
			for i, metric := range what.metrics[:len(sweep.Readings)] {
				view.watched(now, metric, i, sweep, d)
			}
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
		u, err := url.Parse(target)
		switch {
		case target == "":
			return nil, fmt.Errorf("-targets %q: an entry is empty", targets)
		case err != nil: // which repeats what may hold a password
			return nil, fmt.Errorf("-targets: entry %d: must be a URL, as http://host:port/metrics", len(pods)+1)
		case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil:
			return nil, fmt.Errorf("-targets: %q: must be a URL of http or https without a user, as http://host:port/metrics", u.Redacted())
		case seen[target]:
			return nil, fmt.Errorf("-targets: %s is there twice", target)
		}
		seen[target] = true
		pods = append(pods, scrape.Pod{Name: target, URL: target})
	}
	return pods, nil
}

// watched returns what the flags say: a document, or thresholds with Kaito's windows and cooldowns; no policy without
// either.
func watched(o options, targets int, stderr io.Writer) (*decider, error) {
	most := o.max
	if most == 0 {
		most = max(2*targets, o.min)
	}
	if o.min > math.MaxInt32 || most > math.MaxInt32 {
		return nil, &usageError{fmt.Errorf("-min %d, -max %d: must be at most %d", o.min, most, math.MaxInt32)}
	}
	bounds := scaling.Bounds{Min: int32(o.min), Max: int32(most)}
	if o.config != "" {
		return o.configured("", bounds, func() capacity.Tuner { return &capacity.Background{} }, stderr)
	}
	metric := scrape.Named(o.metric)
	metric.Fill = o.high
	d := &decider{metrics: []scrape.Metric{metric}}
	if o.high == 0 && o.low == 0 {
		return d, nil
	}
	config := realtime.Kaito(bounds, realtime.Metric{Name: o.metric, High: o.high, Low: o.low})
	config.Period = o.interval
	scaler, err := realtime.New(config)
	if err != nil {
		return nil, &usageError{err}
	}
	d.policy = scaling.New(scaler)
	return d, nil
}

// watched prints one metric of a sweep: a line a target, the reading, and with the last one the decision.
func (v *view) watched(now time.Time, metric scrape.Metric, i int, sweep scrape.Sweep, d *scaling.Decision) {
	reading := sweep.Readings[i]
	if i < len(sweep.Readings)-1 {
		d = nil
	}
	if v.json {
		targets := make([]map[string]any, 0, len(sweep.Pods))
		for _, p := range sweep.Pods {
			t := map[string]any{"target": p.Name}
			value := p.Values[i]
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
	out := cli.Plain(v.out)
	fmt.Fprintf(out, "%s  %s\n", now.Format(time.TimeOnly), metric.Name)
	for _, p := range sweep.Pods {
		value := p.Values[i]
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
		fmt.Fprintf(out, "  %-44s  %s\n", p.Name, line)
	}
	if reading.Known() {
		fmt.Fprintf(out, "  mean a target: %s  (%d with a value, %d without)\n", interval(reading), reading.Values, reading.NotReady+reading.Failed)
	} else {
		fmt.Fprintf(out, "  mean a target: unknown  (%v)\n", sweep.Errors[i])
	}
	if d != nil {
		for line := range strings.Lines(d.Explain()) {
			fmt.Fprint(out, "  ", line)
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
