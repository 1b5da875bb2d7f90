package history

import (
	"math"
	"time"
)

// A Point is what one pod said at one scrape, for the calibration of a server. What is not known is NaN.
//
// Gauges are as scraped at At. Rates and ITL are of the time since the scrape before, from increases of counters, and NaN
// where there is none: at a pod's first scrape, after a restart and after a gap.
type Point struct {
	At  time.Time
	Pod string
	// Running is the number of sequences in the batch, KVUse the share of the KV cache in use, and KVTokens that in tokens
	// where the size of the cache is known.
	Running, KVUse, KVTokens float64
	// PromptRate are the tokens of prompts that were computed, a second, without those that a cache had; TokenRate those that
	// were generated after the first of each answer. ITL * TokenRate is the mean number of sequences that decode.
	PromptRate, TokenRate float64
	// ITL is the mean time between tokens, in seconds, and Weight how many there were.
	ITL, Weight float64
}

// Points returns what each pod said at each scrape, by pod and time.
func (f *Fleet) Points() []Point {
	var points []Point
	for i := range f.Pods {
		p := &f.Pods[i]
		for k := range p.Running {
			running, kv := float64(p.Running[k]), float64(p.KV[k])
			if !known(running) && !known(kv) {
				continue
			}
			unknown := math.NaN()
			x := Point{
				At: f.at(p.First + k + 1), Pod: p.Name, Running: running, KVUse: kv, KVTokens: kv * p.KVTokens,
				PromptRate: unknown, TokenRate: unknown, ITL: unknown,
			}
			if span := int(p.Span[k]); k > 0 && span >= 1 && span <= max(1, f.every) && span <= k {
				seconds := float64(span) * f.Step.Seconds()
				x.PromptRate = float64(p.Prompted[k]) / seconds
				if tokens := float64(p.Tokens[k]); tokens > 0 {
					x.TokenRate, x.Weight, x.ITL = tokens/seconds, tokens, float64(p.ITL[k])/tokens
				}
			}
			points = append(points, x)
		}
	}
	return points
}
