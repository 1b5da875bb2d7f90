package scaling_test

import (
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// must returns what was configured well.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// victims are groups of every algorithm and composition, by the bounds of their single target.
func victims() map[string]func(b scaling.Bounds) scaling.Group {
	slow := func(b scaling.Bounds) scaling.Policy {
		return scaling.New(must(realtime.New(realtime.Kaito(b, realtime.Metric{Name: saturation.DefaultQueue, High: 3, Low: 1}))))
	}
	load := func(c proportional.Config) scaling.Policy { return scaling.New(must(proportional.New(c))) }
	metric := proportional.Metric{Name: saturation.DefaultQueue, Target: 2}
	limits := scaling.RateLimits{Up: scaling.RateLimit{Limits: []scaling.Limit{{Replicas: 2, Period: time.Minute}}}, Down: scaling.RateLimit{Limits: []scaling.Limit{{Percent: 50, Period: 10 * time.Minute}}}}
	policies := map[string]func(b scaling.Bounds) scaling.Policy{
		"realtime": slow,
		"KPA":      func(b scaling.Bounds) scaling.Policy { return load(proportional.KPA(b, metric)) },
		"HPA":      func(b scaling.Bounds) scaling.Policy { return load(proportional.HPA(b, metric)) },
		"LLM":      func(b scaling.Bounds) scaling.Policy { return load(proportional.LLM(b, metric)) },
		"highest": func(b scaling.Bounds) scaling.Policy {
			return must(scaling.Highest(scaling.Member{Name: "a", Policy: slow(b)}, scaling.Member{Name: "b", Policy: load(proportional.LLM(b, metric))}))
		},
		"stabilized and limited": func(b scaling.Bounds) scaling.Policy {
			p := must(scaling.Stabilized(slow(b), scaling.Stabilization{Up: time.Minute, Down: 5 * time.Minute}))
			return must(scaling.Bounded(must(scaling.RateLimited(p, limits)), b))
		},
		"floor": func(b scaling.Bounds) scaling.Policy {
			c := cronscale.Config{Bounds: b, Policies: []cronscale.Policy{{Name: "work", Schedule: "0 8 * * *", TargetReplicas: b.Min}}}
			return must(scaling.Floor(slow(b), must(cronscale.New(c)), b))
		},
	}
	groups := map[string]func(b scaling.Bounds) scaling.Group{
		"hetero": func(b scaling.Bounds) scaling.Group {
			f := must(hetero.New(hetero.Config{Types: []hetero.Type{{Name: "a", Cost: 1, Min: b.Min, Max: b.Max}}, ExpansionRate: 2}))
			return must(hetero.NewGroup(slow(b), f, hetero.Options{}))
		},
		"saturation": func(b scaling.Bounds) scaling.Group {
			return must(saturation.NewGroup(saturation.GroupConfig{Config: saturation.Defaults(), Variants: []saturation.Variant{{Name: "a", Min: b.Min, Max: b.Max}}}))
		},
	}
	for name, build := range policies {
		groups[name] = func(b scaling.Bounds) scaling.Group { return scaling.GroupOf(build(b)) }
	}
	return groups
}

// view is what a group is shown of one target whose pods all say the same, in one of the ways in which values come.
func view(spec int32, kv, queue float64) scaling.GroupObservation {
	var pods []scaling.PodObservation
	for i := range max(0, min(spec, 9)) {
		pods = append(pods, scaling.PodObservation{Name: fmt.Sprint("p", i), Values: []float64{kv, queue}})
	}
	return scaling.GroupObservation{
		Targets:  []scaling.TargetObservation{{Name: "a", SpecReplicas: spec, ReadyReplicas: spec, Pods: pods}},
		Readings: []scaling.Reading{scaling.Exactly(saturation.DefaultKV, kv), scaling.Exactly(saturation.DefaultQueue, queue)},
	}
}

// hostileTimes are where a clock can go: far, back, to the zero time, to times that cannot be counted in milliseconds, and
// with a monotonic part, which the arithmetic of package time prefers.
func hostileTimes() []time.Time {
	return []time.Time{
		{},
		time.Unix(0, 0), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.Unix(1<<40, 999), time.Unix(-1<<40, 0),
		time.UnixMilli(math.MaxInt64), time.UnixMilli(math.MinInt64), time.Now(), time.Now().Round(0), start.AddDate(300, 0, 0), start,
	}
}

// TestNoClockAndNoStateHoldsForEver drives every algorithm with clocks that go anywhere, bounds that change and states in
// which numbers were replaced or that were cut short. What is not refused never panics, stays within its bounds and explains
// itself; and once the clock goes on as clocks do, it acts on a load that asks for it as a new one does.
func TestNoClockAndNoStateHoldsForEver(t *testing.T) {
	number := regexp.MustCompile(`-?[0-9][0-9.e+]*`)
	for name, build := range victims() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := scaling.Bounds{Min: rapid.Int32Range(1, 3).Draw(t, "min"), Max: rapid.Int32Range(6, 9).Draw(t, "max")}
				g, spec, now := build(b), int32(3), start
				step := func(kv, queue float64) scaling.Decision {
					obs := view(spec, kv, queue)
					got := g.Decide(now, obs)
					d := got.Targets[0]
					if err := scalingtest.Explained(&d); err != nil {
						require.NoError(t, err, d.Explain())
					}
					if d.Acts() {
						require.True(t, b.Contains(d.Replicas), d.Explain())
						g.Applied(now, []int32{spec}, []int32{d.Replicas})
						spec = d.Replicas
					}
					return d
				}
				for range rapid.IntRange(0, 12).Draw(t, "ticks") {
					now = rapid.OneOf(rapid.SampledFrom(append(hostileTimes(), now, now)),
						rapid.Map(rapid.IntRange(-40, 80), func(n int) time.Time { return now.Add(time.Duration(n) * 15 * time.Second) })).Draw(t, "now")
					if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
						data, err := g.MarshalJSON()
						require.NoError(t, err)
						b.Max = rapid.Int32Range(6, 9).Draw(t, "other max")
						g = build(b)
						if places := number.FindAllIndex(data, -1); rapid.Bool().Draw(t, "tampered") {
							at := rapid.SampledFrom(places).Draw(t, "number")
							to := rapid.SampledFrom([]string{"-9223372036854775808", "9223372036854775807", "9007199254740992", "-9007199254740992", "0", "-1", "1e300", "1768464000000", "99999999999999"}).Draw(t, "value")
							data = fmt.Appendf(nil, "%s%s%s", data[:at[0]], to, data[at[1]:])
						} else if rapid.IntRange(0, 4).Draw(t, "truncated") == 0 {
							data = data[:rapid.IntRange(0, len(data)-1).Draw(t, "length")]
						}
						if g.UnmarshalJSON(data) != nil {
							require.Equal(t, scaling.Unknown, step(0.5, 2).Verdict)
							g = build(b) // what a person does about it
						}
					}
					load := rapid.SampledFrom([][2]float64{{0.99, 50}, {0.5, 2}, {0, 0}}).Draw(t, "load")
					step(load[0], load[1])
				}
				// A clock as it should be, and a count that somebody has put within the bounds.
				now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
				spec = 4
				acted := false
				for range 2 * 3600 / 15 {
					now = now.Add(15 * time.Second)
					d := step(0.99, 50)
					acted = d.Acts() || acted
				}
				require.True(t, acted, "no scale-up in two hours: %s", g.Decide(now, view(4, 0.99, 50)).Targets[0].Explain())
				acted = false
				for range 3 * 3600 / 15 {
					now = now.Add(15 * time.Second)
					d := step(0, 0)
					acted = d.Acts() || acted
				}
				require.True(t, acted, "no scale-down in three hours")
			})
		})
	}
}

