package config

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
)

// Key is the key of the ConfigMap that has the configuration, and the name of the file in errors.
const Key = "variants.yaml"

// DefaultInterval is the time between two rounds where a model says nothing.
const DefaultInterval = 15 * time.Second

// The algorithms.
const (
	AlgorithmSaturation = "saturation"
	AlgorithmHetero     = "hetero"
)

// A File is a configuration.
type File struct {
	Models []Model
}

// A Model is served by variants that are decided on together.
type Model struct {
	Name      string
	Namespace string
	Interval  time.Duration
	DryRun    bool
	Variants  []Variant
	Port      intstr.IntOrString // of the pods; the zero value is scrape.DefaultPort

	// Saturation or Hetero is set: the algorithm.
	Saturation *Saturation
	Hetero     *Hetero
}

// Algorithm returns the name of the algorithm.
func (m *Model) Algorithm() string {
	if m.Hetero != nil {
		return AlgorithmHetero
	}
	return AlgorithmSaturation
}

// String returns "namespace/name".
func (m *Model) String() string { return m.Namespace + "/" + m.Name }

// Equal reports whether two models are configured alike.
func (m *Model) Equal(other *Model) bool { return reflect.DeepEqual(m, other) }

// A Variant is one workload that serves the model. Its name is that of its target.
type Variant struct {
	Target   k8s.Target
	Cost     float64
	Capacity float64 // 0 where it is not given
	Min, Max int32
}

// Saturation says how to decide by what the replicas have to spare.
type Saturation struct {
	saturation.Config

	KV, Queue string // the metrics
	// Metrics says how they are read.
	Metrics []policy.Metric
	// ThresholdsFrom is the name of the ConfigMap with the thresholds, in the namespace of the controller; empty for
	// none.
	ThresholdsFrom string
}

// Hetero says how to place a total.
type Hetero struct {
	ExpansionRate float64
	Options       hetero.Options
	Total         policy.Policy
}

// Fleet returns the fleet that the variants of a model are.
func (m *Model) Fleet() (*hetero.Fleet, error) {
	c := hetero.Config{ExpansionRate: m.Hetero.ExpansionRate}
	for _, v := range m.Variants {
		c.Types = append(c.Types, hetero.Type{Name: v.Target.Name, Cost: v.Cost, Min: v.Min, Max: v.Max})
	}
	return hetero.New(c)
}
