package keda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// twin is the world as another replica of the scaler sees it: the same target and store, with eyes of its own.
func (w *world) twin() *world {
	twin := newWorld(w.t)
	twin.store, twin.object, twin.scale, twin.now = w.store, w.object, w.scale, w.now
	return twin
}

// TestReplicasOfTheScalerAgree runs two scalers with one store: each round is made once, and both say the same. What the
// second could see itself is of another load, and does not matter.
func TestReplicasOfTheScalerAgree(t *testing.T) {
	w := newWorld(t)
	v := w.twin()
	one, two := w.trigger(replicasMode()), v.trigger(replicasMode())
	for i := range 40 {
		w.load(float64([]int{15, 15, 7, 2, 2, 2, 2}[i%7]))
		v.load(float64([]int{2, 2, 15, 15, 7, 2, 15}[i%7]))
		first := w.next(one)
		v.now = w.now.Add(time.Second)
		second := v.round(two)
		require.Zero(t, v.observes.Load(), "the second has looked at what the first found")
		require.InDelta(t, first.Value, second.Value, 0)
		require.Equal(t, first.At, second.At)
		require.Equal(t, first.Because, second.Because)
		require.Equal(t, first.At.Add(15*time.Second+750*time.Millisecond), second.Next, "and looks again just after the first's next")
		w.replicas(int32(first.Value))
		v.replicas(int32(first.Value))
	}
	// The first ends, and the second goes on where it was: its cooldown runs on.
	v.load(15)
	v.now = w.now.Add(time.Minute)
	up := v.next(two)
	require.InDelta(t, float64(v.scale.Replicas+1), up.Value, 0)
	v.replicas(v.scale.Replicas + 1)
	v.load(15)
	requireCooling(t, v.next(two))
	requireCooling(t, v.next(v.trigger(replicasMode())))
}

// A turn is a replica of the scaler whose rounds are made when they are due, as the Engine does.
type turn struct {
	*world

	trigger Trigger
	due     time.Time
	last    Snapshot
	unknown int
}

// play makes the rounds of several replicas of the scaler for a while, each when it is due.
func play(t *testing.T, d time.Duration, turns ...*turn) {
	t.Helper()
	for until := turns[0].now.Add(d); ; {
		next := slices.MinFunc(turns, func(a, b *turn) int { return a.due.Compare(b.due) })
		if next.due.After(until) {
			return
		}
		next.now = next.due
		next.last = next.round(next.trigger)
		if next.last.Unknown != nil {
			next.unknown++
		}
		if next.due = next.last.Next; !next.due.After(next.now) {
			next.due = next.now.Add(15 * time.Second)
		}
	}
}

// TestSickReplicaHarmsNobody: one that sees no pod says what another has found, and takes nothing from its windows.
func TestSickReplicaHarmsNobody(t *testing.T) {
	metadata := replicasMode("realtime.scaleUpRule.stabilizationWindowSeconds", "60")
	for _, first := range []string{"sick", "well"} {
		for _, behind := range []time.Duration{100 * time.Millisecond, time.Second, 7 * time.Second, 14 * time.Second} {
			t.Run(fmt.Sprintf("%s is %s ahead", first, behind), func(t *testing.T) {
				w := newWorld(t)
				w.load(15)
				v := w.twin()
				v.seenErr = errors.New("4 pods: Timeout")
				well, sick := &turn{world: w, trigger: w.trigger(metadata), due: w.now}, &turn{world: v, trigger: v.trigger(metadata), due: w.now}
				if first == "sick" {
					well.due = well.due.Add(behind)
				} else {
					sick.due = sick.due.Add(behind)
				}
				play(t, 30*time.Second, well, sick)
				require.Zero(t, well.unknown, "it can see the pods")
				sick.unknown = 0
				play(t, 60*time.Second, well, sick)
				require.Zero(t, well.unknown)
				require.Zero(t, sick.unknown, "it says what the other has found")
				for _, r := range []*turn{well, sick} {
					require.InDelta(t, 5, r.last.Value, 0, "the load has been high for the whole window: %s", r.last.Because)
				}

				// The well one ends: what is not known is said before an answer would be stale.
				play(t, 45*time.Second, sick)
				require.ErrorContains(t, sick.last.Unknown, "4 pods: Timeout")
				require.True(t, sick.last.Active)
				// And one that sees them again begins the window anew.
				v.seenErr = nil
				v.load(15)
				play(t, 45*time.Second, sick)
				require.Contains(t, sick.last.Because, "UpWindow")
				play(t, 60*time.Second, sick)
				require.InDelta(t, 5, sick.last.Value, 0)
			})
		}
	}
}

