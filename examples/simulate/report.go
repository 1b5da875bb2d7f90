package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/inferscale/inferscale/sim/oracle"
)

//go:embed report.html
var page string

// A noted thing has a name and words on it.
type noted struct{ Name, Note string }

// A row is a line of the report's table.
type row struct {
	Section   string // begins above it
	Yardstick bool
	Cells     []string
}

type paragraph struct {
	Text    string
	Warning bool
}

type fleet struct {
	noted

	Picture template.HTML
}

// content is what the page shows.
type content struct {
	Name, Heading        string
	Introduction         []paragraph
	Headings             []string
	Rows                 []row
	Legend               []string
	Trust                template.HTML
	Missed               template.HTML
	DayHeadings          []string
	Days                 [][]string
	Certainty            section
	Changes              *section
	FidelityIntroduction string
	Fidelity             [][]string
	Sections             []section
	Pareto, Load, TTFT   template.HTML
	Fleets               []fleet
	Reading              []string
	Policies, Parameters []noted
}

// html writes the report: one file that needs no network, no script and nothing beside it.
func (c *comparison) html(w io.Writer) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return err
	}
	d := content{
		Name: c.world.Name, Heading: "What scaling policies would have cost and served", Headings: headings(), Legend: c.legend(),
		Reading: c.reading(), Parameters: c.parameters(),
	}
	for _, text := range c.introduction() {
		d.Introduction = append(d.Introduction, paragraph{text, strings.HasPrefix(text, "Warning")})
	}
	for _, p := range []struct {
		to  *template.HTML
		pic *picture
	}{{&d.Pareto, c.paretoPicture()}, {&d.Load, c.loadPicture()}, {&d.TTFT, c.ttftPicture()}} {
		if *p.to, err = p.pic.inline(); err != nil {
			return err
		}
	}
	if days := c.world.days(); len(days) > 0 {
		if d.Missed, err = c.world.missedPicture(days).inline(); err != nil {
			return err
		}
		d.DayHeadings = dayHeadings()
		for i := range days {
			d.Days = append(d.Days, days[i].cells())
		}
	}
	if c.world.trust != nil {
		if d.Trust, err = c.world.trustPicture().inline(); err != nil {
			return err
		}
	}
	frame := c.frame()
	below := false
	for i, l := range c.lines {
		r := row{Yardstick: l.sort != ofPolicy, Cells: l.cells()}
		switch {
		case i == 0 && l.summary.attains:
			r.Section = fmt.Sprintf("attains %s %%, the cheapest first", goal(c.alpha))
		case !below && !l.summary.attains:
			r.Section = fmt.Sprintf("does not attain %s %%, the best first", goal(c.alpha))
			below = true
		}
		d.Rows = append(d.Rows, r)
		if l.note != "" && l.sort != ofStatic {
			d.Policies = append(d.Policies, noted{l.name, l.note})
		}
		picture, err := c.fleetPicture(frame, fmt.Sprintf("fleet%d", i), l).inline()
		if err != nil {
			return err
		}
		result := &l.results[0]
		d.Fleets = append(d.Fleets, fleet{
			noted{l.name, fmt.Sprintf("%s %%, %.2f replica-hours", percent(result.Attainment), result.ReplicaHours)}, picture,
		})
	}
	if d.Certainty = c.howSure(); c.changes != nil {
		d.Changes = c.changes.section(c.seeds)
	}
	c.believed(&d)
	d.Sections = c.sections()
	return t.Execute(w, d)
}

// believed fills in the check against published figures.
func (c *comparison) believed(d *content) {
	if len(c.fidelity) == 0 {
		return
	}
	d.FidelityIntroduction = fmt.Sprintf("llm-d publishes %.1f %% attainment at %.2f replicas on average for its control law in this scenario. "+
		"The simulator must be within %.0f points and %.0f %% of that, over %d seeds.",
		100*publishedAttainment, publishedReplicas, 100*withinAttainment, 100*withinReplicas, fidelitySeeds)
	for _, f := range c.fidelity {
		verdict := f.verdict()
		if f.Variant {
			verdict += ", for comparison"
		}
		d.Fidelity = append(d.Fidelity, []string{f.Server, f.Attained.text("%.1f", 100), f.Replicas.text("%.2f", 1), verdict})
	}
}

