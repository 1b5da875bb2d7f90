package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// MaxDuration is the longest run: 90 days. Within it no sum of times overflows.
const MaxDuration = 90 * 24 * time.Hour

// A Scenario is everything about a run except the policy: the traffic, the replicas, and the conditions of the controller.
type Scenario struct {
	Name     string   `json:"name"`
	Workload Workload `json:"-"`
	// Types are the kinds of replicas: usually one, several for policies that choose among them.
	Types  []Type `json:"types"`
	Router Router `json:"router"`
	// BlockTokens turns prefix caching on if it is above 0. It is the number of tokens of one of a request's Blocks. Each
	// replica keeps blocks in the part of its KV cache that no sequence needs, and computes only the part of a prompt that
	// is not there.
	BlockTokens int32 `json:"blockTokens,omitempty"`
	// Gateway says what happens to requests while no replica is ready.
	Gateway Gateway `json:"gateway"`
	// Transfer says how KV caches get from prefill replicas to decode replicas, if types have roles.
	Transfer Transfer `json:"transfer,omitzero"`
	SLO      SLO      `json:"slo"`
	// Metrics are what the controller observes of the fleet, in this order.
	Metrics []Metric `json:"metrics"`
	Scrape  Scrape   `json:"scrape"`
	Control Control  `json:"control"`
	// Horizon is the time over which cost and the actions of the controller are counted: actions, reasons, starts and the
	// peak. 0 means the workload's duration. Requests count while they arrive, whatever the horizon. What is served after the horizon
	// costs nothing: where the SLO allows minutes to the first token, a policy can put off its work until then, so a horizon that
	// is longer than the workload by SLO.TTFT is fair.
	Horizon time.Duration `json:"horizon"`
	// Grace is the time that requests have to finish after the horizon or the workload's end, whichever is later. Requests
	// that are not done by then are unfinished and miss the SLO.
	Grace time.Duration `json:"grace"`
	// Start is the time at which the run begins, for policies that use the calendar.
	Start time.Time `json:"start"`
	// Demand is the number of replicas needed in each span of DemandStep, for charts and for over- and under-provision: see
	// package oracle. After the last span it is 0. It may be empty.
	Demand     []int32       `json:"-"`
	DemandStep time.Duration `json:"-"`
}

// A Type is a kind of replica.
type Type struct {
	Name   string `json:"name"`
	Server Server `json:"server"`
	// Role is the part of a request that its replicas process. Types with different roles have counts, starts and costs of
	// their own.
	Role Role `json:"role,omitzero"`
	// Bandwidth is that of a replica's link for KV caches, in bytes per second and direction, if there are roles. 0 is no limit.
	Bandwidth float64 `json:"bandwidth,omitempty"`
	Cost      float64 `json:"cost"` // of a replica-hour, in any unit; 0 means 1
	// Weight is the capability of a replica relative to others, by which the router shares out requests; 0 means 1.
	Weight  float64 `json:"weight"`
	Initial int32   `json:"initial"` // replicas that are ready when the run begins
	// Quota is the highest number of replicas; further ones wait until one is gone, and cost nothing. 0 is no limit.
	Quota   int32   `json:"quota"`
	Startup Startup `json:"startup"`
	// CrashesPerHour is how often a ready replica crashes and starts again from Loading. Its requests are sent to others,
	// and its counters start from zero.
	CrashesPerHour float64 `json:"crashesPerHour"`
}

// Startup says how a replica starts: a machine is provisioned, then the model is loaded.
type Startup struct {
	Provision Delay `json:"provision"`
	Load      Delay `json:"load"`
	// FailureRate is the probability that a provisioning fails at its end and is repeated.
	FailureRate float64 `json:"failureRate"`
}

// A Delay is a lognormal time: half of all are below Median, and Sigma is the standard deviation of its logarithm. With 0.3,
// one in twenty takes more than 1.6 times the median. It is cut at Max, if that is not 0.
type Delay struct {
	Median time.Duration `json:"median"`
	Sigma  float64       `json:"sigma"`
	Max    time.Duration `json:"max"`
}

// ColdStart returns a start that always takes t: provisioning takes no time, loading takes t.
func ColdStart(t time.Duration) Startup { return Startup{Load: Delay{Median: t}} }

