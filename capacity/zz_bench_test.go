package capacity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/scaling"
)

type tired struct{}

func (tired) Tune(_ *Config, past func() Past) (Tuning, bool) {
	p := past()
	t := p.Last
	t.trial = someTrial()
	t.Requests = 100
	t.At = p.Samples[len(p.Samples)-1].At
	return t, true
}

func BenchmarkRound(b *testing.B) {
	s, err := New(config(), tired{})
	require.NoError(b, err)
	l, err := loop.New(scaling.GroupOf(scaling.New(s)), loop.Config{Period: 15 * time.Second, Conflicts: 3})
	require.NoError(b, err)
	require.NoError(b, l.Restore(nil))
	i, stores, bytes := 0, 0, 0
	served, n, last := 0.0, int32(4), ""
	round := func() {
		i++
		now := start().Add(time.Duration(i) * 15 * time.Second)
		served += 400
		l.Read(now, loop.Target{Name: "x", ID: "1", Version: "1", Replicas: n})
		obs := observation(n, 0, 20, served, 1500, 200)
		step := l.Decide(now, scaling.GroupObservation{Targets: []scaling.TargetObservation{{ReadyReplicas: n}}, Readings: obs.Readings, Histograms: obs.Histograms})
		last = step.Explain()
		if step.Targets[0].Replicas != n {
			n = step.Targets[0].Replicas
		}
		save := func(state []byte) {
			if state != nil {
				stores++
				bytes += len(state)
				l.Saved(nil)
			}
		}
		save(step.Store)
		for w := range l.Writes() {
			l.Wrote(w, loop.Refused)
		}
		state, _ := l.Advance(now)
		save(state)
	}
	for range 600 {
		round()
	}
	stores, bytes, from := 0, 0, i
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
	b.ReportMetric(float64(stores)/float64(i-from), "stores/op")
	b.Log(last)
	b.ReportMetric(float64(bytes)/float64(i-from), "stored-B/op")
}
