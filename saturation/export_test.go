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

// Sum adds numbers as Analyze does, with the scale for numbers up to limit, and reports how many went the short way.
func Sum(numbers []float64, limit float64) (value float64, short int) {
	scale := scaleOf(limit)
	var parts [2]sum
	var total sum
	for i, x := range numbers {
		if p := &parts[i%2]; p.add(x, scale) {
			short++
		} else {
			p.addWideBoth(x, &total)
		}
	}
	total.join(&parts[0])
	total.join(&parts[1])
	return total.value(scale), short
}
