package capacity

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// Names of the metrics that a Scaler looks at. The first three are readings, means over the pods as package scaling has
// them; the others are histograms, see scaling.Histogram.
const (
	Waiting    = "capacity/waiting"     // requests that wait for their first step
	Running    = "capacity/running"     // requests in a batch
	KVUse      = "capacity/kv_use"      // share of the KV cache in use
	PromptSize = "capacity/prompt_size" // tokens of the prompts of requests that finished
	AnswerSize = "capacity/answer_size" // tokens of their answers
	Prefilled  = "capacity/prefilled"   // tokens of the prompts that got their first token; buckets do not matter
	TTFT       = "capacity/ttft"        // seconds to the first token
	TPOT       = "capacity/tpot"        // seconds per output token after it
)

// Metrics are those of a simulated fleet that a Scaler looks at.
func Metrics() []sim.Metric {
	return []sim.Metric{
		{Name: Waiting, Signal: sim.Waiting},
		{Name: Running, Signal: sim.Running},
		{Name: KVUse, Signal: sim.KVCacheUsage},
		{Name: PromptSize, Signal: sim.PromptTokens},
		{Name: AnswerSize, Signal: sim.GenerationTokens},
		{Name: Prefilled, Signal: sim.Prefilled},
		{Name: TTFT, Signal: sim.TTFTs},
		{Name: TPOT, Signal: sim.TPOTs},
	}
}

// A Config is everything that a Scaler is told. None of it is to be tuned: it says what is wanted, and what runs.
type Config struct {
	Bounds scaling.Bounds `json:"bounds"`
	// SLO is what a request must meet, and Goal the share of requests that must, as 0.99.
	SLO  sim.SLO `json:"slo"`
	Goal float64 `json:"goal"`
	// Server is the step-time law of a replica. Where its times are all wrong by one factor, calibration finds it.
	Server sim.Server `json:"server"`
	// ColdStart is how long a start is taken to last until one has been seen.
	ColdStart time.Duration `json:"coldStart"`
	// Scrape and Control are the intervals at which pods are scraped and decisions made.
	Scrape  time.Duration `json:"scrape"`
	Control time.Duration `json:"control"`
	Router  sim.Router    `json:"router"`
}

// For returns the configuration for a server under an SLO: a goal of 0.99, a cold start of five minutes until one has been
// seen, scrapes and decisions every 15 s, and a router that gives a request to the least loaded replica.
func For(bounds scaling.Bounds, slo sim.SLO, server sim.Server) Config {
	return Config{
		Bounds: bounds, SLO: slo, Goal: 0.99, Server: server,
		ColdStart: 5 * time.Minute, Scrape: 15 * time.Second, Control: 15 * time.Second, Router: sim.LeastLoaded,
	}
}

// Validate reports every wrong field at once, each as a *scaling.FieldError.
func (c *Config) Validate() error {
	var e scaling.FieldErrors
	e.Add(c.Bounds.Validate("bounds"))
	e.Check(c.SLO.TTFT > 0 && c.SLO.TTFT <= time.Hour, "slo.ttft", c.SLO.TTFT, "must be above 0 and at most 1h")
	e.Check(c.SLO.TPOT > 0 && c.SLO.TPOT <= time.Hour, "slo.tpot", c.SLO.TPOT, "must be above 0 and at most 1h")
	e.Check(c.Goal >= 0.5 && c.Goal < 1, "goal", c.Goal, "must be at least 0.5 and below 1")
	e.Add(c.Server.Validate("server"))
	e.Check(c.ColdStart > 0 && c.ColdStart <= 24*time.Hour, "coldStart", c.ColdStart, "must be above 0 and at most 24h")
	interval := func(d time.Duration, field string) {
		e.Check(d >= time.Second && d <= 10*time.Minute, field, d, "must be within 1s and 10m")
	}
	interval(c.Scrape, "scrape")
	interval(c.Control, "control")
	e.Check(c.Router == sim.LeastLoaded || c.Router == sim.RoundRobin, "router", int(c.Router), "must be LeastLoaded or RoundRobin")
	return e.Err()
}

// What is fixed. surge and inTime were chosen on ten rows of the suite of which two are recorded (Azure, ServeGen's small
// model); recorded rows were in sight when others were chosen, too.
const (
	rateSpan    = 60.0   // seconds over which the rate of arrivals is taken
	surgeSpan   = 30.0   // and those over which, or half of which, more counts, less so much of what is chance,
	surge       = 1.0    // in deviations
	meanSpan    = 300.0  // seconds over which the mean work is taken, which has room for what was never seen
	lengthSpan  = 120.0  // seconds over which mean lengths are taken, or twice as long as the SLO gives an answer,
	longSpan    = 900.0  // at most
	spread      = 0.3    // replicas for the noise of the work, times its square root
	mostRunning = 0.8    // share of the batches' places that may be taken
	mostKV      = 0.85   // share of the KV caches that may be in use
	inTime      = 0.95   // share of the time per token that requests in flight may take by the step-time law
	drain       = 15.0   // seconds within which requests that wait are served, or a quarter of what the SLO gives an answer
	history     = 3600.0 // seconds of the past that are replayed
	tuneEvery   = 300.0  // seconds between two tunings
	retry       = 60.0   // and after one that would have asked for less while requests were late
	memory      = 21_600 // seconds within which what earlier tunings found is forgotten, but for 1/e
	mostReplay  = 80_000 // requests in a replay
	smallest    = 6.0    // replicas in a replay, of a larger fleet,
	mostFleet   = 1000.0 // and at most, whatever a fleet says that it has
	within      = 0.85   // share of what the goal allows to be late that may be late in a replay
	findable    = 0.85   // share of what the fleet takes that a replay may find at most
	seen        = 0.9    // share of what the fleet takes that the mean work may have, over 1 + start/3000 s: the rest is for what the past did not show
	step        = 1.06   // from one capacity that is tried to the next
	strain      = 1.1    // by how much more traffic the past must be survived, too
	strainLate  = 0.015  // the share that may be late then
	careful     = 1.2    // margin before anything can be replayed
)

// A knob is what is chosen beside the capacity: how long a need is held, over how long a time arrivals and lengths are
// taken, whether a trend counts, and whether the room is the same number of replicas whatever the work.
type knob struct {
	hold, span   float64
	trend, level bool
}

const choices = 11

// knobs returns what is tried, from bold to calm, where a start takes so many seconds: no replica is let go before
// keeping it has cost as much as starting it again.
func knobs(start float64) [choices]knob {
	a, b, c, d := max(60, start), max(300, 1.5*start), max(900, 2*start), max(1800, 3*start)
	return [choices]knob{
		{a, rateSpan, false, false},
		{b, rateSpan, false, false},
		{a, rateSpan, true, false},
		{b, rateSpan, true, false},
		{c, rateSpan, true, false},
		{d, rateSpan, true, false},
		{b, 5 * rateSpan, false, false},
		{c, 10 * rateSpan, false, false},
		{a, rateSpan, false, true},
		{b, rateSpan, false, true},
		{a, rateSpan, true, true},
	}
}
