package proportional_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// The rules of AIBrix' APA, one after the other.
func TestAPA(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 100}
	decide := func(t *testing.T, p scaling.Policy, at time.Duration, spec int32, value float64) int32 {
		t.Helper()
		now := time.Unix(1_700_000_000, 0).Add(at)
		d := p.Decide(now, scaling.Observation{SpecReplicas: spec, ReadyReplicas: spec, Readings: []scaling.Reading{
			{Metric: "kv", Lower: value, Upper: value, Values: spec, At: now},
		}})
		return d.Replicas
	}
	fresh := func(t *testing.T) scaling.Policy {
		t.Helper()
		p, err := proportional.APA(bounds, "kv", 0.5)
		require.NoError(t, err)
		return p
	}
	for _, c := range []struct {
		spec  int32
		value float64
		want  int32
	}{
		{4, 0.5, 4},   // at the target
		{4, 0.55, 4},  // within the tolerance
		{4, 0.45, 4},  // the same
		{4, 0.56, 5},  // ceil(4 * 1.12)
		{4, 5, 8},     // twice at the most
		{10, 0.44, 9}, // ceil(10 * 0.88)
		{10, 0.01, 5}, // half at the least
		{1, 0.01, 1},
	} {
		require.Equal(t, c.want, decide(t, fresh(t), 0, c.spec, c.value), "%d at %g", c.spec, c.value)
	}
	p := fresh(t)
	require.Equal(t, int32(5), decide(t, p, 0, 10, 0.1), "down at once")
	// The mean of 0.1 and 0.7 asks for 8, and the lowest of five minutes is 5.
	require.Equal(t, int32(5), decide(t, p, 15*time.Second, 10, 0.7))
	_, err := proportional.APA(scaling.Bounds{Min: 2, Max: 1}, "", -1)
	for _, field := range []string{"bounds", "metric", "target"} {
		require.ErrorContains(t, err, field)
	}
	unknown := fresh(t).Decide(time.Unix(0, 0), scaling.Observation{SpecReplicas: 3})
	require.Equal(t, scaling.Unknown, unknown.Verdict)
	require.Equal(t, int32(3), unknown.Replicas)
}

// The band of llm-d's law, and what is too early for its windows.
func TestSLOAware(t *testing.T) {
	p, err := proportional.SLOAware(scaling.Bounds{Min: 1, Max: 20}, 3*time.Second, 100*time.Millisecond)
	require.NoError(t, err)
	last := int32(0)
	for at := time.Duration(0); at <= time.Minute; at += 15 * time.Second {
		now := time.Unix(1_700_000_000, 0).Add(at)
		d := p.Decide(now, scaling.Observation{SpecReplicas: 4, ReadyReplicas: 4, Readings: []scaling.Reading{
			{Metric: proportional.TTFTP90, Lower: 3, Upper: 3, Values: 1, At: now},
			{Metric: proportional.TPOTP90, Lower: 0.05, Upper: 0.05, Values: 1, At: now},
		}})
		last = d.Replicas
		if at == 0 {
			require.Equal(t, int32(4), last, "stabilized upward")
		}
	}
	require.Equal(t, int32(8), last, "ceil(4 / 0.55)")
	_, err = proportional.SLOAware(scaling.Bounds{Min: 2, Max: 1}, 0, -time.Second)
	for _, field := range []string{"bounds", "ttft", "tpot"} {
		require.ErrorContains(t, err, field)
	}
}
