// Package thresholds reads the thresholds of package saturation from a ConfigMap while a loop runs:
//
//	table, err := thresholds.New(thresholds.Config{Lister: lister, Namespace: "serving", Name: "saturation"})
//	settings.BeforeDecide = func() error {
//		t, err := table.Resolve("llama-70b", "serving")
//		return errors.Join(group.Retune(t), err)
//	}
package thresholds

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// A Table has the entries of a ConfigMap as policy.ReadThresholds reads them. An informer's lister keeps it up to date. It is
// not safe for concurrent use.
//
// Wrong entries never come into force. If an entry is refused, or if the ConfigMap is gone or cannot be read, a model keeps
// its last good thresholds, with an error that says so. If it had none before, it gets those of the default entry or else the
// built-in ones.
type Table struct {
	config  Config
	version string // the resource version that table was read from
	table   *policy.ThresholdTable
	good    map[string]saturation.Thresholds // last good thresholds, by model
}

// Config names the ConfigMap of a Table.
type Config struct {
	Lister    corelisters.ConfigMapLister
	Namespace string
	Name      string
	Mode      saturation.Mode // the mode of the Scaler that the thresholds are for
}

// New returns the Table of a ConfigMap, or an error with every rule that the configuration breaks. The ConfigMap need not
// exist.
func New(c Config) (*Table, error) {
	var e scaling.FieldErrors
	e.Check(c.Lister != nil, "lister", nil, "must be set")
	e.Check(c.Namespace != "", "namespace", c.Namespace, "must not be empty")
	e.Check(c.Name != "", "name", c.Name, "must not be empty")
	if err := e.Err(); err != nil {
		return nil, err
	}
	return &Table{config: c, good: make(map[string]saturation.Thresholds)}, nil
}

// Resolve returns the thresholds in force for a model in a namespace. If there is an error, report it, and use the thresholds
// nevertheless.
func (t *Table) Resolve(modelID, namespace string) (saturation.Thresholds, error) {
	model := policy.ThresholdKey(modelID, namespace)
	broken := t.refresh()
	table := t.table
	if table == nil {
		table = &policy.ThresholdTable{}
	}
	now, _, err := table.Resolve(modelID, namespace)
	if broken != nil {
		err = broken
	}
	if err == nil {
		t.good[model] = now
		return now, nil
	}
	where := "ConfigMap " + t.config.Namespace + "/" + t.config.Name
	if last, ok := t.good[model]; ok {
		return last, fmt.Errorf("%s: the last good thresholds stay in force: %w", where, err)
	}
	return now, fmt.Errorf("%s: other thresholds than configured are in force: %w", where, err)
}

// refresh parses the ConfigMap if it has changed. The table reports wrong entries. refresh returns an error if the ConfigMap
// is gone or cannot be read.
func (t *Table) refresh() error {
	m, err := t.config.Lister.ConfigMaps(t.config.Namespace).Get(t.config.Name)
	switch {
	case apierrors.IsNotFound(err) && t.table == nil:
		return nil
	case err != nil:
		return err
	case t.table != nil && t.version != "" && m.ResourceVersion == t.version:
		return nil
	}
	t.table, _ = policy.ReadThresholds(m.Data, t.config.Mode) // Resolve reports the errors in the entries that a model uses
	t.version = m.ResourceVersion
	return nil
}