// reading says how to read the report.
func (c *comparison) reading() []string {
	w := c.world
	floor := meanOf(c.floor)
	reading := []string{
		fmt.Sprintf("Attained is the share of requests that had their first token within %s and each further one within %s on average. A request that did not finish missed.", inWords(w.SLO.TTFT), inWords(w.SLO.TPOT)),
		"Cost counts each replica from the request for it until it is gone: booting and draining replicas are paid for.",
		"Cost and service belong together. A policy that serves badly is cheap; its ratio to the oracle stands in parentheses and is not a score.",
	}
	if len(c.replays) > 0 {
		reading = append(reading, fmt.Sprintf("The replay oracle knows the traffic beforehand. Its schedule begins with %d replicas, as policies do; it is found by search and certified in the simulator, and feasible, not optimal. "+
			"The proven floor, below which nothing attains %s %%, is %.2f replica-hours, so the optimum of what begins like that is between the floor and %.2f. A fleet that is never scaled begins with all its replicas ready.",
			w.Types[0].Initial, goal(c.alpha), floor, meanOf(each(c.replays, func(r oracle.Replayed) float64 { return r.Result.ReplicaHours }))))
	}
	if c.noCapacity == "" {
		reading = append(reading,
			fmt.Sprintf("Demand is the work that arrives in a minute over what one replica alone can take, %.2f requests/s of the mean request. Several replicas together absorb bursts that one cannot, so a fleet below the demand may still attain the SLO.", c.capacity.PerSecond),
			"The zero-lag reactive sees that demand at once and has the same cold start as the others: a policy that does not predict can hardly be faster, but one that keeps more in reserve can serve better.",
		)
	}
	return append(reading,
		"Reversals are changes within 10 minutes of one in the other direction: each pays for a cold start that did not last.",
		"One trace is one trace. Before choosing, run your own traffic, several seeds, and the cold starts that you really have.",
	)
}

// parameters lists everything that the runs depend on.
func (c *comparison) parameters() []noted {
	w := c.world
	t := &w.Types[0]
	v := &t.Server
	all := []noted{
		{"traffic", w.title},
		{"source", cmp.Or(w.source, "–")},
		{"licence", cmp.Or(w.licence, "–")},
		{"citation", cmp.Or(w.citation, "–")},
		{"length, rate", fmt.Sprintf("%s, %g times the recorded rate", inWords(w.Workload.Duration()), w.rateScale)},
		{"server", fmt.Sprintf("%s: %g ms a step, %g us a prompt token, %g us a sequence, %g ns a token in the KV cache of %d; at most %d sequences and %d prompt tokens a step",
			v.Name, round3(1e3*v.Base), round3(1e6*v.PrefillToken), round3(1e6*v.Sequence), round3(1e9*v.KVToken), v.KVTokens, v.MaxSeqs, v.TokenBudget)},
		{"start of a replica", fmt.Sprintf("provision %s, load %s (medians), lognormal deviations %g and %g", inWords(t.Startup.Provision.Median), inWords(t.Startup.Load.Median), t.Startup.Provision.Sigma, t.Startup.Load.Sigma)},
		{"bounds", fmt.Sprintf("%d to %d replicas, beginning with %d", w.bounds.Min, w.bounds.Max, t.Initial)},
		{"SLO", fmt.Sprintf("TTFT %s, TPOT %s, alpha %g", inWords(w.SLO.TTFT), inWords(w.SLO.TPOT), c.alpha)},
		{"scrape", fmt.Sprintf("every %s, failing with probability %g, stale after %s", inWords(w.Scrape.Interval), w.Scrape.FailureRate, inWords(w.Scrape.Stale))},
		{"control", fmt.Sprintf("a decision every %s", inWords(w.Control.Interval))},
		{"router", w.Router.String()},
		{"seeds", fmt.Sprintf("1 to %d", c.seeds)},
	}
	if c.noCapacity == "" {
		all = append(all, noted{"capacity of a replica", fmt.Sprintf("%.3f requests/s at %g, by open-loop runs of one replica on %d seeds", c.capacity.PerSecond, c.alpha, capacitySeeds)})
	}
	if len(c.replays) > 0 {
		r := &c.replays[0]
		all = append(all, noted{"oracle, seed 1", fmt.Sprintf("slots of %s, safety %.2f, lead %s, %d runs, %d replicas trimmed", inWords(r.Step), r.Safety, inWords(r.Lead), r.Runs, r.Trimmed)})
	}
	return append(all, noted{"left out of the model", "LoRA, speculative decoding, network but for KV caches"})
}
