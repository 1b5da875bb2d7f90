package proportional

import (
	"slices"

	"github.com/inferscale/inferscale/scaling"
)

// warnUnmatched warns of the readings if none of them matches a metric.
func (p *plan) warnUnmatched(d *scaling.Decision, obs *scaling.Observation) {
	d.WarnUnmatched(obs, func(name string) bool {
		return slices.ContainsFunc(p.metrics, func(m Metric) bool { return m.Name == name })
	})
}

// warnRare warns that the gap between two decisions is why a metric is not covered, if there is one: its windows restarted, and
// will do so at every such gap.
func (p *plan) warnRare(d *scaling.Decision, t *tally, gap int64) {
	for i := range t.looks {
		if t.looks[i].code == Uncovered {
			d.Warn(scaling.DecidedTooRarely, p.metrics[i].Name, seconds(gap), seconds(2*p.stable))
			return
		}
	}
}
