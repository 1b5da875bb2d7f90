package sim

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
)

// restless is a policy that wanders: it asks for what the hash of its own steps and of what it sees says, and remembers
// how often it was asked and told.
type restless struct{ bounds scaling.Bounds }

type restlessState struct {
	Asked uint64 `json:"asked"`
	Told  uint64 `json:"told"`
}

func (restless) Kind() scaling.Kind { return scaling.Kind{Name: "restless", Version: 1} }

func (p restless) Decide(s restlessState, _ time.Time, obs scaling.Observation) (restlessState, scaling.Decision) {
	s.Asked++
	seen := uint64(obs.SpecReplicas)<<8 + uint64(obs.ReadyReplicas)
	for i := range obs.Readings {
		seen = splitmix.Mix(seen ^ math.Float64bits(obs.Readings[i].Lower))
	}
	span := uint64(p.bounds.Max-p.bounds.Min) + 1
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(p.bounds.Min+int32(splitmix.Mix(s.Asked+s.Told<<32+seen)%span), "Restless", "")
	return s, d
}

func (p restless) Applied(s restlessState, _ time.Time, _, _ int32) restlessState {
	s.Told++
	return s
}

// drawWorld draws a scenario in which everything goes wrong that can.
func drawWorld(t *rapid.T) Scenario {
	seconds := func(lo, hi int, label string) time.Duration {
		return time.Duration(rapid.IntRange(lo, hi).Draw(t, label)) * time.Second
	}
	probability := rapid.SampledFrom([]float64{0, 0, 0.05, 0.5, 1})
	s := plain(Trace{Requests: drawRequests(t, 60), Length: 5 * time.Minute}, drawServer(t), rapid.Int32Range(0, 3).Draw(t, "initial"))
	s.Router = rapid.SampledFrom([]Router{LeastLoaded, RoundRobin}).Draw(t, "router")
	s.Types[0].Quota = rapid.SampledFrom([]int32{0, 3, 5}).Draw(t, "quota")
	s.Types[0].Startup = Startup{
		Provision:   Delay{Median: seconds(0, 20, "provision"), Sigma: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "sigma")},
		Load:        Delay{Median: seconds(0, 20, "load")},
		FailureRate: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "provisioning failures"),
	}
	s.Types[0].CrashesPerHour = rapid.SampledFrom([]float64{0, 0, 60, 3600}).Draw(t, "crashes")
	s.Scrape = Scrape{
		Interval: seconds(1, 20, "scrape"), Stale: seconds(0, 60, "stale"),
		FailureRate: probability.Draw(t, "scrape failures"), BusyFailureRate: probability.Draw(t, "busy failures"),
	}
	s.Control = Control{
		Interval: seconds(1, 20, "control"), Delay: rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "delay"),
		RejectRate: probability.Draw(t, "rejects"), CrashRate: rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "controller crashes"),
		Forgets: rapid.Bool().Draw(t, "forgets"),
	}
	s.Metrics = []Metric{
		{Name: "waiting", Signal: Waiting},
		{Name: "running", Signal: Running, Fill: 5},
		{Name: "in flight", Signal: InFlight, Fill: 5},
		{Name: "kv", Signal: KVCacheUsage, Fill: 1},
		{Name: "ttft", Signal: TTFT},
		{Name: "tpot", Signal: TPOT, Quantile: 0.5},
		{Name: "queue", Signal: QueueTime},
		{Name: "router ttft", Signal: RouterTTFT, Window: 5 * time.Minute},
		{Name: "router tpot", Signal: RouterTPOT},
		{Name: "predicted", Signal: PredictedTTFT},
		{Name: "rate", Signal: RequestRate},
	}
	s.Horizon = seconds(1, 600, "horizon")
	s.Grace = seconds(0, 3600, "grace")
	s.Demand, s.DemandStep = []int32{1, 2, 0, 3}, seconds(1, 100, "demand step")
	if rapid.Bool().Draw(t, "two types") {
		other := s.Types[0]
		s.Types[0].Name, other.Name = "small", "large"
		other.Weight, other.Cost, other.Quota = 2, 3, 0
		s.Types = append(s.Types, other)
	}
	return s
}

