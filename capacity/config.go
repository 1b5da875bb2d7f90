package capacity

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// Names of the metrics that a Scaler reads. The first three are readings, means over the pods as in package scaling; the others
// are histograms, see scaling.Histogram.
const (
	Waiting    = "capacity/waiting"     // requests waiting for their first step
	Running    = "capacity/running"     // requests in a batch
	KVUse      = "capacity/kv_use"      // share of the KV cache in use
	PromptSize = "capacity/prompt_size" // tokens of the prompts of requests that finished
	AnswerSize = "capacity/answer_size" // tokens of their answers
	Prefilled  = "capacity/prefilled"   // prompt tokens of requests that got their first token; only sum and count are used
	TTFT       = "capacity/ttft"        // seconds to the first token
	TPOT       = "capacity/tpot"        // seconds per output token after it
)

// Metrics are the metrics of a simulated fleet that a Scaler reads.
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

// A Config is everything that a Scaler is told. Nothing in it needs tuning: it states the goal and describes the fleet.
type Config struct {
	Bounds scaling.Bounds `json:"bounds"`
	// SLO is what a request must meet, and Goal the share of requests that must meet it, for example 0.99.
	SLO  sim.SLO `json:"slo"`
	Goal float64 `json:"goal"`
	// Server is the step-time law of a replica. If all its times are wrong by the same factor, calibration finds that factor.
	Server sim.Server `json:"server"`
	// ColdStart is the assumed duration of a start until one has been observed.
	ColdStart time.Duration `json:"coldStart"`
	// Scrape and Control are the intervals between scrapes and between decisions.
	Scrape  time.Duration `json:"scrape"`
	Control time.Duration `json:"control"`
	Router  sim.Router    `json:"router"`
}

// For returns the configuration for a server and an SLO: a goal of 0.99, a cold start of five minutes until one has been
// observed, scrapes and decisions every 15 s, and a router that sends a request to the least loaded replica.
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

// Constants. surge and inTime were chosen on ten rows of the suite of which two are recorded (Azure, ServeGen's small model);
// results on recorded rows were known when some of the others were chosen, too.
const (
	rateSpan    = 60.0   // window of the arrival rate, in seconds
	surgeSpan   = 30.0   // shorter window, of which half is used too: it counts if its rate is higher by more than
	surge       = 1.0    // so many standard deviations
	lengthened  = 2.0    // the same of mean prompts, whose deviation is estimated low where few prompts are very long
	meanSpan    = 300.0  // window of the mean work, in seconds, of which the floor is made
	lengthSpan  = 120.0  // window of the mean lengths, in seconds, or twice the time that the SLO gives an answer,
	longSpan    = 900.0  // at most
	spread      = 0.3    // replicas for the noise of the work, times the square root of the replicas it needs
	mostRunning = 0.8    // share of the batch slots that may be used
	mostKV      = 0.85   // share of the KV caches that may be used
	inTime      = 0.95   // share of the SLO's time per token that requests in flight may take by the step-time law
	drain       = 15.0   // seconds within which waiting requests are served, or a quarter of what the SLO gives an answer
	history     = 3600.0 // seconds of the past that are replayed
	tuneEvery   = 300.0  // seconds between two tunings
	retry       = 60.0   // seconds to the next tuning after one that would scale down while requests missed the SLO
	memory      = 21_600 // time constant, in seconds, with which the results of earlier tunings decay
	unexplained = 0.15   // extra headroom per e-fold of misses above the allowed
	mostExcess  = 2.0    // e-folds of misses that count for it
	mostReplay  = 80_000 // requests in a replay, or as many as come in
	leads       = 6.0    // leads, if these are more,
	longest     = 4      // but at most so many times mostReplay
	mostSpent   = 40e6   // work of a search, in requests that are replayed, after which it tries no further choice: some 30 s
	mostLooks   = 12_000 // events of all simulations of a tuning, in units of 65,536: two minutes at most. One with more finds nothing
	smallest    = 6.0    // replicas in a replay, of a larger fleet,
	mostFleet   = 1000.0 // and at most, whatever a fleet claims to have
	within      = 0.85   // share of the allowed misses that a replay may have
	findable    = 0.85   // highest capacity that a replay may find, as a share of Fleet,
	lowest      = 0.5    // lowest one that is taken, also for misses that replays do not explain, but for
	proven      = 0.25   // one with which a replay of three leads or more meets the goal
	seen        = 0.9    // capacity for the mean work, as a share of Fleet, over 1 + start/3000 s: the rest is for what the past did not show;
	trusted     = 0.1    // both are so much more where the past is trusted in full: see trust
	step        = 1.06   // ratio of one capacity that is tried to the next
	mostUp      = 4      // steps that a tuning takes up
	strain      = 1.1    // a capacity must also hold for this many times the traffic of the past,
	strainLate  = 0.015  // with this share of misses
	careful     = 1.2    // margin before anything can be replayed
	ample       = 0.2    // replicas for what the past did not show, for each that the mean work fills
	large       = 9.0    // beyond so many: for fleets of at most these the other constants were chosen

	trustedAge    = 1800.0 // seconds of past that are needed for full trust
	trustedMisses = 0.5    // share of the allowed misses at which no trust is left
	trustedChange = 0.3    // change of the logarithm of mean lengths at which none is left,
	changeSpan    = 600.0  // in so many seconds
	trustedStart  = 600.0  // seconds of a start at which none is left
)

// A knob is what a tuning chooses beside the capacity: how long a need is held, the window of arrivals and lengths, whether a trend
// counts, and whether the headroom is a constant number of replicas.
type knob struct {
	hold, span   float64
	trend, level bool
}

const choices = 11

// knobs returns the choices, from bold to calm, for starts of so many seconds. No hold is shorter than a start: a replica is not
// removed before keeping it has cost as much as starting it again.
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
