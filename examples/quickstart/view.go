package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// A row is one decision and what it was made on.
type row struct {
	now      time.Time
	load     float64 // requests a second
	obs      scaling.Observation
	decision scaling.Decision
	sweep    scrape.Sweep
}

// missing says which pods gave no new value, and why: of several metrics that are missing for one reason once.
func (r *row) missing() []string {
	var all []string
	add := func(text string) {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	for _, p := range r.sweep.Pods {
		for _, v := range p.Values {
			switch {
			case p.State == scrape.NotReady || v.Err == nil:
			case v.Reused:
				add(fmt.Sprintf("%s: %s, its last value stands in", p.Name, v.Err.Reason))
			default:
				add(fmt.Sprintf("%s: %s", p.Name, v.Err.Reason))
			}
		}
	}
	return all
}

// A view prints decisions: as a table for people, or as one JSON object each.
type view struct {
	out   io.Writer
	json  bool
	shown string // the metric that the table shows
	last  string // what the last line said, to leave out what repeats it
	since int    // decisions since the last line
}

const layout = "%-8s  %6s  %-14s  %5s  %-12s  %s\n"

func (v *view) begin(config string, slow float64, at time.Time) {
	if v.json {
		return
	}
	rules, heading := "The recommended policy (docs/capacity.md): pods for the work that arrives. How much a pod can take is learned on the way.\n"+
		"The goal: of 99 % of the requests the first token within 2 s. From 09:00 to 09:20 at least 8 pods.", "READING/POD"
	if config != "" {
		rules = "The rules are those of " + config + "."
	}
	if slow > 1 {
		rules += fmt.Sprintf("\nAt %s the servers become slower by a factor of %v.", at.Format(time.TimeOnly), slow)
	}
	if v.shown == realtime.DefaultMetric || v.shown == capacity.Waiting {
		heading = "WAITING/POD"
	}
	fmt.Fprintf(v.out, `An hour of conversations (Azure, 2023) meets a fleet of simulated vLLM servers on 127.0.0.1.
%s
A line is a decision; decisions that repeat the one before are shown once in three minutes.

`, rules)
	fmt.Fprintf(v.out, layout, "TIME", "REQ/S", heading, "PODS", "VERDICT", "WHY")
}

// repeats is after how many equal decisions one is shown again.
const repeats = 12

func (v *view) row(r row) {
	if v.json {
		v.object(map[string]any{
			"time": r.now, "requestsPerSecond": r.load, "observation": r.obs, "decision": r.decision, "missing": r.missing(),
		})
		return
	}
	d := &r.decision
	why := reasons(d, v.shown)
	missing := r.missing()
	code := d.Code()
	switch code {
	case realtime.DownWindow:
		code = realtime.Between // a calm queue comes and goes
	case capacity.Held, capacity.Fresh:
		code = capacity.AtCapacity // as many as are wanted
	}
	gist := fmt.Sprint(d.Verdict, code, missing, r.obs.ReadyReplicas)
	if v.since++; gist == v.last && v.since < repeats && !d.Acts() {
		return
	}
	v.last, v.since = gist, 0
	if len(missing) > 0 {
		why += "  [" + strings.Join(missing, "; ") + "]"
	}
	verdict := d.Verdict.String()
	if d.Acts() {
		verdict = fmt.Sprintf("%s %d -> %d", d.Verdict, d.From, d.Replicas)
	}
	line := fmt.Sprintf(layout, r.now.Format(time.TimeOnly), fmt.Sprintf("%.1f", r.load),
		interval(r.obs.Reading(v.shown)), fmt.Sprintf("%d/%d", r.obs.ReadyReplicas, r.obs.SpecReplicas), verdict, why)
	paint(d.Verdict, len(missing) > 0).Fprint(v.out, line)
}

// paint chooses the colour of a line. On anything but a terminal, or with NO_COLOR set, nothing is coloured.
func paint(verdict scaling.Verdict, missing bool) *color.Color {
	switch {
	case verdict == scaling.Up:
		return color.New(color.FgGreen, color.Bold)
	case verdict == scaling.Down:
		return color.New(color.FgCyan, color.Bold)
	case verdict == scaling.Unknown || missing:
		return color.New(color.FgYellow)
	default:
		return color.New(color.Reset)
	}
}

// reasons is the deciding line in words: the rule with the last word, and before it what it overruled.
func reasons(d *scaling.Decision, metric string) string {
	var parts []string
	for _, s := range d.Steps() {
		if s.Branch == 0 {
			because := strings.TrimPrefix(s.Because(), metric) // in a table with one metric it is the same in every line
			parts = append(parts, strings.TrimSpace(s.Code.String()+" "+strings.TrimSpace(because)))
		}
	}
	return strings.Join(parts, "; ")
}

// interval prints a reading: a number if it is known exactly.
func interval(r scaling.Reading) string {
	switch {
	case !r.Known():
		return "unknown"
	case r.Lower == r.Upper:
		return number(r.Lower)
	default:
		return fmt.Sprintf("[%s, %s]", number(r.Lower), number(r.Upper))
	}
}

// number prints four significant digits.
func number(v float64) string {
	if math.IsInf(v, 1) {
		return "inf"
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

func (v *view) object(fields map[string]any) {
	data, err := json.Marshal(fields)
	if err != nil {
		data = fmt.Appendf(nil, "{\"error\":%q}", err)
	}
	fmt.Fprintf(v.out, "%s\n", data)
}

// A summary counts what happened.
type summary struct {
	metric string // that the table shows

	Decisions, Ups, Downs, Unknown   int
	CooldownHolds, Kept, FloorLifts  int
	Served, InTime                   int // requests with a first token, and those that got it within two seconds
	Early, EarlyInTime               int // the same of the first ten minutes
	PartialReadings, FailedScrapes   int
	ReplicaSeconds, Pages, PageBytes float64
	MostWaiting                      float64
}

func (s *summary) add(r row) {
	s.Decisions++
	switch r.decision.Verdict {
	case scaling.Up:
		s.Ups++
	case scaling.Down:
		s.Downs++
	case scaling.Unknown:
		s.Unknown++
	case scaling.Hold:
	}
	for _, step := range r.decision.Steps() {
		if step.Branch != 0 {
			continue
		}
		switch step.Code {
		case realtime.Cooldown:
			s.CooldownHolds++
		case capacity.Held, capacity.Fresh:
			s.Kept++
		case scaling.Lifted:
			s.FloorLifts++
		}
	}
	reading := r.obs.Reading(s.metric)
	if reading.NotReady+reading.Failed > 0 {
		s.PartialReadings++
	}
	s.MostWaiting = max(s.MostWaiting, reading.Lower)
	s.ReplicaSeconds += float64(r.obs.SpecReplicas) * period.Seconds()
	for _, p := range r.sweep.Pods {
		for _, f := range p.Fetches {
			if f.Err != nil {
				s.FailedScrapes++
				continue
			}
			s.Pages++
			s.PageBytes += float64(f.Bytes)
		}
	}
}

func (v *view) summary(s summary, simulated, took time.Duration) {
	if v.json {
		v.object(map[string]any{"summary": s})
		return
	}
	fmt.Fprintf(v.out, `
%d decisions in %s of traffic, run in %s:
  %.1f %% of %d requests had their first token within 2 s, %.1f %% after the first ten minutes, by %.2f pods on average
  %d scale-ups, %d scale-downs, %d holds in a cooldown, %d that kept what may be needed again, %d decisions lifted by the floor
  %d readings with pods missing, %d scrapes failed, %d decisions without any data
  %.0f pages scraped, %.1f MB; at most %s waiting requests a pod

Next: try it on a server of yours,
  go run ./examples/quickstart -targets http://HOST:PORT/metrics -metric vllm:num_requests_waiting -high 10 -low 2
`, s.Decisions, simulated.Round(time.Minute), took.Round(100*time.Millisecond),
		share(s.InTime, s.Served), s.Served, share(s.InTime-s.EarlyInTime, s.Served-s.Early), s.ReplicaSeconds/max(1, simulated.Seconds()),
		s.Ups, s.Downs, s.CooldownHolds, s.Kept, s.FloorLifts,
		s.PartialReadings, s.FailedScrapes, s.Unknown, s.Pages, s.PageBytes/1e6, number(s.MostWaiting))
}

// share is n of all, in percent.
func share(n, all int) float64 { return 100 * float64(n) / float64(max(1, all)) }
