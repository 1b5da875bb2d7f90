package scaling

import "slices"

// Codes of warnings: what a user should know although it changes no decision.
const (
	// DecidedTooRarely warns that more time has passed since the last decision than the algorithm's windows can bridge. If
	// every gap is that long, the windows never fill and nothing ever happens.
	DecidedTooRarely Code = "DecidedTooRarely gap:s > most:s"
	// Unmatched warns of a reading that matches none of the policy's metrics, if no other reading matches one either: one of
	// the names may be misspelt.
	Unmatched Code = "Unmatched"
)

// Warn adds, on its own branch, a step that changes nothing but that a user should know about. Reason and Explain end with the
// warnings.
func (d *Decision) Warn(code Code, subject string, numbers ...float64) {
	d.branches = after(d.branches, 1)
	d.add(Step{Code: code, From: d.From, To: d.From, Subject: subject, Branch: d.branches, Warning: true, Numbers: pack(numbers)})
}

// mostUnmatched is how many readings WarnUnmatched names.
const mostUnmatched = 8

// WarnUnmatched warns of the readings that match none of a policy's metrics, in the order of their names and of at most eight.
// It warns of none if any reading matches a metric. It is for decisions that are Unknown for lack of a sample. has reports
// whether the policy has a metric with a name.
func (d *Decision) WarnUnmatched(obs *Observation, has func(metric string) bool) {
	var names []string
	for i := range obs.Readings {
		name := obs.Readings[i].Metric
		if has(name) {
			return
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names[:min(len(names), mostUnmatched)] {
		d.Warn(Unmatched, name)
	}
}
