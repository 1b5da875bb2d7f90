package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

//go:embed usage.txt
var usage string

// options is the command line.
type options struct {
	trace, scenario string
	rateScale       float64
	prefixCache     string
	gigabits        float64 // of a link for KV caches
	kvBytes         float64
	kvLatency       time.Duration
	from, to        time.Duration

	serverName     string
	document       *calibrate.Document // of the file of -server
	coldStart      time.Duration
	coldStartTail  bool
	min, max       int
	scrapeFailures float64

	ttft, tpot time.Duration
	alpha      float64

	policies string
	config   string
	kinds    bool

	seeds, parallel int

	report, json string
	explain      bool

	suite, quick, update   bool
	rows, scores, baseline string
	resume                 string

	writeServer, calibrate string
	roofline, card         string
	cards                  int
	kvTokens               int64

	lint                string
	scrapeInterval      time.Duration
	prometheus          remote
	span, until, router string
	maxMB               int
	dump, history       string
	manifest, scaled    string
	set                 map[string]bool // flags that were given

	list, sample             bool
	convert, columns, output string
}

const ramp = "ramp"

func parse(args []string, stdout, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	o.define(flags)
	err := cli.Parse(flags, args, stdout, io.Discard) // run says what is wrong
	if errors.Is(err, flag.ErrHelp) {
		return o, err
	}
	if err != nil {
		return o, &usageError{err}
	}
	o.set = map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		o.set[f.Name] = true
		if f.Value.String() == "" && f.Name != "report" && f.Name != "match" && err == nil { // the value of -match is not in the flag
			err = misuse("-%s \"\": must not be empty", f.Name)
		}
	})
	if flags.NArg() > 0 {
		return o, misuse("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		return o, err
	}
	if o.set["profile"] {
		if o.set["server"] {
			return o, misuse("-profile is -server by its old name: only one of them can be given")
		}
		delete(o.set, "profile")
		o.set["server"] = true
		fmt.Fprintf(stderr, "simulate: warning: -profile is called -server now\n")
	}
	if err := o.readServer(); err != nil {
		return o, err
	}
	if err := o.together(); err != nil {
		return o, err
	}
	if err := o.checkHistory(); err != nil {
		return o, err
	}
	o.fill()
	return o, o.check()
}

func (o *options) define(flags *flag.FlagSet) {
	flags.StringVar(&o.trace, "trace", traces.NameAzure2023Conversation, "")
	flags.StringVar(&o.scenario, "scenario", "", "")
	flags.Float64Var(&o.rateScale, "rate-scale", 1, "")
	flags.StringVar(&o.prefixCache, "prefix-cache", "", "")
	flags.DurationVar(&o.from, "from", 0, "")
	flags.DurationVar(&o.to, "to", 0, "")
	flags.StringVar(&o.serverName, "server", "qwen3-32b-2xh100", "")
	flags.StringVar(&o.serverName, "profile", "qwen3-32b-2xh100", "")
	flags.StringVar(&o.writeServer, "write-server", "", "")
	flags.StringVar(&o.calibrate, "calibrate", "", "")
	flags.StringVar(&o.roofline, "roofline", "", "")
	flags.StringVar(&o.card, "card", "h100", "")
	flags.IntVar(&o.cards, "cards", 1, "")
	flags.Int64Var(&o.kvTokens, "kv-tokens", 0, "")
	flags.DurationVar(&o.coldStart, "cold-start", 100*time.Second, "")
	flags.BoolVar(&o.coldStartTail, "cold-start-tail", false, "")
	flags.IntVar(&o.min, "min", 2, "")
	flags.IntVar(&o.max, "max", 16, "")
	flags.Float64Var(&o.scrapeFailures, "scrape-failures", 0, "")
	flags.DurationVar(&o.ttft, "slo-ttft", 3*time.Second, "")
	flags.DurationVar(&o.tpot, "slo-tpot", 100*time.Millisecond, "")
	flags.Float64Var(&o.alpha, "alpha", 0.99, "")
	flags.StringVar(&o.policies, "policy", "", "")
	flags.StringVar(&o.config, "config", "", "")
	flags.BoolVar(&o.kinds, "kinds", false, "")
	flags.Float64Var(&o.gigabits, "disaggregate", 0, "")
	flags.Float64Var(&o.kvBytes, "kv-bytes", 0, "")
	flags.DurationVar(&o.kvLatency, "kv-latency", 0, "")
	flags.IntVar(&o.seeds, "seeds", 5, "")
	flags.IntVar(&o.parallel, "parallel", runtime.GOMAXPROCS(0), "")
	flags.StringVar(&o.report, "report", "simulate-report.html", "")
	flags.StringVar(&o.json, "json", "", "")
	flags.BoolVar(&o.explain, "explain", false, "")
	flags.BoolVar(&o.suite, "suite", false, "")
	flags.BoolVar(&o.quick, "quick", false, "")
	flags.StringVar(&o.rows, "rows", "", "")
	flags.StringVar(&o.scores, "scores", "", "")
	flags.StringVar(&o.resume, "resume", "", "")
	flags.StringVar(&o.baseline, "baseline", "", "")
	flags.BoolVar(&o.update, "update", false, "")
	flags.StringVar(&o.lint, "lint", "", "")
	flags.DurationVar(&o.scrapeInterval, "scrape-interval", 15*time.Second, "")
	flags.BoolVar(&o.list, "list", false, "")
	flags.BoolVar(&o.sample, "sample", false, "")
	flags.StringVar(&o.convert, "convert", "", "")
	flags.StringVar(&o.columns, "columns", "", "")
	flags.StringVar(&o.output, "o", "", "")
	o.defineHistory(flags)
}

