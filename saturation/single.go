package saturation

import (
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Single is a live Scaler for one target with known fleet averages only, as a scaling.Policy. Where the values of single
// replicas are available, prefer a Group: an average cannot show one saturated replica among idle ones.
//
// The readings are averages per replica. Up uses their lower ends, down their upper ends. All ready replicas are assumed to
// carry the average, so either all of them are saturated or none is. A metric without a sample counts as idle for up and
// prevents down; if both have none, the verdict is Unknown. Ready replicas stand for those that report: if their number is
// not the requested count, the target is in transition.
//
// In mode Literal averages are compared in float64: deciding ties in decimals needs the values of single replicas.
type Single struct {
	live

	config  SingleConfig
	variant [1]Variant
}

// SingleConfig says what a Single reads and within which bounds it decides.
type SingleConfig struct {
	Config

	Bounds scaling.Bounds `json:"bounds"`
	KV     string         `json:"kv"`    // the reading of the KV cache usage, a fraction
	Queue  string         `json:"queue"` // the reading of the waiting requests
}

// DefaultKV and DefaultQueue are the metrics of a vLLM server that llm-d reads.
const (
	DefaultKV    = "vllm:kv_cache_usage_perc"
	DefaultQueue = "vllm:num_requests_waiting"
)

// Validate reports every wrong field at once, each as a scaling.FieldError.
func (c SingleConfig) Validate() error {
	var e scaling.FieldErrors
	e.Add(c.Config.Validate())
	e.Add(c.Bounds.Validate("bounds"))
	e.Check(c.KV != "", "kv", c.KV, "must not be empty")
	e.Check(c.Queue != "", "queue", c.Queue, "must not be empty")
	e.Check(c.Queue != c.KV || c.KV == "", "queue", c.Queue, "must not be kv")
	return e.Err()
}

// NewSingle returns the Single of a configuration, with a fresh state, or an error with every rule that the configuration
// breaks.
func NewSingle(c SingleConfig) (*Single, error) {
	if err := c.Validate(); err != nil {
		return &Single{}, err
	}
	scaler, err := New(c.Config)
	if err != nil {
		return &Single{}, err
	}
	return &Single{live: live{scaler: scaler}, config: c}, nil
}

var _ scaling.Policy = (*Single)(nil)

// Decide decides on one target by the rules of Scaler.Decide. If it is Unknown for lack of a sample, it warns of the readings that have
// other names (scaling.Unmatched).
func (s *Single) Decide(now time.Time, obs scaling.Observation) scaling.Decision {
	s.analyze(&s.analysis, &obs)
	s.variant[0] = Variant{Name: s.config.KV, Min: s.config.Bounds.Min, Max: s.config.Bounds.Max, Current: obs.SpecReplicas}
	s.decide(now, s.variant[:])
	d := &s.plan.Targets[0].Decision
	warnUnmatched(d, obs.Readings, s.config.KV, s.config.Queue)
	return *d
}

// analyze makes an analysis of two averages.
func (s *Single) analyze(a *Analysis, obs *scaling.Observation) {
	scaler := &s.scaler
	t := &scaler.config.Thresholds
	*a = Analysis{Variants: a.Variants[:0]}
	kv, queue := obs.Reading(s.config.KV), obs.Reading(s.config.Queue)
	n := int(max(obs.ReadyReplicas, 0))
	a.Replicas = n
	if n > 0 {
		a.Variants = append(a.Variants, VariantAnalysis{Variant: s.config.KV, Replicas: n})
	}
	if n == 0 || !kv.Known() && !queue.Known() {
		a.Missing = n
		return
	}
	a.Lost = Peak{Pod: s.config.KV}
	if kv.Known() {
		a.Lost.Pod = s.config.Queue
	}
	lower := func(r scaling.Reading) float64 {
		if !r.Known() {
			return 0
		}
		return r.Lower
	}
	kvLow, queueLow := lower(kv), lower(queue)
	kv.Upper, queue.Upper = upper(&kv), upper(&queue)
	a.PeakKV = Peak{Pod: s.config.KV, Load: kvLow}
	a.PeakQueue = Peak{Pod: s.config.Queue, Load: queueLow}
	a.LoadKV, a.LoadQueue = kvLow*float64(n), queueLow*float64(n)
	if kvLow >= scaler.fullKV || queueLow >= scaler.fullQueue {
		a.Saturated = n
	} else {
		a.Free = n
		a.SpareKV, a.SpareQueue = t.KVCache-kvLow, t.QueueLength-queueLow
	}
	literal := scaler.config.Mode == Literal
	exceeds := scaling.Exceeds
	if literal {
		exceeds = func(a, b float64) bool { return a > b }
	}
	a.ShortKV, a.ShortQueue = exceeds(t.KVSpare, a.SpareKV), exceeds(t.QueueSpare, a.SpareQueue)
	a.ScaleUp = a.ShortKV || a.ShortQueue
	if !kv.Known() || !queue.Known() {
		a.Missing = 1 // whatever else is known, no replica can be removed
	}
	if a.Free < 2 || kv.Upper >= scaler.fullKV || queue.Upper >= scaler.fullQueue {
		if a.Free >= 2 {
			a.AfterKV, a.AfterQueue = kv.Upper, queue.Upper
		}
		return
	}
	grow := float64(n) / float64(n-1)
	a.AfterKV, a.AfterQueue = kv.Upper*grow, queue.Upper*grow
	a.DownSafe = a.Missing == 0 && !exceeds(a.AfterKV, t.KVCache-t.KVSpare) && !exceeds(a.AfterQueue, t.QueueLength-t.QueueSpare) &&
		(literal || a.AfterKV < scaler.fullKV && a.AfterQueue < scaler.fullQueue)
}

// upper returns the upper end of an average over the pods that serve or may serve soon. That of a reading counts stuck pods as idle, but
// they take no load: the others carry it.
func upper(r *scaling.Reading) float64 {
	if r.Stuck <= 0 || r.Stuck > r.NotReady || !r.Known() {
		return r.Upper
	}
	serve := float64(r.Values) + float64(r.NotReady-r.Stuck) + float64(max(0, r.Failed))
	return r.Upper * (1 + float64(r.Stuck)/serve)
}
