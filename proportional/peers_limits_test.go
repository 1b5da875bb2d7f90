package proportional_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

func apa(t *testing.T) scaling.Policy {
	t.Helper()
	p, err := proportional.APA(scaling.Bounds{Min: 0, Max: 100}, "kv", 0.5)
	require.NoError(t, err)
	return p
}

func cache(value float64) scaling.Reading {
	return scaling.Reading{Metric: "kv", Lower: value, Upper: value, Values: 1}
}

// TestAPAHoldsAtItsLevel: and says so; one goes down only where that is asked for now.
func TestAPAHoldsAtItsLevel(t *testing.T) {
	d := apa(t).Decide(start, holding(10, cache(0.5)))
	require.Equal(t, "Hold at 10: AtLevel kv value=0.5 <= high=0.55, value=0.5 >= low=0.45", d.Reason())
	p := apa(t)
	d = p.Decide(start, holding(10, cache(0.1)))
	require.Equal(t, "Down 10 -> 5: BelowLevel kv value=0.1 < limit=0.45, target=0.5", d.Reason())
	d = p.Decide(start.Add(time.Second), holding(10, cache(0.9)))
	require.Equal(t, proportional.AtLevel, d.Code(), "five was asked for a second ago\n%s", d.Explain())
}

// TestAPAAveragesThoseThatAnswered: a reading counts the others with nothing.
func TestAPAAveragesThoseThatAnswered(t *testing.T) {
	r := scaling.FromPods("kv", []float64{0.8, 1}, scaling.Missing{NotReady: 1, Failed: 2}, 1)
	d := apa(t).Decide(start, holding(5, r))
	require.InDelta(t, 0.9, d.Steps()[0].Numbers[0], 1e-12, d.Explain())
}

// TestWindowsOfAPA: a value counts for 180 s, in slots of a second of which AIBrix keeps those of both ends, and what was asked for 300 s.
func TestWindowsOfAPA(t *testing.T) {
	for after, want := range map[time.Duration]float64{179 * time.Second: 0.3, 180 * time.Second: 0.3, 181 * time.Second: 0.5} {
		p := apa(t)
		p.Decide(start, holding(10, cache(0.1)))
		d := p.Decide(start.Add(after), holding(10, cache(0.5)))
		require.InDelta(t, want, d.Steps()[0].Numbers[0], 1e-12, d.Explain())
	}
	for after, want := range map[time.Duration]string{
		299_700 * time.Millisecond: "Down 10 -> 5: BelowLevel kv value=0.4 < limit=0.45, target=0.5; Lowest from=8 > asked=5",
		300 * time.Second:          "Down 10 -> 8: BelowLevel kv value=0.4 < limit=0.45, target=0.5",
	} {
		p := apa(t)
		p.Decide(start, holding(10, cache(0.1)))
		d := p.Decide(start.Add(after), holding(10, cache(0.4)))
		require.Equal(t, want, d.Reason())
	}
}

// TestAPAWithoutAReading: one reading of twice the target doubled the count at every decision, although no pod answered any more.
func TestAPAWithoutAReading(t *testing.T) {
	p, err := proportional.APA(scaling.Bounds{Min: 1, Max: 1000}, "kv", 0.5)
	require.NoError(t, err)
	replicas := p.Decide(start, holding(10, cache(1))).Replicas
	require.EqualValues(t, 20, replicas)
	for i := range 5 {
		d := p.Decide(start.Add(time.Duration(i+1)*10*time.Second), holding(replicas))
		require.Equal(t, scaling.Unknown, d.Verdict, d.Explain())
		require.Equal(t, replicas, d.Replicas)
	}
}

// TestAPARoundsAsTheOthers: 10 * 0.84/0.7 is 12.
func TestAPARoundsAsTheOthers(t *testing.T) {
	p, err := proportional.APA(anyCount, "kv", 0.7)
	require.NoError(t, err)
	require.EqualValues(t, 12, p.Decide(start, holding(10, cache(0.84))).Replicas)
}

// TestStatesOfPeersAreStored: a state that was stored is that of the next process, whose kind and version are the same.
func TestStatesOfPeersAreStored(t *testing.T) {
	data, err := apa(t).MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(data), `"kind":"apa","version":1`)
	data, err = sloAware(t).MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(data), `"kind":"llmd","version":1`)
}

// TestWhatPeersRefuse: targets that are no number above 0, and SLOs that are not.
func TestWhatPeersRefuse(t *testing.T) {
	for _, target := range []float64{0, -1, math.Inf(1), math.Inf(-1), math.NaN()} {
		_, err := proportional.APA(anyCount, "kv", target)
		require.ErrorContains(t, err, "target: ")
	}
	_, err := proportional.SLOAware(anyCount, 0, 0)
	require.EqualError(t, err, "ttft: 0s: must be above 0\ntpot: 0s: must be above 0")
	_, err = proportional.SLOAware(anyCount, 1, 1)
	require.NoError(t, err)
}

