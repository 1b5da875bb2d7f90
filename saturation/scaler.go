package saturation

import (
	"math"

	"github.com/inferscale/inferscale/scaling"
)

// A Scaler is the algorithm: an immutable value that New makes from a Config. The zero value decides Unknown.
//
// Analyze is a pure function of the replicas, Decide one of state, time, analysis and variants. Both write to values that
// the caller passes again, and then allocate nothing. The order of replicas and variants does not change any answer.
type Scaler struct { //nolint:recvcheck // the value is the algorithm; inner methods take its address to spare copies
	config Config
	// fullKV and fullQueue are the lowest loads that count as saturated: the thresholds, in mode Default minus Noise.
	fullKV, fullQueue float64
	rules             uint64
}

// New returns the Scaler of a configuration, or an error with every rule that the configuration breaks.
func New(c Config) (Scaler, error) {
	if err := c.Validate(); err != nil {
		return Scaler{}, err
	}
	s := c.scaler()
	if c.Mode == Default {
		s.fullKV, s.fullQueue = leastAt(c.KVCache), leastAt(c.QueueLength)
	}
	return s, nil
}

// scaler returns the Scaler with exact comparisons.
func (c Config) scaler() Scaler {
	return Scaler{config: c, fullKV: c.KVCache, fullQueue: c.QueueLength, rules: c.fingerprint()}
}

// Config returns the configuration that the Scaler was made from.
func (s Scaler) Config() Config { return s.config }

// leastAt returns the lowest load that counts as at the threshold: the threshold does not exceed it (scaling.Exceeds).
func leastAt(threshold float64) float64 {
	x := threshold * (1 - scaling.Noise)
	for scaling.Exceeds(threshold, x) {
		x = math.Nextafter(x, math.Inf(1))
	}
	return x
}

// isSaturated reports whether a replica is saturated:
//
//	kv >= kvCacheThreshold  or  queue >= queueLengthThreshold
//
// In mode Default a replica without usable values is missing, not saturated, and loads within scaling.Noise below the
// threshold count as at the threshold.
func (s Scaler) isSaturated(r Replica) bool {
	if s.config.Mode == Default && !usable(r.KV, r.Queue) {
		return false
	}
	return r.KV >= s.fullKV || r.Queue >= s.fullQueue
}

// usable reports whether both values are finite and not negative.
func usable(kv, queue float64) bool {
	return kv >= 0 && queue >= 0 && kv <= math.MaxFloat64 && queue <= math.MaxFloat64
}
