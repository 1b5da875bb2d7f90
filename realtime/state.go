package realtime

import (
	"encoding/json"
	"fmt"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// State is what a Scaler remembers: a plain value whose size does not depend on the length of the run. The zero value
// is a fresh start: no change was ever made and no threshold breached.
type State struct { //nolint:recvcheck // a plain value; inner methods change it in place
	Seen     scaling.Stamp `json:"seen,omitzero"`     // the last decision
	LastUp   scaling.Stamp `json:"lastUp,omitzero"`   // the last scale-up that was carried out
	LastDown scaling.Stamp `json:"lastDown,omitzero"` // the last scale-down that was carried out
	Changed  scaling.Stamp `json:"changed,omitzero"`  // the last change of any kind, repairs of the bounds included
	Streaks  Streaks       `json:"streaks"`
}

// Streaks has a streak for every metric with a recent sample; the rest are zero.
type Streaks [MaxMetrics]Streak

// A Streak is an unbroken run of samples of one metric beyond one of its thresholds, or between the two. Its zero value is no
// streak.
type Streak struct {
	Metric uint64 // fingerprint of the metric's name, thresholds, role, windows and period
	Side   int8   // +1 above High, -1 below Low, 0 between them
	Since  int64  // time of the first sample, Unix milliseconds
	Last   int64  // time of the latest sample, Unix milliseconds
}

// Clone returns a copy.
func (s State) Clone() State { return s }

// Validate reports a state that no Scaler can have written: one with a sample after the last decision, beside which every new
// sample would look outdated.
func (s State) Validate() error {
	for i, k := range s.Streaks {
		if k != (Streak{}) && (!s.Seen.Set || k.Last > s.Seen.Milli) {
			return fmt.Errorf("streaks[%d].last: must be a time up to seen", i)
		}
	}
	return nil
}

type storedStreak struct {
	Metric string `json:"metric"`
	Side   int8   `json:"side"`
	Since  int64  `json:"since"`
	Last   int64  `json:"last"`
}

// MarshalJSON writes the streaks that are not zero. The fingerprint is in hexadecimal, since not every reader of JSON can
// represent 64 bits.
func (s Streaks) MarshalJSON() ([]byte, error) {
	stored := make([]storedStreak, 0, len(s))
	for _, k := range s {
		if k != (Streak{}) {
			stored = append(stored, storedStreak{fmt.Sprintf("%016x", k.Metric), k.Side, k.Since, k.Last})
		}
	}
	return json.Marshal(stored)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Streaks) UnmarshalJSON(data []byte) error {
	var stored []storedStreak
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	if len(stored) > MaxMetrics {
		return fmt.Errorf("streaks: %d: must be at most %d", len(stored), MaxMetrics)
	}
	*s = Streaks{}
	for i, k := range stored {
		s[i] = Streak{Side: k.Side, Since: k.Since, Last: k.Last}
		if _, err := fmt.Sscanf(k.Metric, "%016x", &s[i].Metric); err != nil || len(k.Metric) != 16 {
			return fmt.Errorf("streaks[%d].metric: %q: must be 16 hexadecimal digits", i, k.Metric)
		}
		if k.Side < -1 || k.Side > 1 || k.Last < k.Since || !window.Remembered(k.Since) {
			return fmt.Errorf("streaks[%d]: %+v: not a streak", i, k)
		}
	}
	return nil
}

// of returns the streak of a metric. It looks first at the place where the last decision put it.
func (s *Streaks) of(id uint64, place int) Streak {
	if s[place].Metric == id {
		return s[place]
	}
	for _, k := range s {
		if k.Metric == id {
			return k
		}
	}
	return Streak{}
}

// lastScale returns the last scale-up or scale-down, whichever is later.
func (s *State) lastScale() scaling.Stamp {
	if !s.LastUp.Set || s.LastDown.Set && s.LastDown.Milli > s.LastUp.Milli {
		return s.LastDown
	}
	return s.LastUp
}

// turnBack returns by how many milliseconds the clock is behind the last decision, and moves every remembered time back by as
// much, so that the time already waited stays the same. A change that is still in the future, as after a restore from a machine
// with another clock, becomes one of now, so that it costs one cooldown at most.
func (s *State) turnBack(now int64) int64 {
	back := int64(0)
	if s.Seen.Set && now < s.Seen.Milli {
		back = s.Seen.Milli - now
		s.LastUp, s.LastDown, s.Changed = s.LastUp.Back(back), s.LastDown.Back(back), s.Changed.Back(back)
		for i := range s.Streaks {
			if k := &s.Streaks[i]; k.Metric != 0 {
				k.Since, k.Last = window.Back(k.Since, back), window.Back(k.Last, back)
			}
		}
	}
	for _, last := range []*scaling.Stamp{&s.LastUp, &s.LastDown, &s.Changed} {
		if last.Set {
			last.Milli = min(last.Milli, now)
		}
	}
	return back
}
