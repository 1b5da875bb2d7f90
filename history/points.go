package history

import (
	"time"
)

// A Point is what a pod did between two scrapes, for the calibration of a server.
type Point struct {
	At  time.Time // the end
	Pod string
	// Running are the sequences in the decoding batch, the mean over the time. It is exact: each of them spends all of the
	// time between tokens, so that their number is the sum of all times between tokens over the time. (The gauge of running
	// requests is one look at it, and counts those whose prompt is computed.)
	Running float64
	// KVUse is the share of the KV cache in use, the mean of before and after; KVTokens the same in tokens, NaN where the
	// cache's size is not known.
	KVUse, KVTokens float64
	// PromptRate are the tokens of prompts that were computed, a second, without those that a cache had.
	PromptRate float64
	// ITL is the mean time between tokens, in seconds, and Weight how many there were.
	ITL, Weight float64
}

// leastTokens is how many times between tokens a point must be the mean of.
const leastTokens = 10

// Points returns what each pod did between two scrapes, by pod and time. Times in which a scrape is missing or a counter
// began anew, and those with too few tokens to make a mean, are left out.
func (f *Fleet) Points() []Point {
	var points []Point
	for i := range f.Pods {
		p := &f.Pods[i]
		for k := 1; k < len(p.Tokens); k++ {
			span := int(p.Span[k])
			tokens, itl := float64(p.Tokens[k]), float64(p.ITL[k])
			if span < 1 || span > k || !(tokens >= leastTokens) || !(itl > 0) || span > f.usual() {
				continue
			}
			kv := (float64(p.KV[k]) + float64(p.KV[k-span])) / 2
			seconds := float64(span) * f.Step.Seconds()
			points = append(points, Point{
				At: f.at(p.First + k + 1), Pod: p.Name,
				Running: itl / seconds, KVUse: kv, KVTokens: kv * p.KVTokens,
				PromptRate: float64(p.Prompted[k]) / seconds, ITL: itl / tokens, Weight: tokens,
			})
		}
	}
	return points
}

// usual returns how many intervals are between two scrapes.
func (f *Fleet) usual() int { return max(1, f.every) }
