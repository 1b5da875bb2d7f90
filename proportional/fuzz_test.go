package proportional_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// FuzzDecide makes a configuration and a run of observations of arbitrary bytes. Whatever they are, deciding does not
// panic, answers a count within the bounds, explains it, and leaves a state that can be stored and restored.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte("\x01\x08 a stable window and a panic"), []byte("readings of all kinds, one after another, and again"))
	f.Add(make([]byte, 200), make([]byte, 400))
	f.Fuzz(func(t *testing.T, config, run []byte) {
		c := (&source{config}).config()
		s, err := proportional.New(c)
		if err != nil {
			return
		}
		var state proportional.State
		in := &source{run}
		now := start
		for range 12 {
			now = now.Add(time.Duration(in.int32()) * time.Millisecond)
			obs := scaling.Observation{SpecReplicas: in.int32(), ReadyReplicas: in.int32()}
			for range in.byte() % 4 {
				r := scaling.Reading{
					Metric: string('a' + rune(in.byte()%3)), Lower: in.float(), Upper: in.float(),
					Values: in.int32(), NotReady: in.int32(), Failed: in.int32(),
				}
				if in.byte()%4 == 0 {
					r.At = now.Add(-time.Duration(in.int32()) * time.Millisecond)
				}
				obs.Readings = append(obs.Readings, r)
			}
			var d scaling.Decision
			state, d = s.Decide(state, now, obs)
			require.NoError(t, scalingtest.Explained(&d), d.Explain())
			if d.Acts() {
				require.True(t, c.Bounds.Contains(d.Replicas), d.Explain())
				if in.byte()%2 == 0 {
					state = s.Applied(state, now, d.From, d.Replicas)
				}
			} else {
				require.Equal(t, obs.SpecReplicas, d.Replicas)
			}
			_, err := json.Marshal(d)
			require.NoError(t, err)
			state = copied(t, state)
		}
	})
}

// FuzzState restores arbitrary bytes: a state is refused, or can be decided on.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"seen":9000,"panic":8000,"peak":7,"loads":[{"metric":"a","measure":0,"since":1000,"last":2000,"window":{"samples":1,"buckets":[[1000,5,0],[2000,6,1]]}}]}`))
	f.Add([]byte(`{"recommendations":{"lows":{"newest":5,"samples":[[1,2]]},"highs":{"newest":5,"samples":[[1,2]]}},"changes":{"applied":[{"at":5000,"delta":-3}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := proportional.LLM(scaling.Bounds{Min: 1, Max: 50}, proportional.Metric{Name: "a", Target: 3})
		c.RateLimits = proportional.HPA(c.Bounds).RateLimits
		policy := scaling.New(build(t, c))
		envelope := append(append([]byte(`{"kind":"proportional","version":1,"state":`), data...), '}')
		if json.Unmarshal(envelope, policy) != nil {
			return
		}
		for i := range 5 {
			now := start.Add(time.Duration(i) * 15 * time.Second)
			d := policy.Decide(now, holding(10, scaling.Reading{Metric: "a", Lower: float64(i), Upper: float64(i), Values: 10}))
			require.NoError(t, scalingtest.Explained(&d), d.Explain())
			require.True(t, c.Bounds.Contains(d.Replicas))
			if d.Acts() {
				policy.Applied(now, 10, d.Replicas)
			}
			_, err := json.Marshal(policy)
			require.NoError(t, err)
		}
	})
}

// A source reads values off bytes; at the end it reads zeros.
type source struct{ data []byte }

func (s *source) take(n int) []byte {
	out := make([]byte, n)
	s.data = s.data[copy(out, s.data):]
	return out
}

func (s *source) byte() byte { return s.take(1)[0] }

// int32 reads a small number, or any.
func (s *source) int32() int32 {
	if s.byte()%4 != 0 {
		return int32(s.byte())
	}
	return int32(binary.LittleEndian.Uint32(s.take(4)))
}

// float reads a small number, an odd one, or any.
func (s *source) float() float64 {
	switch odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64, 5e-324, 1e290, 0}; s.byte() % 4 {
	case 0:
		return math.Float64frombits(binary.LittleEndian.Uint64(s.take(8)))
	case 1:
		return odd[s.byte()%8]
	default:
		return float64(s.byte()) / 4
	}
}

func (s *source) duration() time.Duration { return time.Duration(s.int32()) * time.Millisecond }

func (s *source) rule() proportional.Rule {
	return proportional.Rule{Tolerance: s.float(), MaxRate: s.float(), MaxStep: s.int32()}
}

func (s *source) limits() (l scaling.RateLimit) {
	for range s.byte() % 3 {
		limit := scaling.Limit{Period: time.Second + s.duration()}
		if s.byte()%2 == 0 {
			limit.Percent = s.int32()
		} else {
			limit.Replicas = s.int32()
		}
		l.Limits = append(l.Limits, limit)
	}
	l.Select = scaling.Select(s.byte() % 4)
	return l
}

func (s *source) config() proportional.Config {
	c := proportional.Config{
		Bounds: scaling.Bounds{Min: s.int32(), Max: s.int32()}, Up: s.rule(), Down: s.rule(),
		StableWindow: s.duration(), Resolution: s.duration(),
		Panic:         proportional.Panic{Window: s.duration(), Threshold: s.float()},
		Stabilization: scaling.Stabilization{Up: s.duration(), Down: s.duration()},
		RateLimits:    scaling.RateLimits{Up: s.limits(), Down: s.limits()},

		ActivationScale: s.int32(), StartupCredit: s.byte()%2 == 0,
	}
	bounds := scaling.Bounds{Min: int32(s.byte() % 5), Max: 5 + int32(s.byte())}
	switch s.byte() % 4 { // what is arbitrary is seldom valid
	case 1:
		c = proportional.KPA(bounds)
		c.ActivationScale = int32(s.byte())
	case 2:
		c = proportional.HPA(bounds)
		c.Up.MaxStep = int32(s.byte())
	case 3:
		c = proportional.LLM(bounds)
		c.Resolution = time.Duration(50+int(s.byte())) * time.Millisecond
		c.Stabilization.Up = time.Duration(s.byte()) * time.Second
	}
	for i := range 1 + s.byte()%3 {
		c.Metrics = append(c.Metrics, proportional.Metric{Name: string('a' + rune(i)), Target: s.float(), Measure: proportional.Measure(s.byte() % 4)})
	}
	return c
}