// HeavyTail returns a start of which about half take less than median, one in twenty more than 1.7 times as long, and one in
// seventy more than twice as long. A third of it is for the machine.
func HeavyTail(median time.Duration) Startup {
	return Startup{
		Provision: Delay{Median: median / 3, Sigma: 0.5, Max: 10 * median},
		Load:      Delay{Median: median - median/3, Sigma: 0.35, Max: 10 * median},
	}
}

// SLO has the two bounds that a request must meet: time to first token, and time per output token after it.
type SLO struct {
	TTFT time.Duration `json:"ttft"`
	TPOT time.Duration `json:"tpot"`
}

// Scrape says how the controller gets metrics of its replicas.
type Scrape struct {
	Interval time.Duration `json:"interval"`
	// FailureRate is the probability that a ready replica does not answer.
	FailureRate float64 `json:"failureRate"`
	// BusyFailureRate is added to it for a replica in which requests wait.
	BusyFailureRate float64 `json:"busyFailureRate"`
	// Stale is the highest age at which a replica's last answer replaces a failed scrape.
	Stale time.Duration `json:"stale"`
}

// Control says how decisions are made and carried out.
type Control struct {
	Interval time.Duration `json:"interval"`
	// Delay is how long a write takes; the next decision is made after its end.
	Delay time.Duration `json:"delay"`
	// RejectRate is the probability that a write is refused.
	RejectRate float64 `json:"rejectRate"`
	// CrashRate is the probability, at each decision, that the controller crashes after it stored its state and before it
	// writes. It is back at the next tick.
	CrashRate float64 `json:"crashRate"`
	// Forgets makes a crashed controller start with a fresh state instead of the stored one.
	Forgets bool `json:"forgets"`
}

// Validate reports every wrong field at once, each as a scaling.FieldError. A nil Scenario is one.
func (s *Scenario) Validate() error {
	if s == nil {
		return &scaling.FieldError{Field: "scenario", Rule: "must be set"}
	}
	var e scaling.FieldErrors
	longest := MaxDuration - min(max(s.Grace, 0), MaxDuration) // without the grace
	e.Check(s.Workload != nil, "workload", s.Workload, "must be set")
	if s.Workload != nil {
		e.Add(s.Workload.Validate("workload"))
		e.Check(s.Workload.Duration() > 0, "workload.duration", s.Workload.Duration(), "must be above 0")
		e.Check(s.Workload.Duration() <= longest, "workload.duration", s.Workload.Duration(), "must be at most 90 days, with the grace")
	}
	e.Check(len(s.Types) > 0 && len(s.Types) <= math.MaxInt16, "types", len(s.Types), "must have at least one type")
	names := map[string]bool{}
	for i, t := range s.Types {
		field := fmt.Sprintf("types[%d]", i)
		e.Check(t.Name != "" || len(s.Types) == 1, field+".name", t.Name, "must be set where there are several types")
		e.Check(!names[t.Name], field+".name", t.Name, "must be used once")
		names[t.Name] = true
		e.Add(t.validate(field))
	}
	s.validateRoles(&e)
	e.Check(slices.Contains(routers(), s.Router), "router", int(s.Router), routerRule)
	e.Check(s.BlockTokens >= 0, "blockTokens", s.BlockTokens, "must not be negative")
	e.Check(s.BlockTokens > 0 || s.Router != PrefixCache, "blockTokens", s.BlockTokens, "must be above 0 with the router PrefixCache")
	e.Add(s.Gateway.Validate("gateway"))
	e.Check(s.SLO.TTFT > 0 && s.SLO.TTFT <= MaxDuration, "slo.ttft", s.SLO.TTFT, "must be above 0 and at most 90 days")
	e.Check(s.SLO.TPOT > 0 && s.SLO.TPOT <= 24*time.Hour, "slo.tpot", s.SLO.TPOT, "must be above 0 and at most 24h")
	for i, m := range s.Metrics {
		e.Add(m.validate(fmt.Sprintf("metrics[%d]", i)))
		e.Check(m.Type == "" || names[m.Type], fmt.Sprintf("metrics[%d].type", i), m.Type, "must be the name of a type")
		e.Check(m.Signal >= firstTallied || i == 0 || s.Metrics[i-1].Signal < firstTallied, fmt.Sprintf("metrics[%d].signal", i), m.Signal, "must come before the signals that are histograms")
	}
	interval := func(d time.Duration, field string) {
		e.Check(d >= time.Millisecond && d <= 24*time.Hour, field, d, "must be within 1ms and 24h")
	}
	interval(s.Scrape.Interval, "scrape.interval")
	interval(s.Control.Interval, "control.interval")
	for i := range s.Metrics {
		m := &s.Metrics[i]
		e.Check(s.Scrape.Interval <= 0 || m.window()/s.Scrape.Interval <= mostRounds, fmt.Sprintf("metrics[%d].window", i), m.window(), fmt.Sprintf("must be at most %d scrapes", mostRounds))
	}
	e.Check(s.Scrape.Stale >= 0 && s.Scrape.Stale <= MaxDuration, "scrape.stale", s.Scrape.Stale, "must be within 0 and 90 days")
	e.Check(s.Control.Delay >= 0 && s.Control.Delay <= 24*time.Hour, "control.delay", s.Control.Delay, "must be within 0 and 24h")
	for _, p := range []struct {
		field string
		value float64
	}{
		{"scrape.failureRate", s.Scrape.FailureRate},
		{"scrape.busyFailureRate", s.Scrape.BusyFailureRate},
		{"control.rejectRate", s.Control.RejectRate},
		{"control.crashRate", s.Control.CrashRate},
	} {
		e.Check(p.value >= 0 && p.value <= 1, p.field, p.value, "must be a probability, within 0 and 1")
	}
	e.Check(s.Horizon >= 0 && s.Horizon <= longest, "horizon", s.Horizon, "must be within 0 and 90 days, with the grace")
	e.Check(s.Grace >= 0 && s.Grace <= MaxDuration, "grace", s.Grace, "must be within 0 and 90 days")
	e.Check(len(s.Demand) == 0 || s.DemandStep > 0 && s.DemandStep <= MaxDuration, "demandStep", s.DemandStep, "must be above 0 and at most 90 days where there is a demand")
	return e.Err()
}