func sloAware(t *testing.T) scaling.Policy {
	t.Helper()
	p, err := proportional.SLOAware(anyCount, time.Second, time.Second)
	require.NoError(t, err)
	return p
}

func latencies(ttft, tpot float64) []scaling.Reading {
	return []scaling.Reading{scaling.Exactly(proportional.TTFTP90, ttft), scaling.Exactly(proportional.TPOTP90, tpot)}
}

// TestLawOfSLOAware has what the law asks for at once, before what a HorizontalPodAutoscaler does with it.
func TestLawOfSLOAware(t *testing.T) {
	for _, row := range []struct {
		spec, ready int32
		ttft, tpot  float64
		want        string
	}{
		{4, 4, 1, 0, "4 -> 8: Saturated signal=1 > high=0.55, credit=1"}, // 4 / 0.55
		{4, 4, 0, 1, "4 -> 8: Saturated signal=1 > high=0.55, credit=1"},
		{4, 4, 0.5, 1, "4 -> 8: Saturated signal=1 > high=0.55, credit=1"}, // the worse of the two
		{4, 4, 1, 0.5, "4 -> 8: Saturated signal=1 > high=0.55, credit=1"},
		{4, 4, 30, 0, "4 -> 15: Saturated signal=2 > high=0.55, credit=1"}, // 2 at the most
		{4, 2, 1, 0, "4 -> 4: Saturated signal=1 > high=0.55, credit=0.5"},
		{4, 1, 2, 0, "4 -> 4: Saturated signal=2 > high=0.55, credit=0.25"},
		{4, 0, 1, 0, "4 -> 8: Saturated signal=1 > high=0.55, credit=1"}, // none ready is no credit
		{4, 6, 1, 0, "4 -> 8: Saturated signal=1 > high=0.55, credit=1"},
		{4, 4, 0.55, 0, "4 -> 4: InBand signal=0.55 <= high=0.55, signal=0.55 >= low=0.4"},
		{4, 4, 0.4, 0, "4 -> 4: InBand signal=0.4 <= high=0.55, signal=0.4 >= low=0.4"},
		{5, 5, 0.2, 0, "5 -> 3: Spare signal=0.2 < low=0.4"},
		{5, 5, 0.39, 0, "5 -> 5: Spare signal=0.39 < low=0.4"},
		{5, 5, 0, 0, "5 -> 0: Spare signal=0 < low=0.4"},
	} {
		d := sloAware(t).Decide(start, scaling.Observation{
			SpecReplicas: row.spec, ReadyReplicas: row.ready, Readings: latencies(row.ttft, row.tpot),
		})
		s := d.Steps()[0]
		require.Equal(t, row.want, fmt.Sprintf("%d -> %d: %s %s", s.From, s.To, s.Code, s.Because()), "%+v", row)
	}
}

// TestSignalOfSLOAware: it is the mean of 45 s.
func TestSignalOfSLOAware(t *testing.T) {
	for after, want := range map[time.Duration]float64{44 * time.Second: 1, 45 * time.Second: 0.5} {
		p := sloAware(t)
		p.Decide(start, holding(4, latencies(1.5, 0)...))
		d := p.Decide(start.Add(after), holding(4, latencies(0.5, 0)...))
		require.InDelta(t, want, d.Steps()[0].Numbers[0], 1e-12, d.Explain())
	}
}

// TestPaceOfSLOAware: up by the lowest of 30 s and at most 100 % or 4 in a minute, down by the highest of 180 s and one in
// two minutes.
func TestPaceOfSLOAware(t *testing.T) {
	for _, row := range []struct {
		spec int32
		ttft float64
		want string
	}{
		{10, 2, "[30s 20] [1m30s 40] [2m30s 80] "},
		{2, 2, "[30s 6] [1m30s 12] [2m30s 24] "},
		{10, 0, "[3m0s 9] [5m0s 8] "},
	} {
		p, spec, got := sloAware(t), row.spec, ""
		for at := time.Duration(0); at <= 5*time.Minute && (row.ttft == 0 || at < 200*time.Second); at += time.Second {
			d := p.Decide(start.Add(at), holding(spec, latencies(row.ttft, 0)...))
			if d.Acts() {
				got += fmt.Sprint([]any{at, d.Replicas}, " ")
				p.Applied(start.Add(at), spec, d.Replicas)
				spec = d.Replicas
			}
		}
		require.Equal(t, row.want, got)
	}
}
