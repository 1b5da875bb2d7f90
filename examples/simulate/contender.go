package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A sort of contender says what a line of the table is.
type sort string

// The sorts.
const (
	ofPolicy    sort = "policy"
	ofReference sort = "reference" // a policy of another project
	ofStatic    sort = "static"
	ofReactive  sort = "zero-lag"
	ofOracle    sort = "oracle"
	ofIncumbent sort = "incumbent" // what a history had
)

// A contender is a line of the table: something that scales the fleet.
type contender struct {
	name    string
	unnamed bool // a policy of -config whose name is made of its algorithms
	sort    sort
	note    string // one line on what it is
	metrics []sim.Metric
	odd     []*scaling.FieldError // what is questionable about it
	// controller returns a controller with a fresh state. Only oracles look at the seed.
	controller func(seed uint64) (scaling.Group, error)
	// knob is, for the points of a sweep, what was turned and how far.
	family, knob string
	turned       float64
	// initial is what the fleet starts with, if it is not the world's, and pools what it does with prefill and decode apart.
	initial int32
	pools   [2]int32
}

// references returns the laws of other projects that are no profile of a document.
func (w *world) references() []contender {
	return []contender{
		w.llmd(),
		{
			name: aibrixName, sort: ofReference, note: "half of the KV cache in use per replica, by the rules of AIBrix' APA, as its sample has it",
			metrics:    []sim.Metric{{Name: "kv", Signal: sim.KVCacheUsage}},
			controller: drive(func() (scaling.Policy, error) { return proportional.APA(w.bounds, "kv", 0.5) }),
		},
	}
}

func (w *world) llmd() contender {
	return contender{
		name: llmdName, sort: ofReference, note: "the published control law of llm-d's SLO-aware autoscaling with KEDA",
		metrics:    []sim.Metric{{Name: proportional.TTFTP90, Signal: sim.PredictedTTFT}, {Name: proportional.TPOTP90, Signal: sim.RouterTPOT}},
		controller: drive(func() (scaling.Policy, error) { return proportional.SLOAware(w.bounds, w.SLO.TTFT, w.SLO.TPOT) }),
	}
}

// coldStart returns how long a replica takes to start, by the medians.
func (w *world) coldStart() time.Duration {
	s := &w.Types[0].Startup
	return s.Provision.Median + s.Load.Median
}

// toldStart returns what policies are told of that: it must be above 0 there.
func (w *world) toldStart() time.Duration { return max(w.coldStart(), 1) }

// capacity returns what the policy is told that learns the capacity of its replicas.
func (w *world) capacity() capacity.Config {
	c := capacity.For(w.bounds, w.SLO, w.Types[0].Server)
	c.ColdStart = w.toldStart()
	c.Scrape, c.Control = w.Scrape.Interval, w.Control.Interval
	if w.Router == sim.RoundRobin {
		c.Router = w.Router
	}
	return c
}

// learned returns the policy that learns the capacity of its replicas, with a floor by forecast as in a document that says nothing
// of one, and without. It replays its past every five minutes, which takes a second or so each time.
func (w *world) learned() (whole, plain contender) {
	c := w.capacity()
	build := func() (scaling.Policy, error) {
		s, err := capacity.New(c, nil)
		return scaling.New(s), err
	}
	plain = contender{
		name: reactiveLearnedName, sort: ofPolicy, note: "the same without what other days needed; only when it is named",
		metrics: capacity.Metrics(), controller: drive(build),
	}
	whole = w.foreseen(plain, build, capacity.Demand)
	whole.name, whole.note = learnedName, "what arrives in tokens over a capacity learned by replaying its own past, and never less than other days needed at this time"
	return whole, plain
}

// longForLearned is the longest traffic for which the policy that learns is simulated without being named.
const longForLearned = 6 * time.Hour

// Names of lines that are not policies of this module.
const (
	learnedName         = "capacity"
	reactiveLearnedName = "capacity/no-forecast"
	llmdName            = "llm-d/slo-aware"
	aibrixName          = "aibrix/apa"
	oracleName          = "replay oracle"
	reactiveName        = "zero-lag reactive"
	staticName          = "static" // and how many
)

