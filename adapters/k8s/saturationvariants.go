package k8s

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// SaturationVariants is the VariantPolicy of a saturation.Group.
type SaturationVariants struct {
	*saturation.Group

	config SaturationConfig
	obs    scaling.GroupObservation
}

// SaturationConfig says how a model's variants are decided on.
type SaturationConfig struct {
	// GroupConfig is that of the algorithm; its thresholds hold until Thresholds gives others.
	saturation.GroupConfig

	// Thresholds, if set, gives the thresholds of the model, new ones as they come.
	Thresholds *Thresholds
	ModelID    string
	Namespace  string
}

// NewSaturationVariants returns the VariantPolicy of a configuration, or every rule that it breaks.
func NewSaturationVariants(c SaturationConfig) (*SaturationVariants, error) {
	var e scaling.FieldErrors
	group, err := saturation.NewGroup(c.GroupConfig)
	e.Add(err)
	e.Check(c.Thresholds == nil || c.ModelID != "", "modelID", c.ModelID, "must not be empty if thresholds is set")
	if err := e.Err(); err != nil {
		return nil, err
	}
	return &SaturationVariants{Group: group, config: c}, nil
}

// Decide puts new thresholds in force and asks the Group.
func (p *SaturationVariants) Decide(now time.Time, views []VariantView, readings []scaling.Reading) VariantDecision {
	var configErr error
	if p.config.Thresholds != nil {
		t, err := p.config.Thresholds.Resolve(p.config.ModelID, p.config.Namespace)
		if configErr = p.Retune(t); configErr == nil {
			configErr = err
		}
	}
	observeGroup(&p.obs, views, readings)
	d := p.Group.Decide(now, p.obs)
	return VariantDecision{Total: d.Total, Targets: d.Targets, ConfigErr: configErr}
}

// observeGroup makes of views what a scaling.Group decides on. A pod that is not ready is not there to be asked.
func observeGroup(obs *scaling.GroupObservation, views []VariantView, readings []scaling.Reading) {
	obs.Readings, obs.Targets = readings, obs.Targets[:0]
	for i := range views {
		v := &views[i]
		t := scaling.TargetObservation{
			Name: v.Name, Missing: !v.Found,
			SpecReplicas: v.Scale.Replicas, ReadyReplicas: v.Fleet.Ready, PendingReplicas: v.Fleet.NotReady,
		}
		for n := range v.Fleet.Pods {
			pod := &v.Fleet.Pods[n]
			if pod.State != 0 {
				continue
			}
			values := make([]float64, len(pod.Values))
			for k := range values {
				values[k] = math.NaN()
				if pod.Values[k].OK {
					values[k] = pod.Values[k].Value
				}
			}
			t.Pods = append(t.Pods, scaling.PodObservation{Name: pod.Name, Values: values})
		}
		obs.Targets = append(obs.Targets, t)
	}
}
