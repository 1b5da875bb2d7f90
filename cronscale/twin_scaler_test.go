package cronscale

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

func mustNew(tb tester, c Config) Scaler {
	tb.Helper()
	s, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// genBusyExpr draws an expression that fires at least once in a few days.
func genBusyExpr(t *rapid.T) string {
	expr := fmt.Sprintf("%s %s * * %s",
		genField(t, "minute", 0, 59), genField(t, "hour", 0, 23), genField(t, "dow", 0, 6))
	if _, err := parse(expr); err != nil {
		t.Skip(expr, err)
	}
	return expr
}

// genConfig draws a timetable whose schedules are all in zones with a shift near the instant that it returns.
func genConfig(t *rapid.T) (Config, time.Time) {
	_, shift := genShift(t, fewZones(t), 100_000_000)
	now := shift.Add(time.Duration(rapid.Int64Range(-60*3600, 60*3600).Draw(t, "offset")) * time.Second).UTC()
	bounds := scaling.Bounds{Min: rapid.Int32Range(0, 3).Draw(t, "min"), Max: rapid.Int32Range(3, 12).Draw(t, "max")}
	c := Config{Mode: rapid.SampledFrom([]Mode{HoldLast, Match, InWindow}).Draw(t, "mode"), Bounds: bounds}
	n := rapid.IntRange(1, 4).Draw(t, "entries")
	for i := range n {
		name := fmt.Sprintf("p%d", i)
		zone := rapid.SampledFrom(oddZones).Draw(t, "zone of "+name)
		target := rapid.Int32Range(0, 15).Draw(t, "target")
		if c.Mode != InWindow {
			c.Policies = append(c.Policies, Policy{name, genBusyExpr(t), target, zone})
			continue
		}
		w := Window{name, genBusyExpr(t), genBusyExpr(t), target, zone}
		if mustParse(t, w.Start) == mustParse(t, w.End) {
			t.Skip("a window that is always open")
		}
		c.Windows = append(c.Windows, w)
	}
	if c.Mode == InWindow {
		c.Outside = rapid.Int32Range(0, 4).Draw(t, "outside")
	}
	return c, now
}

// twinSlot is what is compared of an answer.
type twinSlot struct {
	replicas int32
	inForce  bool
	name     string
}

// twinTable is the twin's view of a timetable: all its fires in a range of time.
type twinTable struct {
	config  Config
	on, off [][]twinFire
}

func newTwinTable(tb tester, c Config, from, to time.Time) twinTable {
	tb.Helper()
	table := twinTable{config: c}
	for _, p := range c.Policies {
		table.on = append(table.on, twinFires(tb, p.Schedule, mustZone(tb, p.TimeZone), from, to))
	}
	for _, w := range c.Windows {
		table.on = append(table.on, twinFires(tb, w.Start, mustZone(tb, w.TimeZone), from, to))
		table.off = append(table.off, twinFires(tb, w.End, mustZone(tb, w.TimeZone), from, to))
	}
	return table
}

func lastOf(fires []twinFire, now time.Time) (last twinFire) {
	for _, f := range fires {
		if !f.at.After(now) {
			last = f
		}
	}
	return last
}

func (w twinTable) slot(now time.Time) twinSlot {
	c := w.config
	var best twinSlot
	better := func(target int32, name string) {
		if !best.inForce || target > best.replicas || target == best.replicas && name < best.name {
			best = twinSlot{target, true, name}
		}
	}
	var newest time.Time
	for i := range c.Policies {
		if last := lastOf(w.on[i], now); last.at.After(newest) {
			newest = last.at
		}
	}
	for i, p := range c.Policies {
		last := lastOf(w.on[i], now)
		if c.Mode == HoldLast && last.at.Equal(newest) ||
			c.Mode == Match && !last.at.IsZero() && now.Sub(last.at) < time.Minute {
			better(p.TargetReplicas, p.Name)
		}
	}
	for i, p := range c.Windows {
		start, end := lastOf(w.on[i], now), lastOf(w.off[i], now)
		if !start.at.IsZero() && !start.minute.Before(end.minute) {
			better(p.Replicas, p.Name)
		}
	}
	if c.Mode == InWindow && !best.inForce {
		best = twinSlot{c.Outside, true, ""}
	}
	best.replicas = c.Bounds.Clamp(best.replicas)
	if !best.inForce {
		best.replicas = 0
	}
	return best
}

func slotOf(s scaling.Slot) twinSlot {
	got := twinSlot{replicas: s.Replicas, inForce: s.InForce}
	if s.InForce {
		got.name = s.Because.Subject
	}
	return got
}