// learns reports whether a policy learns the capacity of its replicas.
func learns(name string) bool { return name == learnedName || name == reactiveLearnedName }

func drive(build func() (scaling.Policy, error)) func(uint64) (scaling.Group, error) {
	return func(uint64) (scaling.Group, error) {
		p, err := build()
		if err != nil {
			return nil, err
		}
		return scaling.GroupOf(p), nil
	}
}

// static returns a fleet that is never scaled.
func static(n int32) contender {
	return contender{
		name: fmt.Sprintf("%s %d", staticName, n), sort: ofStatic, note: "a fleet that is never scaled",
		controller: func(uint64) (scaling.Group, error) { return sim.Static(n), nil },
		family:     "static fleets", knob: fmt.Sprint(n), turned: float64(n), initial: n,
	}
}

// contenders returns the policies that the flags ask for, those of -config last. What is odd about a document is printed.
func (o *options) contenders(w *world, stderr io.Writer) ([]contender, error) {
	all, err := w.policies()
	if err != nil {
		return nil, err
	}
	all = append(all, w.references()...)
	told := w.capacity()
	wrong := told.Validate()
	if o.policies == "" {
		learned, _ := w.learned()
		if wrong != nil {
			fmt.Fprintf(stderr, "simulate: %s, which is recommended, is left out: %v\n", learnedName, wrong)
		} else if o.suite || w.Workload.Duration() <= longForLearned {
			all = append(all, learned)
		} else {
			fmt.Fprintf(stderr, "simulate: %s, which is recommended, is left out: it replays its past every five minutes, here %d times; -policy names it\n",
				learnedName, w.Workload.Duration()/(5*time.Minute))
		}
	}
	if o.policies != "" {
		more, err := w.onlyNamed()
		if err != nil {
			return nil, err
		}
		if all, err = choose(append(all, more...), o.policies, stderr); err != nil {
			return nil, err
		}
		for _, c := range all {
			if learns(c.name) && wrong != nil {
				return nil, misuse("-policy %s: %w", c.name, wrong)
			}
		}
	}
	if o.config != "" {
		own, odd, err := w.configured(o.config)
		if err != nil {
			return nil, err
		}
		for _, warning := range odd {
			fmt.Fprintf(stderr, "simulate: warning: %v\n", warning)
		}
		for _, c := range own {
			taken := func() bool {
				return reserved(c.name) || slices.ContainsFunc(all, func(other contender) bool { return other.name == c.name })
			}
			if c.unnamed && taken() {
				c.name += " of -config"
			}
			if taken() {
				return nil, misuse("-config %s: the name %q is taken", o.config, c.name)
			}
			for _, warning := range c.odd {
				fmt.Fprintf(stderr, "simulate: warning: %s: policy %q: %v\n", o.config, c.name, warning)
			}
			all = append(all, c)
		}
	}
	if w.incumbent != nil {
		all = append(all, *w.incumbent)
	}
	return all, nil
}

// reserved reports whether a name is that of a line which is always there.
func reserved(name string) bool {
	return name == oracleName || name == reactiveName || name == incumbentName || name == recommended || strings.HasPrefix(name, staticName+" ")
}

// recommended is a name of the policy that is.
const recommended = "recommended"

// choose returns those of the names in a list, in its order. Names that policies had are taken too.
func choose(all []contender, list string, stderr io.Writer) ([]contender, error) {
	var chosen []contender
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == recommended {
			name = recommendedName
		}
		if p, err := policy.Named(name); err == nil && p.Name != name {
			fmt.Fprintf(stderr, "simulate: warning: -policy %s: is called %s now\n", name, p.Name)
			name = p.Name
		}
		is := func(c contender) bool { return c.name == name }
		i := slices.IndexFunc(all, is)
		if i < 0 {
			return nil, misuse("-policy %q: must be one of those that -list shows", name)
		}
		if slices.ContainsFunc(chosen, is) {
			return nil, misuse("-policy %q: is there twice", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
