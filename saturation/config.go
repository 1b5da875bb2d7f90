package saturation

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/enum"
	"github.com/inferscale/inferscale/scaling"
)

// Thresholds say when a replica is saturated, and how much capacity must be spare on average. The names in JSON and YAML are
// llm-d's.
type Thresholds struct {
	// KVCache is the KV cache usage, a fraction, at or above which a replica is saturated.
	KVCache float64 `json:"kvCacheThreshold"`
	// QueueLength is the number of waiting requests at or above which a replica is saturated.
	QueueLength float64 `json:"queueLengthThreshold"`
	// KVSpare is the fraction of the KV cache that must be spare on average. A trigger of 0 never asks for a scale-up.
	KVSpare float64 `json:"kvSpareTrigger"`
	// QueueSpare is the room in the queue, in requests, that must be spare on average. A trigger of 0 never asks for a
	// scale-up.
	QueueSpare float64 `json:"queueSpareTrigger"`
}

// Recommended returns the thresholds that llm-d recommends: 0.80 and 5, with spare triggers of 0.10 and 3.
func Recommended() Thresholds {
	return Thresholds{KVCache: 0.80, QueueLength: 5, KVSpare: 0.10, QueueSpare: 3}
}

// A Mode selects the interpretation of llm-d's rules.
type Mode int8

// The modes.
const (
	// Default counts a saturated replica as one with no spare capacity, so that more load never asks for fewer replicas.
	Default Mode = iota
	// Literal follows the source to the letter, for comparison and conformance. Averages leave saturated replicas out, only
	// variants that report are considered, desired 0 means unset, bounds apply last and only outside transitions, nothing
	// times out and nothing is stabilized. With 9 of 10 replicas saturated it sees no need for more, and with 3 of 5
	// saturated it considers it safe to remove one. The only liberty is that ties are decided in decimals, as a reader
	// would, and not by the last bit of a float64.
	Literal
)

// String returns the mode's name.
func (m Mode) String() string { return enum.Name(int8(m), "Mode", "Default", "Literal") }

// A StepRule says by how many replicas the chosen variant grows. It always shrinks by one.
type StepRule int8

// The step rules.
const (
	// One adds one replica, and none while any replica of the model is starting: llm-d's rule and the default.
	One StepRule = iota
	// Deficit adds the replicas that the deficit needs, less those that are starting. Growth in progress does not block a
	// scale-up, since it is credited.
	Deficit
)

// String returns the rule's name.
func (r StepRule) String() string { return enum.Name(int8(r), "StepRule", "One", "Deficit") }

// Config says how to scale. Its zero value is not valid; start from Defaults or WVA and change what is to differ. A zero has
// no special meaning: a timeout or stabilization of zero is none.
type Config struct {
	Thresholds

	Mode Mode `json:"mode"`
	// TransitionTimeout is how long a variant in transition blocks the model. After that it is set aside and the other
	// variants are decided. With 0 it blocks for ever.
	TransitionTimeout time.Duration `json:"transitionTimeout"`
	// DownStabilization is how long a scale-down must have been safe without interruption.
	DownStabilization time.Duration `json:"downStabilization"`
	Step              StepRule      `json:"step"`
}

// Defaults returns the configuration to start from: the Recommended thresholds, mode Default, a transition timeout of 10
// minutes, a down stabilization of 300 s, one replica per step.
func Defaults() Config {
	return Config{
		Thresholds:        Recommended(),
		TransitionTimeout: 10 * time.Minute,
		DownStabilization: 300 * time.Second,
	}
}

// WVA returns the source's own configuration: the Recommended thresholds, mode Literal, no timeout, no stabilization.
func WVA() Config {
	return Config{Thresholds: Recommended(), Mode: Literal}
}