// both drives every type by a policy of its own.
type both struct {
	Policies []scaling.Policy
	answers  []scaling.Decision
}

func newBoth(n int) *both {
	b := &both{}
	for range n {
		b.Policies = append(b.Policies, scaling.New(restless{bounds: scaling.Bounds{Min: 0, Max: 6}}))
	}
	return b
}

func (b *both) Decide(now time.Time, obs scaling.GroupObservation) scaling.GroupDecision {
	b.answers = b.answers[:0]
	for i, t := range obs.Targets {
		b.answers = append(b.answers, b.Policies[i].Decide(now, scaling.Observation{
			SpecReplicas: t.SpecReplicas, ReadyReplicas: t.ReadyReplicas, Readings: obs.Readings,
		}))
	}
	return scaling.GroupDecision{Targets: b.answers}
}

func (b *both) Applied(now time.Time, from, to []int32) {
	for i := range from {
		if from[i] != to[i] {
			b.Policies[i].Applied(now, from[i], to[i])
		}
	}
}

func (b *both) MarshalJSON() ([]byte, error) {
	var states []json.RawMessage
	for _, p := range b.Policies {
		data, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		states = append(states, data)
	}
	return json.Marshal(states)
}

func (b *both) UnmarshalJSON(data []byte) error {
	var states []json.RawMessage
	if err := json.Unmarshal(data, &states); err != nil {
		return err
	}
	for i := range states {
		if err := json.Unmarshal(states[i], b.Policies[i]); err != nil {
			return err
		}
	}
	return nil
}

// record is everything that a run says.
type record struct {
	Result    Result
	Decisions []string
	Outcomes  []Outcome
}

func observe(t require.TestingT, s *Scenario, seed uint64) record {
	var rec record
	begin := s.Begin()
	r, err := Run(context.Background(), s, func() (scaling.Group, error) { return newBoth(len(s.Types)), nil }, Options{
		Seed: seed, Timeline: 10 * time.Second,
		Request: func(o Outcome) { rec.Outcomes = append(rec.Outcomes, o) },
		Decision: func(now time.Time, v *scaling.GroupObservation, d *scaling.GroupDecision) {
			line := now.Sub(begin).String()
			for i := range d.Targets {
				line += " " + d.Targets[i].Reason()
			}
			for _, reading := range v.Readings {
				require.True(t, reading.Values == 0 || reading.Known(), "%+v", reading)
				require.True(t, reading.Lower <= reading.Upper)
				require.LessOrEqual(t, reading.Reused, reading.Values)
				reading.At = time.Time{}
				line += " " + encode(t, struct {
					M                                string
					L, U                             string
					Values, NotReady, Failed, Reused int32
				}{reading.Metric, text(reading.Lower), text(reading.Upper), reading.Values, reading.NotReady, reading.Failed, reading.Reused})
			}
			rec.Decisions = append(rec.Decisions, line)
		},
	})
	require.NoError(t, err) // with it: the books balance
	rec.Result = r
	return rec
}

func text(x float64) string { return string(appendFloat(x)) }

func appendFloat(x float64) []byte {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return []byte("none")
	}
	data, _ := json.Marshal(x)
	return data
}

func encode(t require.TestingT, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// TestWorlds runs whole worlds under a policy that wanders:
//
//   - the same seed gives the same bytes
//   - requests are conserved, Little's law holds, and KV tokens are conserved (checked in each run)
//   - another start of the calendar changes nothing else
func TestWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t)
		checkWorld(t, &s, rapid.Uint64Range(0, 100).Draw(t, "seed"))
	})
}

// checkWorld checks what TestWorlds says of one world.
func checkWorld(t *rapid.T, s *Scenario, seed uint64) {
	one := observe(t, s, seed)
	again := observe(t, s, seed)
	require.Equal(t, encode(t, one), encode(t, again), "the same seed")

	s.Start = time.Date(1999, 12, 31, 23, 59, 58, 123456789, time.UTC)
	require.Equal(t, encode(t, one), encode(t, observe(t, s, seed)), "another start")

	r := one.Result
	require.Equal(t, r.Requests, r.Finished+r.Unfinished+r.Refused, "requests are conserved")
	require.InDelta(t, r.Little.L, r.Little.LambdaW, 1e-9*(1+r.Little.L), "Little's law")
	require.Len(t, one.Outcomes, int(r.Finished))
	for _, o := range one.Outcomes {
		require.True(t, 0 <= o.TTFT && o.TTFT <= o.Total)
	}
	for _, m := range r.Timeline {
		require.True(t, 0 <= m.Ready && m.Ready <= m.Spec && m.KV <= 1, "%+v", m)
		if q := s.Types[0].Quota; q > 0 && len(s.Types) == 1 {
			require.LessOrEqual(t, m.Replicas, q)
		}
	}
}

