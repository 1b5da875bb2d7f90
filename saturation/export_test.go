package saturation

import "time"

// Model is what Group and Single have in common.
type Model = live

// NewModel returns the Model of a Scaler, with a fresh state.
func NewModel(s Scaler) *Model { return &live{scaler: s} }

// Decide analyzes the replicas and decides on the variants. The plan is valid until the next call.
func (l *live) Decide(now time.Time, replicas []Replica, variants []Variant) *Plan {
	l.scaler.Analyze(&l.analysis, replicas)
	l.decide(now, variants)
	return &l.plan
}

// Analysis returns what the last Decide made of the replicas.
func (l *live) Analysis() *Analysis { return &l.analysis }

// Unchecked returns the Scaler of a configuration that Validate may refuse: the recorded system's analyzer did not
// validate what it was given.
func Unchecked(c Config) Scaler { return c.scaler() }

// IsSaturated reports whether a replica is saturated.
func (s Scaler) IsSaturated(r Replica) bool { return s.isSaturated(r) }

// Sum adds numbers as Analyze does, over two parts.
func Sum(numbers []float64) float64 {
	var parts [2]sum
	for i, x := range numbers {
		parts[i%2].add(x)
	}
	parts[0].join(&parts[1])
	return parts[0].value()
}
