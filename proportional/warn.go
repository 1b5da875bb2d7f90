package proportional

import (
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// warnUnmatched names the readings that no metric has.
func (p *plan) warnUnmatched(d *scaling.Decision, obs *scaling.Observation) {
	d.WarnUnmatched(obs, func(name string) bool {
		return slices.ContainsFunc(p.metrics, func(m Metric) bool { return m.Name == name })
	})
}

// warnRare says that the gap between two decisions is why a metric is not covered, if one is not: then its windows
// began anew, and do so at every such gap.
func (p *plan) warnRare(d *scaling.Decision, t *tally, gap int64) {
	for i := range t.looks {
		if t.looks[i].code == Uncovered {
			d.Warn(scaling.DecidedTooRarely, p.metrics[i].Name, seconds(gap), seconds(2*p.stable))
			return
		}
	}
}