// fixed is how many draws of fixed seeds say what a generator covers: a random run may miss what is rare.
const fixed = 40

// TestWorldsGoWrong: the worlds that TestWorlds draws from have everything in them that can go wrong.
func TestWorldsGoWrong(t *testing.T) {
	worlds := rapid.Custom(drawWorld)
	var sum Result
	for i := range fixed {
		s := worlds.Example(i)
		r := observe(t, &s, 1).Result
		sum.Preempted += r.Preempted
		sum.Retried += r.Retried
		sum.Refusals += r.Refusals
		sum.Crashes += r.Crashes
		sum.Unfinished += r.Unfinished
		sum.Reversals += r.Reversals
	}
	for name, n := range map[string]int64{
		"preemptions": sum.Preempted, "retries": sum.Retried, "refused writes": sum.Refusals, "crashes": sum.Crashes,
		"unfinished requests": sum.Unfinished, "reversals": sum.Reversals,
	} {
		require.Positive(t, n, "no world had %s", name)
	}
}

// holding never acts.
type holding struct{}

func (holding) Kind() scaling.Kind { return scaling.Kind{Name: "holding", Version: 1} }
func (holding) Decide(s struct{}, _ time.Time, obs scaling.Observation) (struct{}, scaling.Decision) {
	return s, scaling.HoldAt(obs.SpecReplicas)
}
func (holding) Applied(s struct{}, _ time.Time, _, _ int32) struct{} { return s }

// TestD6NeverActingIsTheStaticFleet: a policy that never acts, with every way in which a controller can fail, leaves the
// requests as they are in a fleet without a controller.
func TestD6NeverActingIsTheStaticFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t)
		s.Types = s.Types[:1]
		still := s
		still.Control = Control{Interval: time.Hour}
		still.Scrape = Scrape{Interval: time.Hour}
		still.Metrics = nil
		var one, other []Outcome
		a, err := Run(context.Background(), &s, func() (scaling.Group, error) { return scaling.GroupOf(scaling.New(holding{})), nil },
			Options{Seed: 5, Request: func(o Outcome) { one = append(one, o) }})
		require.NoError(t, err)
		b := runStatic(t, &still, Options{Seed: 5, Request: func(o Outcome) { other = append(other, o) }})
		require.Equal(t, other, one)
		require.Equal(t, b.Attainment, a.Attainment)
		require.Equal(t, b.Cost, a.Cost)
		require.Zero(t, a.Actions)
	})
}

// TestCommonRandomNumbers: the k-th start takes as long whatever else happens, and the requests are the same.
func TestCommonRandomNumbers(t *testing.T) {
	s := Ramp()
	s.Types[0].Startup = HeavyTail(100 * time.Second)
	boot := func(counts []int32) (spans []time.Duration) {
		began := map[int32]time.Duration{}
		ready := int32(3)
		r, err := Run(context.Background(), &s, func() (scaling.Group, error) { return Schedule(s.Begin(), 10*time.Minute, counts), nil },
			Options{Seed: 7, Timeline: time.Second})
		require.NoError(t, err)
		require.EqualValues(t, 12480, r.Requests)
		for _, m := range r.Timeline {
			for n := m.Spec; n > 3 && began[n] == 0; n-- {
				began[n] = m.At
			}
			for ; ready < m.Ready; ready++ {
				spans = append(spans, m.At-began[m.Ready])
			}
		}
		return spans
	}
	early, late := boot([]int32{4, 4, 4, 4}), boot([]int32{3, 3, 4, 4})
	require.Len(t, early, 1)
	require.Equal(t, early, late)
}
