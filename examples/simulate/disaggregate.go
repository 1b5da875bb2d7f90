package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A split is the comparison of fleets in which some replicas prefill and others decode.
type split struct {
	runner   *runner
	scenario sim.Scenario
	least    [2]int32 // the smallest fleet that is never scaled and attains alpha; 0 for none
	lines    []*line
}

func (a *split) all() []*line {
	if a == nil {
		return nil
	}
	return a.lines
}

// runApart makes the runs.
func (r *runner) runApart(ctx context.Context, o *options) error {
	a := &split{runner: r, scenario: r.world.Scenario}
	a.scenario.Transfer = sim.Transfer{TokenBytes: o.tokenBytes(), Latency: o.kvLatency}
	bandwidth := o.gigabits * 1e9 / 8
	if math.IsInf(bandwidth, 1) {
		bandwidth = 0
	}
	a.scenario.Types = nil
	for _, role := range []sim.Role{sim.Prefill, sim.Decode} {
		t := r.world.Types[0]
		t.Name, t.Role, t.Bandwidth = role.String(), role, bandwidth
		a.scenario.Types = append(a.scenario.Types, t)
	}
	r.apart = a
	if err := a.search(ctx); err != nil {
		return err
	}
	policies, err := a.runner.runAll(ctx, a.policies(), 0, a.of)
	a.lines = append(a.lines, policies...)
	for _, l := range r.lines { // how many together, which the table has
		if s := r.summarize(l.results); l.sort == ofStatic && s.attains {
			together := *l
			together.name = "together, " + l.name
			a.lines = append(a.lines, &together)
			break
		}
	}
	r.apartFromOracle().summarizeAll(a.lines)
	slices.SortStableFunc(a.lines, r.order)
	return err
}

// of returns the scenario as a contender meets it.
func (a *split) of(c *contender, _ int) sim.Scenario {
	s := a.scenario
	s.Metrics = c.metrics
	s.Types = slices.Clone(s.Types)
	for i := range s.Types {
		s.Types[i].Initial = c.pools[i]
	}
	return s
}

// still returns a fleet that is never scaled.
func still(prefill, decode int32) contender {
	return contender{
		name: fmt.Sprintf("prefill %d, decode %d", prefill, decode), sort: ofStatic, note: "a fleet that is never scaled", pools: [2]int32{prefill, decode},
		controller: func(uint64) (scaling.Group, error) { return sim.Static(prefill, decode), nil },
	}
}

// search finds the smallest fleet that attains alpha: what each side needs with plenty on the other, and from there on up,
// all ways to share so many replicas out.
func (a *split) search(ctx context.Context) error {
	most := a.runner.world.bounds.Max
	attains := func(all ...contender) (*line, error) {
		lines, err := a.runner.runAll(ctx, all, 0, a.of)
		var best *line
		for _, l := range lines {
			if l.summary = a.runner.summarize(l.results); err == nil && l.summary.attains && (best == nil || a.runner.order(l, best) < 0) {
				best = l
			}
		}
		return best, err
	}
	if full, err := attains(still(most, most)); full == nil || err != nil {
		return err
	}
	enough := func(fleet contender) (bool, error) {
		l, err := attains(fleet)
		return l != nil, err
	}
	prefill, err := least(0, most, func(n int32) (bool, error) { return enough(still(n, most)) })
	if err != nil {
		return err
	}
	decode, err := least(0, most, func(n int32) (bool, error) { return enough(still(most, n)) })
	if err != nil {
		return err
	}
	for total := prefill + decode; total <= 2*most; total++ {
		var all []contender
		for p := max(prefill, total-most); p <= min(most, total-decode); p++ {
			all = append(all, still(p, total-p))
		}
		best, err := attains(all...)
		if err != nil {
			return err
		}
		if best != nil {
			a.least, a.lines = best.pools, []*line{best}
			return nil
		}
	}
	return nil
}

