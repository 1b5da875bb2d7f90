package cronscale

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// TestProperties has the properties that a package of its own checks of any policy. In zones with daylight saving time
// no shift of time leaves a timetable as it is; in UTC whole weeks do.
func TestProperties(t *testing.T) {
	scalingtest.RunDrawn(t, func(t *rapid.T) (func() scaling.Policy, scalingtest.Options) {
		c, now := genConfig(t)
		opts := scalingtest.Options{
			Bounds: c.Bounds, Start: now, ActsWithoutData: true, Ticks: 30,
			Period:   time.Duration(rapid.IntRange(1, 4000).Draw(t, "period")) * time.Second,
			Memory:   time.Second, // it has none
			MaxState: len(`{"kind":"cron","version":1,"state":{}}`),
			Shift:    7 * 24 * time.Hour,
		}
		if rapid.Bool().Draw(t, "in UTC") {
			for i := range c.Policies {
				c.Policies[i].TimeZone = ""
			}
			for i := range c.Windows {
				c.Windows[i].TimeZone = ""
			}
		} else {
			opts.Skip = []string{"TimeShift"}
		}
		s := mustNew(t, c)
		return func() scaling.Policy { return scaling.New(s) }, opts
	})
}

// TestCommonProperties has what else Order, NoData and Explained mean for a timetable: the order of the configuration changes
// nothing, it always knows, and each step's numbers are the counts that it goes through.
func TestCommonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := genConfig(t)
		s := mustNew(t, c)
		obs := scaling.Observation{SpecReplicas: rapid.OneOf(rapid.Int32Range(-2, 20), rapid.Int32()).Draw(t, "spec")}
		if rapid.IntRange(0, 4).Draw(t, "wild time") == 0 {
			now = time.Unix(rapid.Int64().Draw(t, "wild"), 0)
		}
		_, d := s.Decide(State{}, now, obs)
		if d.Acts() && !c.Bounds.Contains(d.Replicas) {
			t.Fatalf("WithinBounds: %s", d.Explain())
		}
		if d.Verdict == scaling.Unknown {
			t.Fatalf("NoData: %s", d.Explain())
		}
		if !d.Next.IsZero() && !d.Next.After(now) {
			t.Fatalf("Next %v is not after %v", d.Next, now)
		}
		if err := scalingtest.Explained(&d); err != nil {
			t.Fatalf("Explained: %v\n%s", err, d.Explain())
		}
		count := obs.SpecReplicas
		for _, step := range d.Steps() {
			switch step.Code {
			case Fired, Opened, OutsideAll:
				count = int32(step.Numbers[0])
			case scaling.BelowMin, scaling.AboveMax, AtTarget:
				count = int32(step.Numbers[1])
			}
			if step.To != count {
				t.Fatalf("Explained: %s", d.Explain())
			}
		}
		shuffled := c
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0))
		shuffled.Policies = append([]Policy(nil), c.Policies...)
		shuffled.Windows = append([]Window(nil), c.Windows...)
		r.Shuffle(len(c.Policies), reflect.Swapper(shuffled.Policies))
		r.Shuffle(len(c.Windows), reflect.Swapper(shuffled.Windows))
		if _, d2 := mustNew(t, shuffled).Decide(State{}, now, obs); !reflect.DeepEqual(d, d2) {
			t.Fatalf("Order: %s\n%s", d.Explain(), d2.Explain())
		}
	})
}

// TestClockBackCausesNoActionOfItsOwn decides, goes back and decides: the answer is that of the time shown.
func TestClockBackCausesNoActionOfItsOwn(t *testing.T) {
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