// TestAStampOfNoTimeIsRefused: a state with a time that no policy can have written is refused, by name of what is wrong.
// Taken as it is, the first of them was in a cooldown that never ended.
func TestAStampOfNoTimeIsRefused(t *testing.T) {
	p := scaling.New(must(realtime.New(realtime.Kaito(fleetBounds, realtime.Metric{Name: "queue", High: 3, Low: 1}))))
	for state, says := range map[string]string{
		`{"lastUp":-9223372036854775808,"streaks":[]}`:                                                        "-9223372036854775808: must be a time",
		`{"lastUp":9007199254740993,"streaks":[]}`:                                                            "must be a time",
		`{"seen":5,"streaks":[{"metric":"0000000000000001","side":1,"since":1,"last":9}]}`:                    "streaks[0].last: must be a time up to seen",
		`{"seen":5,"streaks":[{"metric":"0000000000000001","side":1,"since":-9223372036854775808,"last":3}]}`: "not a streak",
		`{"streaks":[{"metric":"0000000000000001","side":0,"since":1,"last":1}]}`:                             "up to seen",
	} {
		require.ErrorContains(t, p.UnmarshalJSON([]byte(`{"kind":"realtime","version":1,"state":`+state+`}`)), says)
	}
	limited := func() scaling.Policy { return must(scaling.RateLimited(drawn{}, scaling.RateLimits{})) }
	require.NoError(t, limited().UnmarshalJSON([]byte(`{"kind":"ratelimited","version":1,"state":{"base":{},"applied":[{"at":1,"delta":1},{"at":1,"delta":-1}]}}`)))
	for _, at := range []string{"9007199254740993", "-9223372036854775808", "0"} {
		err := limited().UnmarshalJSON([]byte(`{"kind":"ratelimited","version":1,"state":{"base":{},"applied":[{"at":1,"delta":1},{"at":` + at + `,"delta":1}]}}`))
		require.ErrorContains(t, err, "applied[1].at")
	}
	for in, want := range map[time.Time]int64{
		time.Unix(math.MaxInt64, 0): 1 << 53, time.Unix(math.MinInt64, 0): -1 << 53, {}: -62135596800000, start: start.UnixMilli(),
	} {
		require.Equal(t, want, scaling.StampOf(in).Milli)
	}
	require.Equal(t, int64(-1<<53), scaling.StampOf(time.Unix(math.MinInt64, 0)).Back(1<<54).Milli)
}