func (t *Type) validate(field string) error {
	var e scaling.FieldErrors
	number := func(x float64) bool { return x >= 0 && x <= 1e9 }
	e.Add(t.Server.Validate(field + ".server"))
	e.Check(t.Role >= Both && t.Role <= Decode, field+".role", int(t.Role), roleRule)
	e.Check(t.Bandwidth == 0 || t.Bandwidth >= 1e3 && t.Bandwidth <= 1e18, field+".bandwidth", t.Bandwidth, "must be 0, which is no limit, or within 1e3 and 1e18 bytes a second")
	e.Check(t.Bandwidth == 0 || t.Role != Both, field+".bandwidth", t.Bandwidth, "must be 0 without the role Prefill or Decode")
	e.Check(number(t.Cost), field+".cost", t.Cost, "must be a number that is not negative")
	e.Check(number(t.Weight), field+".weight", t.Weight, "must be a number that is not negative")
	e.Check(t.Initial >= 0 && t.Initial <= MaxReplicas, field+".initial", t.Initial, "must be within 0 and 100000")
	e.Check(t.Quota >= 0 && (t.Quota == 0 || t.Initial <= t.Quota), field+".quota", t.Quota, "must be 0, which is none, or not below initial")
	e.Check(t.Startup.FailureRate >= 0 && t.Startup.FailureRate <= 0.99, field+".startup.failureRate", t.Startup.FailureRate, "must be within 0 and 0.99")
	e.Check(t.CrashesPerHour >= 0 && t.CrashesPerHour <= 3600, field+".crashesPerHour", t.CrashesPerHour, "must be within 0 and 3600")
	delay := func(d Delay, name string) {
		e.Check(d.Median >= 0 && d.Median <= 24*time.Hour, name+".median", d.Median, "must be within 0 and 24h")
		e.Check(d.Sigma >= 0 && d.Sigma <= 5, name+".sigma", d.Sigma, "must be within 0 and 5")
		e.Check(d.Max == 0 || d.Max >= d.Median && d.Max <= MaxDuration, name+".max", d.Max, "must be 0, which is none, or not below median")
	}
	delay(t.Startup.Provision, field+".startup.provision")
	delay(t.Startup.Load, field+".startup.load")
	return e.Err()
}

// MaxReplicas is the highest count of a type. A policy that asks for more gets this count.
const MaxReplicas = 100_000

func (d Delay) draw(s *stream) int64 {
	t := float64(d.Median)
	if d.Sigma > 0 {
		t *= math.Exp(d.Sigma * s.normal())
	}
	return ticks(min(time.Duration(min(t, float64(MaxDuration))), cmp.Or(d.Max, MaxDuration)))
}