// policies returns those that scale the two apart. They begin with the fleet that was found, as far as the first minutes
// need it.
func (a *split) policies() []contender {
	r := a.runner
	bounds := scaling.Bounds{Min: 1, Max: r.world.bounds.Max}
	begin := a.least
	if begin == [2]int32{} {
		begin = [2]int32{bounds.Max, bounds.Max}
	}
	if r.noCapacity == "" {
		first, peak := r.first(), max(1, slices.Max(r.demand[0]))
		for i := range begin {
			begin[i] = bounds.Clamp(scaling.Ceil(float64(begin[i]) * float64(first) / float64(peak)))
		}
	}
	backlog := 1.5 * a.rate()
	tokens := proportional.Metric{Name: "tokens", Target: backlog, Measure: proportional.Total}
	observed := []sim.Metric{
		{Name: tokens.Name, Signal: sim.InFlightTokens},
		{Name: "kv", Signal: sim.KVCacheUsage, Type: sim.Decode.String(), Fill: 0.8},
		{Name: sim.MetricInFlight, Signal: sim.InFlight, Type: sim.Decode.String(), Fill: proportional.InFlightTarget},
	}
	pair := func(configs ...proportional.Config) func(uint64) (scaling.Group, error) {
		return func(uint64) (scaling.Group, error) {
			var policies []scaling.Policy
			for _, c := range configs {
				p, err := proportional.New(c)
				if err != nil {
					return nil, err
				}
				policies = append(policies, scaling.New(p))
			}
			return scaling.Each(policies...), nil
		}
	}
	guide := func(m proportional.Metric) proportional.Config {
		one := func(period time.Duration) scaling.RateLimit {
			return scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 1, Period: period}}}
		}
		c := proportional.HPA(bounds, m)
		c.RateLimits = scaling.RateLimits{Up: one(3 * time.Minute), Down: one(5 * time.Minute)}
		return c
	}
	return []contender{
		{
			name: "llm-d/token-aware", sort: ofReference, metrics: observed, pools: begin, note: "the ScaledObjects of llm-d's guide to token-aware autoscaling",
			controller: pair(guide(tokens), guide(proportional.Metric{Name: "kv", Target: 0.8})),
		},
		{
			name: "proportional/llm", sort: ofPolicy, metrics: observed, pools: begin, note: "one for each, on prompt tokens that wait and on requests in flight",
			controller: pair(proportional.LLM(bounds, tokens), proportional.LLM(bounds, proportional.Metric{Name: sim.MetricInFlight, Target: proportional.InFlightTarget})),
		},
	}
}

// rate returns the prompt tokens a second that llm-d's guide would measure: those of one chunk, by the second token, with
// nothing else to do.
func (a *split) rate() float64 {
	t := &a.scenario.Types[0]
	s, n := t.Server, float64(t.Server.TokenBudget)
	took := s.Base + n*(s.PrefillToken+s.KVToken) + s.Base + s.Sequence + n*s.KVToken + a.scenario.Transfer.Latency.Seconds()
	if t.Bandwidth > 0 {
		took += n * a.scenario.Transfer.TokenBytes / t.Bandwidth
	}
	return n / took
}

func apartHeadings() []string {
	return []string{"fleet", "attained %", "TTFT %", "TPOT %", "replica-h", "prefill h", "decode h", "TTFT p99", "transfer p99", "2nd token p50", "p99 s", "actions"}
}

// apartCells returns a line of the table. The second token is counted from the first one.
func (l *line) apartCells() []string {
	s := &l.summary
	apart := []string{"–", "–", seconds(s.p99), "–", "–", "–"}
	if len(l.results[0].Types) == 2 {
		time := func(of func(r *sim.Result) float64) string { return fmt.Sprintf("%.3f", over(l.results, of).Mean) }
		apart = []string{
			l.hoursOfType(0), l.hoursOfType(1), seconds(s.p99), time(func(r *sim.Result) float64 { return r.Transfer.P99 }),
			time(func(r *sim.Result) float64 { return r.SecondToken.P50 }), time(func(r *sim.Result) float64 { return r.SecondToken.P99 }),
		}
	}
	cells := []string{l.name, s.attainedText(), percent(s.ttft.Mean), percent(s.tpot.Mean), s.hours.text("%.2f", 1)}
	return append(append(cells, apart...), count(s.actions))
}

func (a *split) introduction(c *comparison) string {
	t := &a.scenario.Types[0]
	link := "links without a limit"
	if t.Bandwidth > 0 {
		link = fmt.Sprintf("links of %g Gbit/s", t.Bandwidth*8/1e9)
	}
	text := fmt.Sprintf("one replica writes the first token, and another one the others when the KV cache has come, %g bytes a token over %s. Servers, starts and traffic are the same, 1 to %d of each.",
		a.scenario.Transfer.TokenBytes, link, c.world.bounds.Max)
	if a.least != [2]int32{} {
		text += fmt.Sprintf(" The smallest fleet that attains %s %% without being scaled prefills with %d and decodes with %d.", goal(c.alpha), a.least[0], a.least[1])
	}
	return text + " Times of the second token are counted from the first."
}
