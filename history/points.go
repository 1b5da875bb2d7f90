package history

import (
	"math"

	"github.com/inferscale/inferscale/calibrate"
)

// Points returns the observation of each pod at each scrape, by pod and time, for [calibrate.Fit]. If an engine counts times
// per token by request, the number of sequences is only known from the scrapes. There are no points for Dynamo, whose
// frontends count for all workers.
func (f *Fleet) Points() []calibrate.Point {
	if f.Engine == Dynamo {
		return nil
	}
	perRequest := f.Engine.perRequest()
	var points []calibrate.Point
	for i := range f.Pods {
		p := &f.Pods[i]
		for k := range p.Running {
			running, kv := float64(p.Running[k]), float64(p.KV[k])
			if !known(running) && !known(kv) {
				continue
			}
			unknown := math.NaN()
			x := calibrate.Point{
				At: f.at(p.First + k + 1), Pod: p.Name, Running: running, KVUse: kv, KVTokens: kv * p.KVTokens,
				PromptRate: unknown, TokenRate: unknown, ITL: unknown,
			}
			// Where the interval is no whole number of steps, some of the spans are a step longer than the usual one.
			if span := int(p.Span[k]); k > 0 && span >= 1 && span <= max(1, f.every)+1 && span <= k {
				seconds := float64(span) * f.Step.Seconds()
				x.PromptRate = float64(p.Prompted[k]) / seconds
				if tokens := float64(p.Tokens[k]); tokens > 0 {
					x.Weight, x.ITL = tokens, float64(p.ITL[k])/tokens
					if !perRequest {
						x.TokenRate = tokens / seconds
					}
				}
			}
			points = append(points, x)
		}
	}
	return points
}
