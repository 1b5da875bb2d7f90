package scaling

import "slices"

// Codes of warnings: what a user should know although it changes no decision.
const (
	// DecidedTooRarely warns that more time has passed since the decision before than the algorithm's windows can
	// bridge. Where every gap is as long, the windows never fill and nothing ever happens.
	DecidedTooRarely Code = "DecidedTooRarely gap:s > most:s"
	// Unmatched warns of a reading that the policy has no metric for, while it has none for any of its metrics: one of
	// the names may be misspelt.
	Unmatched Code = "Unmatched"
)

// Warn notes, on a branch of its own, what changes nothing and should be known. Reason ends with the warnings, and so
// does Explain.
func (d *Decision) Warn(code Code, subject string, numbers ...float64) {
	d.branches++
	d.add(Step{Code: code, From: d.From, To: d.From, Subject: subject, Branch: d.branches, Warning: true, Numbers: pack(numbers)})
}

// mostUnmatched is how many readings WarnUnmatched names.
const mostUnmatched = 8

// WarnUnmatched warns of the readings that no metric of a policy has, in the order of their names and of eight at most,
// if there is none that a metric has. It is for decisions that are Unknown for want of a sample: has reports whether
// the policy has a metric of a name.
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
