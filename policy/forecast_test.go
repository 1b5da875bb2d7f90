package policy_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

const foreseen = "proportional: {metrics: [{source: {name: rate}, target: 10, measure: Total}], forecast: {timeZone: Europe/Berlin}}\n"

// morning is a load that is steep at eight in Berlin.
func morning(at time.Time, place *time.Location) float64 {
	h := at.In(place)
	x := float64(h.Hour()) + float64(h.Minute())/60
	return 15 + 80/(1+math.Exp(-12*(x-8)))
}

// TestForecast: the floor of a document is that of package forecast, in the place's time, and lifts before the third morning.
func TestForecast(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	p := one(t, foreseen)
	require.Equal(t, "proportional/llm", p.Name)
	got, err := p.Build(bounds())
	require.NoError(t, err)
	m := proportional.Metric{Name: "rate", Target: 10, Measure: proportional.Total}
	base, err := proportional.New(proportional.LLM(bounds(), m))
	require.NoError(t, err)
	c := forecast.For(bounds(), berlin)
	c.Demand = "rate Total"
	want := must(t)(forecast.New(scaling.New(base), m.Demand, c))

	now, replicas, lifted := time.Date(2026, 3, 26, 0, 0, 0, 0, berlin), int32(2), 0
	for range 3*24*60*4 + 9*60*4 { // over the night in which clocks are put forward
		now = now.Add(15 * time.Second)
		obs := scaling.Observation{SpecReplicas: replicas, ReadyReplicas: replicas, Readings: []scaling.Reading{scaling.Exactly("rate", morning(now, berlin))}}
		a, b := got.Decide(now, obs), want.Decide(now, obs)
		if a.Replicas != b.Replicas || a.Code() != b.Code() {
			require.Equal(t, b.Explain(), a.Explain())
		}
		if _, ok := a.Find(scaling.Lifted); ok && a.Acts() {
			require.GreaterOrEqual(t, now.Day(), 27)
			require.InDelta(t, 7.8, float64(now.In(berlin).Hour())+float64(now.In(berlin).Minute())/60, 0.5)
			lifted++
		}
		if a.Acts() {
			got.Applied(now, replicas, a.Replicas)
			want.Applied(now, replicas, b.Replicas)
			replicas = a.Replicas
		}
	}
	require.Positive(t, lifted)
	state, err := got.MarshalJSON()
	require.NoError(t, err)
	require.Less(t, len(state), 16<<10)

	p = one(t, foreseen)
	again, err := p.Build(bounds())
	require.NoError(t, err)
	require.NoError(t, again.UnmarshalJSON(state))
	kept, err := again.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, string(state), string(kept))
}

// TestRegressionALayoutHasTheForecastsOfMembers: a member of a highest whose floor is disabled cannot read the state that it stored with it.
// Under the same layout a model of variantautoscaler found that state, and held.
func TestRegressionALayoutHasTheForecastsOfMembers(t *testing.T) {
	const text = `capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}`
	planned := func(text string) policy.Plan {
		p := one(t, text)
		plan, err := p.Plan("", bounds())
		require.NoError(t, err)
		return plan
	}
	without := planned("highest: [{name: a, static: {replicas: 1}}, {name: b, " + text + ", forecast: {mode: Disabled}}}]")
	with := planned("highest: [{name: a, static: {replicas: 1}}, {name: b, " + text + "}}]")
	state, err := with.Policy.MarshalJSON()
	require.NoError(t, err)
	require.ErrorIs(t, without.Policy.UnmarshalJSON(state), scaling.ErrOtherState)
	require.Regexp(t, "^highest\\+[0-9a-f]{8}$", without.Layout)
	require.Regexp(t, "^highest\\+[0-9a-f]{8}$", with.Layout)
	within := planned("highest: [{name: a, static: {replicas: 1}}, {name: b, highest: [{name: c, " + text + "}}]}]")
	require.Len(t, map[string]bool{without.Layout: true, with.Layout: true, within.Layout: true}, 3)
}

