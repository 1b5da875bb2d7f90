package scaling

import (
	"encoding/json"
	"time"

	"github.com/inferscale/inferscale/internal/window"
)

// Stabilization keeps the count from following short-lived recommendations, as a HorizontalPodAutoscaler's
// stabilizationWindowSeconds does:
//
//	up    = the lowest recommendation in the window Up, now included
//	down  = the highest recommendation in the window Down, now included
//	count = min(max(current, up), down)
//
// A recommendation leaves a window of length L at an age of exactly L. A window of zero means no stabilization: it contains
// only the present recommendation, and no other of the same instant. Windows contain recommendations, never stabilized counts.
type Stabilization struct {
	Up   time.Duration `json:"up"`
	Down time.Duration `json:"down"`
}

// Validate reports negative windows. The errors prefix the field names with field.
func (s Stabilization) Validate(field string) error {
	var e FieldErrors
	e.Check(s.Up >= 0, field+".up", s.Up, "must not be negative")
	e.Check(s.Down >= 0, field+".down", s.Down, "must not be negative")
	return e.Err()
}

// Recommendations is the memory of a Stabilization. Its zero value is empty.
type Recommendations struct {
	Lows  window.Min `json:"lows"`
	Highs window.Max `json:"highs"`
}

// Apply records the count of d as a recommendation and appends the step that stabilizes it, if one is needed. d.Next is then no
// later than the time when the recommendation that holds the count leaves its window. The first call also records the present
// count in windows longer than zero, so that a fresh start does not drop running replicas. Recommendations that have left their
// window during an outage are not replaced, as a HorizontalPodAutoscaler replaces none: Hold through it is up to the caller.
func (s Stabilization) Apply(r *Recommendations, now time.Time, d *Decision) {
	up, down := window.Window{Length: s.Up}, window.Window{Length: s.Down}
	if r.Highs.Len() == 0 {
		if s.Up > 0 {
			r.Lows.Record(up, now, float64(d.From))
		}
		if s.Down > 0 {
			r.Highs.Record(down, now, float64(d.From))
		}
	}
	r.Lows.Record(up, now, float64(d.Replicas))
	r.Highs.Record(down, now, float64(d.Replicas))
	lowest, highest := float64(d.Replicas), float64(d.Replicas)
	if s.Up > 0 {
		lowest, _ = r.Lows.Min(up, now)
	}
	if s.Down > 0 {
		highest, _ = r.Highs.Max(down, now)
	}
	n := min(max(d.From, Saturate(lowest)), Saturate(highest))
	switch {
	case n < d.Replicas:
		d.To(n, UpStabilized, "", float64(d.Replicas), lowest, s.Up.Seconds())
		d.NextBy(r.Lows.Leaves(up))
	case n > d.Replicas:
		d.To(n, DownStabilized, "", float64(d.Replicas), highest, s.Down.Seconds())
		d.NextBy(r.Highs.Leaves(down))
	}
}

// Clone returns a copy that shares no memory.
func (r *Recommendations) Clone() Recommendations {
	return Recommendations{r.Lows.Clone(), r.Highs.Clone()}
}

// Stabilized returns base with a Stabilization applied to its decisions. An Unknown of base is passed on and not recorded, and
// so is a step to the bounds of base (BelowMin, AboveMax) of a count that is outside of them. Bounded around it keeps any count within.
func Stabilized(base Policy, s Stabilization) (Policy, error) {
	return around(&stabilized{base: base, config: s}, base, s.Validate("stabilization"))
}

type stabilized struct {
	base   Policy
	config Stabilization
	memory Recommendations
}

type stabilizedState struct {
	Base json.RawMessage `json:"base"`
	Recommendations
}

func (s *stabilized) kind() Kind { return Kind{"stabilized", 1} }

func (s *stabilized) decide(now time.Time, obs Observation) Decision {
	d := s.base.Decide(now, obs)
	if d.Verdict != Unknown {
		s.config.Apply(&s.memory, now, &d)
		d.clampAgain()
	}
	return d
}

func (s *stabilized) applied(now time.Time, from, to int32) { s.base.Applied(now, from, to) }

func (s *stabilized) save(form form) (any, error) {
	base, err := form.of(s.base)
	return stabilizedState{base, s.memory}, err
}

func (s *stabilized) snapshot() (restore func() error, err error) {
	memory := s.memory.Clone()
	return snapshotWith(s.base, func() { s.memory = memory.Clone() })
}

func (s *stabilized) load(data []byte) error {
	var st stabilizedState
	if err := decodeStrictly(data, &st); err != nil {
		return err
	}
	if err := s.base.UnmarshalJSON(st.Base); err != nil {
		return err
	}
	s.memory = st.Recommendations
	return nil
}