// Validate reports every wrong field at once, each as a scaling.FieldError. All zeros, which the source describes as the
// behaviour without configuration, freeze a model, as 0 < 0 is false; mode Default refuses them.
//
// In mode Default thresholds are at least a billionth (KVCache at most 1, QueueLength at most 1e9) and each trigger is in
// [0, its threshold). Mode Literal accepts what llm-d's system accepts: KVCache and KVSpare in [0, 1] with KVSpare not above
// KVCache, and queues that are not negative. This includes all zeros, which freeze a model, and a QueueSpare above
// QueueLength, which grows it for ever. Mode Literal refuses a timeout, a stabilization and a step rule, which llm-d does
// not have.
func (c Config) Validate() error {
	var e scaling.FieldErrors
	e.Check(c.Mode == Default || c.Mode == Literal, "mode", c.Mode, "must be Default or Literal")
	e.Add(c.validate("", c.Mode))
	if c.Mode == Literal {
		e.Check(c.TransitionTimeout == 0, "transitionTimeout", c.TransitionTimeout, "must be 0 in mode Literal")
		e.Check(c.DownStabilization == 0, "downStabilization", c.DownStabilization, "must be 0 in mode Literal")
		e.Check(c.Step == One, "step", c.Step, "must be One in mode Literal")
		return e.Err()
	}
	e.Check(c.TransitionTimeout >= 0, "transitionTimeout", c.TransitionTimeout, "must not be negative")
	e.Check(c.TransitionTimeout <= 0 || c.TransitionTimeout >= time.Millisecond, "transitionTimeout", c.TransitionTimeout, "must be 0 or at least 1ms")
	e.Check(c.DownStabilization >= 0, "downStabilization", c.DownStabilization, "must not be negative")
	e.Check(c.Step == One || c.Step == Deficit, "step", c.Step, "must be One or Deficit")
	return e.Err()
}

// The names of the thresholds, in JSON, YAML and errors.
const (
	kvCache     = "kvCacheThreshold"
	queueLength = "queueLengthThreshold"
	kvSpare     = "kvSpareTrigger"
	queueSpare  = "queueSpareTrigger"
)

// validate reports the wrong thresholds; prefix goes before the names of the fields.
func (t Thresholds) validate(prefix string, mode Mode) error {
	var e scaling.FieldErrors
	within := func(v, most float64) bool { return v >= 0 && v <= most && !math.IsInf(v, 0) }
	if mode == Literal {
		e.Check(within(t.KVCache, 1), prefix+kvCache, t.KVCache, "must be in [0, 1]")
		e.Check(within(t.QueueLength, most), prefix+queueLength, t.QueueLength, "must be from 0 to 1e9")
		e.Check(within(t.KVSpare, 1), prefix+kvSpare, t.KVSpare, "must be in [0, 1]")
		e.Check(!(t.KVSpare > t.KVCache), prefix+kvSpare, t.KVSpare, fmt.Sprintf("must not be above %s %v", kvCache, t.KVCache))
		e.Check(within(t.QueueSpare, most), prefix+queueSpare, t.QueueSpare, "must be from 0 to 1e9")
		return e.Err()
	}
	e.Check(within(t.KVCache, 1) && t.KVCache >= 1/billion, prefix+kvCache, t.KVCache, "must be from 1e-9 to 1")
	e.Check(within(t.QueueLength, most) && t.QueueLength >= 1/billion, prefix+queueLength, t.QueueLength, "must be from 1e-9 to 1e9")
	e.Check(within(t.KVSpare, math.Inf(1)), prefix+kvSpare, t.KVSpare, "must be a number that is not negative")
	e.Check(!(t.KVSpare >= t.KVCache), prefix+kvSpare, t.KVSpare, fmt.Sprintf("must be below %s %v", kvCache, t.KVCache))
	e.Check(within(t.QueueSpare, math.Inf(1)), prefix+queueSpare, t.QueueSpare, "must be a number that is not negative")
	e.Check(!(t.QueueSpare >= t.QueueLength), prefix+queueSpare, t.QueueSpare, fmt.Sprintf("must be below %s %v", queueLength, t.QueueLength))
	return e.Err()
}

// fingerprint covers all that "safe for so long" depends on: a change restarts the down stabilization.
func (c Config) fingerprint() uint64 {
	h := fnv.New64a()
	for _, v := range []float64{c.KVCache, c.QueueLength, c.KVSpare, c.QueueSpare} {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v+0))) // a hash never fails
	}
	return h.Sum64()
}