// TestForecastOfCapacity is there unless it is disabled. It takes the scaler's cold start, and its work as the demand.
func TestForecastOfCapacity(t *testing.T) {
	const text = `capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, coldStartSeconds: 60`
	p := one(t, text+", forecast: {mode: Disabled}}")
	plan, err := p.Plan("", bounds())
	require.NoError(t, err)
	require.Equal(t, "capacity", plan.Layout)
	require.Contains(t, readsBack(t, p), "    forecast:\n      mode: Disabled\n      timeZone: Etc/UTC\n")
	p = one(t, text+"}")
	require.Contains(t, readsBack(t, p), "    forecast:\n      mode: Auto\n      timeZone: Etc/UTC\n")
	plan, err = p.Plan("", bounds())
	require.NoError(t, err)
	require.Equal(t, "capacity", plan.Kinds)
	require.Equal(t, "capacity+forecast", plan.Layout)
	require.Len(t, plan.Metrics, len(capacity.Metrics()))
	d := decide(t, p, bounds(), 3)
	require.Equal(t, capacity.NoSample, d.Code())
	plan.Policy.Applied(time.Unix(1e9, 0), 3, 4)
	state, err := plan.Policy.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(state), `"memory":{"demand":"capacity qwen3-32b-2xh100","zone":"UTC"`)
	require.Contains(t, string(state), `"rises":[{"at":1000000000,"count":4}]`)
}

// TestRegressionCapacityReadsItsStateOfBeforeTheFloor: alone, and in a highest.
func TestRegressionCapacityReadsItsStateOfBeforeTheFloor(t *testing.T) {
	const text = `capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}`
	for _, around := range []string{"%s", "highest: [{name: a, static: {replicas: 1}}, {name: b, %s}]"} {
		built := func(scaler string) scaling.Policy {
			p := one(t, fmt.Sprintf(around, scaler))
			built, err := p.Build(bounds())
			require.NoError(t, err)
			return built
		}
		before, after := built(text+", forecast: {mode: Disabled}}"), built(text+"}")
		before.Applied(time.Unix(1e9, 0), 3, 4)
		state, err := before.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, after.UnmarshalJSON(state))
		kept, err := after.MarshalJSON()
		require.NoError(t, err)
		require.Contains(t, string(kept), `"rises":[{"at":1000000000,"count":4}]`)
		require.Contains(t, string(kept), `"kind":"forecast"`)
	}
}

// TestForecastRefused has what is wrong with it, beside what else is wrong.
func TestForecastRefused(t *testing.T) {
	for text, want := range map[string]string{
		"proportional: {forecast: {timeZone: Mars/Base}}":               "p.yaml:1: proportional.forecast.timeZone: \"Mars/Base\": must be in the time zone database: unknown time zone Mars/Base",
		"proportional: {forecast: {timeZone: Local}}":                   "p.yaml:1: proportional.forecast.timeZone: \"Local\": must be the same on every machine",
		"proportional: {forecast: {zone: UTC}}":                         "p.yaml:1: proportional.forecast.zone: \"UTC\": is not a field here: is it timeZone? the fields are mode, timeZone",
		"proportional: {metrics: [{target: 1}], forecast: {mode: Off}}": "p.yaml:1: proportional.forecast.mode: \"Off\": must be Auto or Disabled",
		"proportional: {forecast: }":                                    "p.yaml:1: proportional.forecast: null: must be a mapping; {} is an empty one",
		"proportional: {metrics: [{source: {name: a}, target: 1}, {source: {name: b}, target: 1}], forecast: {timeZone: Local}}": "p.yaml:1: proportional.forecast: 2: must stand beside one metric: it is the load on it that is foreseen\n" +
			"p.yaml:1: proportional.forecast.timeZone: \"Local\": must be the same on every machine",
		"proportional: {metrics: [], forecast: {}}": "p.yaml:1: proportional.metrics: 0: must be at least one",
		`capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, coldStartSeconds: 0, forecast: {timeZone: Local}}`: "p.yaml:1: capacity.coldStartSeconds: 0: must be above 0 and at most 24h\n" +
			"p.yaml:1: capacity.forecast.timeZone: \"Local\": must be the same on every machine",
		"saturation: {forecast: {}}": "p.yaml:1: saturation.forecast: a mapping: is not a field here; the fields are profile, kvCacheThreshold, queueLengthThreshold, kvSpareTrigger, queueSpareTrigger, mode, transitionTimeoutSeconds, downStabilizationSeconds, step, kvCacheSource, queueSource",
	} {
		_, err := policy.Read([]byte(text), "p.yaml")
		require.EqualError(t, err, want, text)
	}
}