// TestNobodySees: replicas of the scaler of which none sees a pod say the same, and look on.
func TestNobodySees(t *testing.T) {
	w := newWorld(t)
	w.seenErr = errors.New("4 pods: Refused")
	v := w.twin()
	v.seenErr = errors.New("4 pods: Timeout")
	one, two := w.trigger(replicasMode()), v.trigger(replicasMode())
	for range 5 {
		first := w.next(one)
		v.now = w.now.Add(time.Second)
		second := v.round(two)
		require.ErrorContains(t, first.Unknown, "4 pods: Refused")
		require.Equal(t, first.Unknown, second.Unknown)
		require.Equal(t, first.At, second.At)
	}
	require.EqualValues(t, 5, v.observes.Load(), "each has looked")
	require.Equal(t, 5, w.store.saves, "and what was found is stored once")
}

// TestWhoSeesWins: a record of nothing known that was stored in between does not win over what is known.
func TestWhoSeesWins(t *testing.T) {
	w := newWorld(t)
	w.load(15)
	v := w.twin()
	v.seenErr = errors.New("4 pods: Refused")
	trigger := w.trigger(replicasMode())
	p, ok := trigger.(*podTrigger)
	require.True(t, ok)
	p.c.Scales = between{w, func() { require.Error(t, v.round(v.trigger(replicasMode())).Unknown) }}
	s := w.round(trigger)
	require.NoError(t, s.Unknown)
	require.InDelta(t, 5, s.Value, 0)
	require.Equal(t, 2, w.store.saves)
}

// TestConflictIsLost: what another replica has stored between reading and writing is answered with, and not overwritten.
func TestConflictIsLost(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode())
	w.load(15)
	w.round(trigger)
	p, ok := trigger.(*podTrigger)
	require.True(t, ok)
	var other Snapshot
	p.c.Scales = between{w, func() {
		w.load(7)
		other = w.round(w.trigger(replicasMode()))
		w.load(15)
	}}
	s := w.next(trigger)
	require.InDelta(t, 4, s.Value, 0)
	require.Equal(t, other.Because, s.Because)
	require.Equal(t, other.At, s.At)
	p.c.Scales = w
	require.InDelta(t, 5, w.next(trigger).Value, 0)
}

// TestConflictWithOtherMetadata: then there is no answer to take over, and the round came to nothing.
func TestConflictWithOtherMetadata(t *testing.T) {
	w := newWorld(t)
	trigger := w.trigger(replicasMode())
	w.load(15)
	w.round(trigger)
	p, ok := trigger.(*podTrigger)
	require.True(t, ok)
	p.c.Scales = between{w, func() { w.round(w.trigger(replicasMode("threshold", "12"))) }}
	w.now = w.now.Add(15 * time.Second)
	_, err := trigger.Round(t.Context(), w.now)
	require.ErrorIs(t, err, k8s.ErrStateConflict)
	p.c.Scales = w
	require.NoError(t, w.next(trigger).Unknown)
}

// between does something before a target is read.
type between struct {
	Scales

	do func()
}

func (b between) Get(ctx context.Context, t k8s.Target) (k8s.Scale, error) {
	b.do()
	return b.Scales.Get(ctx, t)
}