func (o *options) defineHistory(flags *flag.FlagSet) {
	r := &o.prometheus
	flags.StringVar(&r.url, "prometheus", "", "")
	flags.StringVar(&o.history, "history", "", "")
	flags.StringVar(&o.dump, "dump", "", "")
	flags.StringVar(&r.options.Model, "model", "", "")
	flags.StringVar(&o.span, "range", "7d", "")
	flags.StringVar(&o.until, "end", "", "")
	flags.DurationVar(&r.options.Step, "step", history.DefaultStep, "")
	flags.StringVar(&r.engine, "engine", "", "")
	flags.StringVar(&o.router, "router", "", "")
	flags.StringVar(&r.options.Namespace, "namespace", "", "")
	flags.StringVar(&r.options.Workload, "workload", "", "")
	flags.StringVar(&r.options.PodLabel, "pod-label", "", "")
	flags.Func("match", "", func(m string) error {
		r.options.Match = append(r.options.Match, m)
		return nil
	})
	flags.StringVar(&r.httpConfig, "http-config", "", "")
	flags.StringVar(&r.tokenFile, "bearer-token-file", "", "")
	flags.StringVar(&r.ca, "tls-ca", "", "")
	flags.StringVar(&r.cert, "tls-cert", "", "")
	flags.StringVar(&r.key, "tls-key", "", "")
	flags.StringVar(&r.tenant, "tenant", "", "")
	flags.StringVar(&o.manifest, "manifest", "", "")
	flags.StringVar(&o.scaled, "scaledobject", "", "")
	flags.IntVar(&r.maxSeries, "max-series", 50_000, "")
	flags.IntVar(&o.maxMB, "max-mb", 4096, "")
}

// together refuses flags that do not go with each other, and would be ignored silently.
func (o *options) together() error {
	alone := func(name string, with ...string) error {
		for _, other := range slices.Sorted(maps.Keys(o.set)) {
			if other != name && !slices.Contains(with, other) {
				return misuse("-%s does not go with -%s", other, name)
			}
		}
		return nil
	}
	for _, name := range []string{"quick", "rows", "scores", "baseline", "update", "resume"} {
		if o.set[name] && !o.suite {
			return misuse("-%s goes with -suite", name)
		}
	}
	switch {
	case o.suite && o.update && !o.set["baseline"]:
		return misuse("-update goes with -baseline")
	case o.suite && o.quick && o.set["rows"]:
		return misuse("-rows does not go with -quick")
	case o.suite:
		return alone("suite", "quick", "rows", "scores", "baseline", "update", "resume", "seeds", "parallel", "policy", "json")
	case o.calibrate != "":
		return alone("calibrate", "kv-tokens", "o")
	case o.roofline != "":
		return alone("roofline", "card", "cards", "o")
	case o.set["card"] || o.set["cards"]:
		return misuse("-card and -cards go with -roofline")
	case (o.set["kv-bytes"] || o.set["kv-latency"]) && !o.set["disaggregate"]:
		return misuse("-kv-bytes and -kv-latency go with -disaggregate")
	case o.set["kv-tokens"] && (!o.fromHistory() || o.set["server"]):
		return misuse("-kv-tokens goes with -calibrate, and without -server with -prometheus and -history")
	case o.set["write-server"] && (!o.fromHistory() || o.set["server"]):
		return misuse("-write-server goes with -prometheus and -history, and without -server")
	case o.lint != "":
		return alone("lint", "cold-start", "scrape-interval")
	case o.set["scrape-interval"]:
		return misuse("-scrape-interval goes with -lint")
	case o.list:
		return alone("list")
	case o.sample:
		return alone("sample")
	case o.set["convert"] && isDocument(o.convert) && !o.set["columns"]:
		return alone("convert", "o")
	case o.set["convert"]:
		if !o.set["columns"] || !o.set["o"] {
			return misuse("-convert needs -columns and -o")
		}
		return alone("convert", "columns", "o")
	case o.set["columns"] || o.set["o"]:
		return misuse("-columns and -o go with -convert")
	case o.set["scenario"] && o.scenario != ramp:
		return misuse("-scenario %q: must be ramp", o.scenario)
	case o.set["scenario"]:
		for _, name := range []string{"trace", "rate-scale", "from", "to", "prefix-cache"} {
			if o.set[name] {
				return misuse("-%s does not go with -scenario", name)
			}
		}
	}
	return nil
}

