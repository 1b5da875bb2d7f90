package k8s

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// SaturationVariants is the VariantPolicy of a saturation.Model.
type SaturationVariants struct {
	config   SaturationConfig
	model    *saturation.Model
	replicas []saturation.Replica
	variants []saturation.Variant
}

// SaturationConfig says how a model's variants are decided on.
type SaturationConfig struct {
	// Config is that of the algorithm; its thresholds hold until Thresholds gives others.
	Config saturation.Config
	// Variants have name, cost, capacity and bounds, in any order; the rest comes from the targets.
	Variants []saturation.Variant
	// KV and Queue name the readings of KV cache usage and of waiting requests. Empty means saturation.DefaultKV and
	// saturation.DefaultQueue.
	KV    string
	Queue string

	// Thresholds, if set, gives the thresholds of the model, new ones as they come.
	Thresholds *Thresholds
	ModelID    string
	Namespace  string
}

// NewSaturationVariants returns the VariantPolicy of a configuration, or every rule that it breaks.
func NewSaturationVariants(c SaturationConfig) (*SaturationVariants, error) {
	if c.KV == "" {
		c.KV = saturation.DefaultKV
	}
	if c.Queue == "" {
		c.Queue = saturation.DefaultQueue
	}
	c.Variants = slices.Clone(c.Variants)
	var e scaling.FieldErrors
	scaler, err := saturation.New(c.Config)
	e.Add(err)
	e.Check(len(c.Variants) > 0, "variants", len(c.Variants), "must not be empty")
	names := make(map[string]bool)
	for i, v := range c.Variants {
		e.Check(!names[v.Name], fmt.Sprintf("variants[%d].name", i), v.Name, "must be unique")
		names[v.Name] = true
		if err := v.Validate(); err != nil {
			e.Add(fmt.Errorf("variants[%d]: %w", i, err))
		}
	}
	e.Check(c.Thresholds == nil || c.ModelID != "", "modelID", c.ModelID, "must not be empty if thresholds is set")
	if err := e.Err(); err != nil {
		return nil, err
	}
	return &SaturationVariants{config: c, model: saturation.NewModel(scaler)}, nil
}

// Decide gives every replica that can be asked a row, with NaN for what it did not say, and every variant that exists
// its counts: what was asked for, and how many of them exist and are not ready. A variant without a target is left out.
func (p *SaturationVariants) Decide(now time.Time, views []VariantView, readings []scaling.Reading) VariantDecision {
	configErr := p.retune()
	p.replicas, p.variants = p.replicas[:0], p.variants[:0]
	kv, queue := indexOf(readings, p.config.KV), indexOf(readings, p.config.Queue)
	for i := range views {
		v := &views[i]
		if !v.Found {
			continue
		}
		variant := saturation.Variant{Name: v.Name} // one that is not configured is refused by the algorithm
		if n := slices.IndexFunc(p.config.Variants, func(c saturation.Variant) bool { return c.Name == v.Name }); n >= 0 {
			variant = p.config.Variants[n]
		}
		variant.Current = v.Scale.Replicas
		variant.Desired = saturation.Count{} // a target that was not written is not on its way
		variant.Pending = min(v.Fleet.NotReady, v.Scale.Replicas)
		p.variants = append(p.variants, variant)
		for n := range v.Fleet.Pods {
			pod := &v.Fleet.Pods[n]
			if pod.State != 0 {
				continue // not ready: not there to be asked
			}
			row := saturation.Replica{Pod: pod.Name, Variant: v.Name, KV: math.NaN(), Queue: math.NaN()}
			if kv >= 0 && kv < len(pod.Values) && pod.Values[kv].OK {
				row.KV = pod.Values[kv].Value
			}
			if queue >= 0 && queue < len(pod.Values) && pod.Values[queue].OK {
				row.Queue = pod.Values[queue].Value
			}
			p.replicas = append(p.replicas, row)
		}
	}
	plan := p.model.Decide(now, p.replicas, p.variants)
	d := VariantDecision{Total: plan.Model(), Targets: make([]scaling.Decision, len(views)), ConfigErr: configErr}
	for i := range views {
		if t := plan.Target(views[i].Name); t != nil && views[i].Found {
			d.Targets[i] = t.Decision
		}
	}
	return d
}

// retune takes new thresholds over, with the state as it is: the algorithm begins anew what depends on them.
func (p *SaturationVariants) retune() error {
	if p.config.Thresholds == nil {
		return nil
	}
	t, err := p.config.Thresholds.Resolve(p.config.ModelID, p.config.Namespace)
	if t == p.config.Config.Thresholds {
		return err
	}
	config := p.config.Config
	config.Thresholds = t
	scaler, bad := saturation.New(config)
	if bad != nil {
		return bad
	}
	state, bad := p.model.MarshalJSON()
	if bad != nil {
		return bad
	}
	model := saturation.NewModel(scaler)
	if bad := model.UnmarshalJSON(state); bad != nil {
		return bad
	}
	p.model, p.config.Config = model, config
	return err
}

func indexOf(readings []scaling.Reading, metric string) int {
	return slices.IndexFunc(readings, func(r scaling.Reading) bool { return r.Metric == metric })
}

// Applied tells the model of every variant whose count changed.
func (p *SaturationVariants) Applied(now time.Time, from, to []int32) {
	for i := range from {
		if from[i] != to[i] {
			p.model.Applied(now, from[i], to[i])
		}
	}
}

// MarshalJSON returns the model's state.
func (p *SaturationVariants) MarshalJSON() ([]byte, error) { return p.model.MarshalJSON() }

// UnmarshalJSON takes back what MarshalJSON returned.
func (p *SaturationVariants) UnmarshalJSON(data []byte) error { return p.model.UnmarshalJSON(data) }
