package controller

import (
	"log/slog"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scrape"
)

// An Env is what models are run with. Scales, Pods, ConfigMaps, Store and Namespace must be set.
type Env struct {
	// Scales reads and writes the targets.
	Scales k8s.ScaleClient
	// Pods knows the pods of the models' namespaces.
	Pods *PodCache
	// ConfigMaps lists those of Namespace, from an informer: thresholds are read from there.
	ConfigMaps corelisters.ConfigMapLister
	// Store keeps the states of all models.
	Store k8s.Store
	// Namespace is that of the controller: of configuration, thresholds and states.
	Namespace string

	// DryRun lets no model write replicas, whatever it says.
	DryRun bool
	// Budget bounds the memory that pods' pages take, of all models together; nil means one of 64 MiB for each model.
	Budget *scrape.Budget
	// Tunings carries out those of totals that find their capacity; nil means that each has them to itself.
	Tunings *capacity.Shared
	// AllowLocal lets pods have addresses of this machine, as they have in tests.
	AllowLocal bool

	// Recorder, Metrics and Logger tell of the rounds; each may be nil.
	Recorder record.EventRecorder
	Metrics  *k8s.Metrics
	Logger   *slog.Logger

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (e *Env) logger() *slog.Logger {
	if e.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return e.Logger
}