// fill gives flags that were not set the values that suit the traffic.
func (o *options) fill() {
	if o.suite {
		o.report = ""
		seeds := 1
		if o.quick {
			seeds = 2
		}
		fill(o.set, "seeds", &o.seeds, seeds)
		return
	}
	if o.fromHistory() {
		fill(o.set, "seeds", &o.seeds, 2)
		return
	}
	if o.scenario == ramp {
		bounds := sim.RampBounds()
		fill(o.set, "min", &o.min, int(bounds.Min))
		fill(o.set, "max", &o.max, int(bounds.Max))
		fill(o.set, "seeds", &o.seeds, 10)
		return
	}
	switch o.trace {
	case traces.NameAzure2023Conversation:
		fill(o.set, "rate-scale", &o.rateScale, 6)
	case traces.NameServeGenLarge:
		fill(o.set, "rate-scale", &o.rateScale, 0.15)
		o.morning()
	case traces.NameServeGenSmall:
		fill(o.set, "rate-scale", &o.rateScale, 0.0375)
		o.morning()
	}
}

// morning takes the hours from 8 to 10 of a long series, and few seeds: enough for a minute's work.
func (o *options) morning() {
	if !o.set["from"] && !o.set["to"] {
		o.from, o.to = 8*time.Hour, 10*time.Hour
	}
	fill(o.set, "seeds", &o.seeds, 2)
}

func fill[T any](set map[string]bool, name string, value *T, to T) {
	if !set[name] {
		*value = to
	}
}

func (o *options) check() error {
	probability := func(p float64) bool { return p >= 0 && p <= 1 }
	_, err := o.server()
	switch {
	case !(o.rateScale > 0 && o.rateScale <= 1e6):
		return misuse("-rate-scale %g: must be a number above 0 and at most 1000000", o.rateScale)
	case o.from < 0:
		return misuse("-from %s: must not be negative", o.from)
	case o.to != 0 && o.to <= o.from:
		return misuse("-to %s: must be after -from, %s", o.to, o.from)
	case err != nil:
		return err
	case o.set["disaggregate"] && !(o.gigabits > 0):
		return misuse("-disaggregate %g: must be Gbit/s above 0; Inf is no limit", o.gigabits)
	case o.set["kv-bytes"] && !(o.kvBytes > 0 && o.kvBytes <= 1e9):
		return misuse("-kv-bytes %g: must be bytes of a token, above 0 and at most 1e9", o.kvBytes)
	case o.set["disaggregate"] && o.tokenBytes() == 0:
		return misuse("-disaggregate needs -kv-bytes, the KV cache of a token, which is known only of a -server with a name")
	case o.kvLatency < 0 || o.kvLatency > time.Hour:
		return misuse("-kv-latency %s: must be within 0 and 1h", o.kvLatency)
	case o.kvTokens < 0 || o.kvTokens > 1e9:
		return misuse("-kv-tokens %d: must be within 0 and 1000000000", o.kvTokens)
	case o.scrapeInterval < time.Millisecond || o.scrapeInterval > 24*time.Hour:
		return misuse("-scrape-interval %s: must be within 1ms and 24h", o.scrapeInterval)
	case o.coldStart < 0 || o.coldStart > 24*time.Hour:
		return misuse("-cold-start %s: must be within 0 and 24h", o.coldStart)
	case o.min < 1:
		return misuse("-min %d: must be at least 1", o.min)
	case o.max < 1:
		return misuse("-max %d: must be at least 1", o.max)
	case o.max < o.min && (!o.fromHistory() || o.set["min"] && o.set["max"]): // a history says what is not given
		return misuse("-max %d: must not be below -min, %d", o.max, o.min)
	case o.max > 1000:
		return misuse("-max %d: must be at most 1000", o.max)
	case !probability(o.scrapeFailures):
		return misuse("-scrape-failures %g: must be a probability, within 0 and 1", o.scrapeFailures)
	case o.ttft <= 0 || o.ttft > sim.MaxDuration:
		return misuse("-slo-ttft %s: must be above 0 and at most 90 days", o.ttft)
	case o.tpot <= 0 || o.tpot > 24*time.Hour:
		return misuse("-slo-tpot %s: must be above 0 and at most 24h", o.tpot)
	case !(o.alpha > 0 && o.alpha < 1):
		return misuse("-alpha %g: must be above 0 and below 1", o.alpha)
	case o.seeds < 1 || o.seeds > 1000:
		return misuse("-seeds %d: must be within 1 and 1000", o.seeds)
	case o.parallel < 1 || o.parallel > 1024:
		return misuse("-parallel %d: must be within 1 and 1024", o.parallel)
	}
	return o.distinct()
}
