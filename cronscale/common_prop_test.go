package cronscale

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// TestCommonProperties has C1, C2, C4, C6, C9 and C10 for any timetable, spec and time.
func TestCommonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := genConfig(t)
		s := mustNew(t, c)
		obs := scaling.Observation{
			SpecReplicas: rapid.OneOf(rapid.Int32Range(-2, 20), rapid.Int32()).Draw(t, "spec"),
			Readings:     []scaling.Reading{scaling.Exactly("m", rapid.Float64().Draw(t, "value"))},
		}
		if rapid.IntRange(0, 4).Draw(t, "wild time") == 0 {
			now = time.Unix(rapid.Int64().Draw(t, "wild"), 0)
		}
		_, d := s.Decide(State{}, now, obs)
		if d.Acts() && !c.Bounds.Contains(d.Replicas) {
			t.Fatalf("C1: %s", d.Explain())
		}
		if d.Verdict == scaling.Unknown || !d.Acts() && d.Replicas != obs.SpecReplicas {
			t.Fatalf("C9: %s", d.Explain())
		}
		if !d.Next.IsZero() && !d.Next.After(now) {
			t.Fatalf("Next %v is not after %v", d.Next, now)
		}
		steps := d.Steps()
		count := obs.SpecReplicas
		for _, step := range steps {
			if step.From != count || !step.Holds() {
				t.Fatalf("C10: %s", d.Explain())
			}
			switch step.Code {
			case Fired, Opened, OutsideAll:
				count = int32(step.Numbers[0])
			case scaling.BelowMin, scaling.AboveMax, AtTarget:
				count = int32(step.Numbers[1])
			}
			if step.To != count {
				t.Fatalf("C10: %s", d.Explain())
			}
		}
		if len(steps) == 0 || count != d.Replicas {
			t.Fatalf("C10: %s", d.Explain())
		}
		shuffled := c
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0))
		shuffled.Policies = append([]Policy(nil), c.Policies...)
		shuffled.Windows = append([]Window(nil), c.Windows...)
		r.Shuffle(len(c.Policies), reflect.Swapper(shuffled.Policies))
		r.Shuffle(len(c.Windows), reflect.Swapper(shuffled.Windows))
		if _, d2 := mustNew(t, shuffled).Decide(State{}, now, obs); !reflect.DeepEqual(d, d2) {
			t.Fatalf("C4: %s\n%s", d.Explain(), d2.Explain())
		}
		if _, d2 := s.Decide(State{}, now, obs); !reflect.DeepEqual(d, d2) {
			t.Fatalf("C6: %s\n%s", d.Explain(), d2.Explain())
		}
	})
}

// TestC3WholeWeeksChangeNothing shifts a weekly timetable in UTC.
func TestC3WholeWeeksChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := genConfig(t)
		for i := range c.Policies {
			c.Policies[i].TimeZone = ""
		}
		for i := range c.Windows {
			c.Windows[i].TimeZone = ""
		}
		s := mustNew(t, c)
		shift := time.Duration(rapid.IntRange(-2000, 2000).Draw(t, "weeks")) * 7 * 24 * time.Hour
		obs := scaling.Observation{SpecReplicas: rapid.Int32Range(0, 12).Draw(t, "spec")}
		_, a := s.Decide(State{}, now, obs)
		_, b := s.Decide(State{}, now.Add(shift), obs)
		if a.Explain() != b.Explain() || !a.Next.IsZero() && !a.Next.Add(shift).Equal(b.Next) {
			t.Fatalf("%s%v\nshifted\n%s%v", a.Explain(), a.Next, b.Explain(), b.Next)
		}
	})
}

// TestC5RestoreAtAnyTick saves and restores the live policy before each decision. C7: what is saved does not grow.
func TestC5RestoreAtAnyTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := genConfig(t)
		s := mustNew(t, c)
		steady, restored := scaling.New(s), scaling.New(s)
		spec := int32(1)
		for range 30 {
			data, err := json.Marshal(restored)
			if err != nil {
				t.Fatal(err)
			}
			if string(data) != `{"kind":"cron","version":1,"state":{}}` {
				t.Fatalf("C7: %s", data)
			}
			restored = scaling.New(s)
			if err := json.Unmarshal(data, restored); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Duration(rapid.IntRange(-100, 4000).Draw(t, "seconds")) * time.Second)
			obs := scaling.Observation{SpecReplicas: spec}
			a, b := steady.Decide(now, obs), restored.Decide(now, obs)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("C5 at %v: %snext %v\nrestored %snext %v", now, a.Explain(), a.Next, b.Explain(), b.Next)
			}
			if a.Acts() {
				steady.Applied(now, spec, a.Replicas)
				restored.Applied(now, spec, a.Replicas)
				spec = a.Replicas
			}
		}
	})
}

// TestC8ClockBackCausesNoActionOfItsOwn decides, goes back and decides: the answer is that of the time shown.
func TestC8ClockBackCausesNoActionOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := genConfig(t)
		s := mustNew(t, c)
		obs := scaling.Observation{SpecReplicas: rapid.Int32Range(0, 12).Draw(t, "spec")}
		back := now.Add(-time.Duration(rapid.Int64Range(1, 3*86400).Draw(t, "back")) * time.Second)
		state, _ := s.Decide(State{}, now, obs)
		_, got := s.Decide(state, back, obs)
		if _, want := s.Decide(State{}, back, obs); !reflect.DeepEqual(got, want) {
			t.Fatalf("back at %v: %s\nfresh %s", back, got.Explain(), want.Explain())
		}
	})
}

// TestTimelineEqualsAt asks for the timetable at random times and compares with the last change before them.
func TestTimelineEqualsAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, from := genConfig(t)
		s := mustNew(t, c)
		to := from.Add(30 * time.Hour)
		var changes []Change
		for ch := range s.Timeline(from, to) {
			if n := len(changes); n > 0 && (!ch.At.After(changes[n-1].At) ||
				ch.InForce == changes[n-1].InForce && ch.Replicas == changes[n-1].Replicas) {
				t.Fatalf("%+v after %+v", ch, changes[n-1])
			}
			changes = append(changes, ch)
		}
		if len(changes) == 0 || !changes[0].At.Equal(from) {
			t.Fatalf("begins with %v", changes)
		}
		for range 50 {
			now := from.Add(time.Duration(rapid.Int64Range(0, 30*3600-1).Draw(t, "s")) * time.Second)
			var last Change
			for _, ch := range changes {
				if !ch.At.After(now) {
					last = ch
				}
			}
			if slot := s.At(now); slot.InForce != last.InForce || slot.Replicas != last.Replicas {
				t.Fatalf("at %v the timetable asks for %+v, the timeline has %+v", now, slot, last)
			}
		}
		for range s.Timeline(to, from) {
			t.Fatal("a timeline that runs backwards is not empty")
		}
	})
}
