package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

const (
	period = 15 * time.Second // between two decisions, in the time of the demonstration

	// One server does not answer for some time, early on, while the queue is long.
	hangFrom, hangUntil = 4 * time.Minute, 6 * time.Minute

	beginning = 10 * time.Minute // which begin with too few servers, of which nothing is known
)

// demo runs the trace through the simulated fleet and prints what is decided.
func demo(ctx context.Context, o options, out, stderr io.Writer) error {
	trace, err := readTrace()
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	what, err := o.configured(demoDocument, scaling.Bounds{Min: 1, Max: 8}, nil, stderr) // its time is not ours
	if err != nil {
		return err
	}
	control, err := loop.New(scaling.GroupOf(what.policy), loop.Config{Volatile: true})
	if err != nil {
		return err
	}
	now := time.Date(2026, 3, 9, 8, 45, 0, 0, time.UTC)
	begin := now
	scraper, err := scrape.New(scrape.Config{
		Metrics: what.metrics, Interval: period, AllowLocal: true,
		Timeout: 400 * time.Millisecond, Now: func() time.Time { return now },
	})
	if err != nil {
		return err
	}
	defer scraper.Close()
	f := &fleet{page: what.page()}
	defer f.close()
	if err := f.scale(now.Add(-coldStart), 2); err != nil { // two servers are up already
		return err
	}

	view := &view{out: out, json: o.json, shown: what.first()}
	half := len(trace) / 2
	view.begin(o.config, o.slow, begin.Add(time.Duration(half)*time.Second))
	sum := summary{metric: what.first()}
	started := time.Now()
	tick := time.NewTicker(max(o.pace, time.Nanosecond))
	defer tick.Stop()
	for second := 0; second+15 <= len(trace) && ctx.Err() == nil; second += 15 {
		requests := 0
		for _, a := range trace[second : second+15] {
			requests += a.requests
			now = now.Add(time.Second)
			f.step(now, a)
		}
		if second >= half {
			f.slow = o.slow
		}
		if now.Sub(begin) <= beginning {
			sum.Early, sum.EarlyInTime = f.served, f.inTime
		}
		f.servers[0].hang(now.Sub(begin) >= hangFrom && now.Sub(begin) < hangUntil)

		row, err := f.round(ctx, now, control, scraper)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		row.load = float64(requests) / 15
		view.row(row)
		sum.add(row)
		if o.pace > 0 {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
	sum.Served, sum.InTime = f.served, f.inTime
	view.summary(sum, now.Sub(begin), time.Since(started))
	return nil
}

// round scrapes, decides and scales.
func (f *fleet) round(ctx context.Context, now time.Time, control *loop.Loop, scraper *scrape.Scraper) (row, error) {
	sweep := scraper.Scrape(ctx, f.pods(now))
	if err := ctx.Err(); err != nil {
		return row{}, err
	}
	obs := scaling.Observation{SpecReplicas: int32(f.spec()), ReadyReplicas: int32(f.ready(now)), Readings: sweep.Readings, Histograms: sweep.Histograms}
	control.Read(now, loop.Target{Replicas: obs.SpecReplicas})
	step := control.Decide(now, scaling.GroupObservation{
		Targets: []scaling.TargetObservation{{ReadyReplicas: obs.ReadyReplicas}}, Readings: sweep.Readings, Histograms: sweep.Histograms,
	})
	for w := range control.Writes() {
		if err := f.scale(now, int(w.To)); err != nil {
			return row{}, err
		}
		control.Wrote(w, loop.Applied)
	}
	control.Advance(now)
	return row{now: now, obs: obs, decision: step.Targets[0], sweep: sweep}, nil
}

// pods lists the servers as a cluster would.
func (f *fleet) pods(now time.Time) []scrape.Pod {
	pods := make([]scrape.Pod, 0, len(f.servers))
	for _, s := range f.servers {
		p := scrape.Pod{Name: s.name, URL: "http://" + s.addr}
		switch {
		case s.draining:
			p.State = scrape.Terminating
		case !s.ready(now):
			p.State = scrape.NotReady
		}
		pods = append(pods, p)
	}
	return pods
}
