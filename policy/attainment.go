package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// An Attainment says by what the counts of shadows are judged: what requests are to meet, and how fast a replica is. What
// each would have attained is then simulated from the live load, whatever its algorithm.
type Attainment struct {
	// SLO is what requests must meet. Its goal is ignored.
	SLO CapacitySLO `json:"slo"`
	// Server is the speed of a replica: the contents of the file that simulate writes with -write-server or -calibrate.
	Server ServerDocument `json:"server"`
	// Source is the engine of the pods, and where they serve metrics. If unset it is vLLM at its default port.
	// +optional
	// +kubebuilder:default={}
	Source CapacitySource `json:"source,omitempty"`
}

// A ServerDocument is a server as package calibrate writes it into a file, in JSON. What is wrong with it is wrong with the
// attainment alone, so that any JSON can be decoded.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:pruning:PreserveUnknownFields
type ServerDocument []byte //nolint:recvcheck // only decoding needs a pointer

// MarshalJSON writes the document unchanged.
func (d ServerDocument) MarshalJSON() ([]byte, error) {
	if len(d) == 0 {
		return []byte("null"), nil
	}
	return bytes.Clone(d), nil
}

// UnmarshalJSON keeps the document unchanged.
func (d *ServerDocument) UnmarshalJSON(data []byte) error {
	*d = bytes.Clone(data)
	return nil
}

// read takes the document from a node. A node that JSON cannot represent is an error.
func (d *ServerDocument) read(n *yaml.Node) error {
	var is any
	if err := n.Decode(&is); err != nil {
		return err
	}
	data, err := json.Marshal(is)
	if err == nil {
		*d = data
	}
	return err
}

// node returns the document as a YAML node, the inverse of read.
func (d *ServerDocument) node() *yaml.Node {
	var n yaml.Node
	if err := yaml.Unmarshal(*d, &n); err != nil || len(n.Content) == 0 {
		return scalar("null", 0)
	}
	return n.Content[0]
}

// An AttainmentPlan is the configuration of the replays that judge the replica counts of shadows.
//
// +kubebuilder:object:generate=false
type AttainmentPlan struct {
	// Capacity is the configuration of a replay. Its cold start is the median of the server's document, or the default if the
	// document has none.
	Capacity capacity.Config
	// Startup is how long a replica takes to become ready; nil means unknown.
	Startup *calibrate.Startup
	// Reads are the metrics that the replay needs, each name once.
	Reads []Metric
	// Warnings name what the server's document does not know beyond the loads that were measured.
	Warnings []*scaling.FieldError
}

// ReadAttainment reads an attainment that is a document of its own. Errors name its fields under path. Reading is strict: an
// unknown field, or one of another type, is an error.
func ReadAttainment(data []byte, path string) (*Attainment, error) {
	a := new(Attainment)
	if err := readPart(data, a, path); err != nil {
		return nil, err
	}
	return a, nil
}

// Attained returns the plan for the spec's attainment, or an error with every wrong field, as Plan does. It returns nil if
// the spec has no attainment. If the spec's own scaler or a shadow reads a metric of the same name, it must read it from the
// same source.
func (s *Spec) Attained(at string, shadows []ShadowPlan, otherwise scaling.Bounds) (*AttainmentPlan, error) {
	if s.Attainment == nil {
		return nil, nil //nolint:nilnil // there is nothing to carry out
	}
	a, field := s.Attainment, prefix(at)+"attainment"
	b := newBuilder(prefix(at), s.Interval())
	where := place{at: field + ".", bounds: prefix(at), within: otherwise}
	if s.MaxReplicas != 0 { // that it is given beside minReplicas, Plan checks
		where.given(s.MinReplicas, s.MaxReplicas)
	}
	server, document := b.calibrated(a.Server, field+".server")
	c := b.worked(a.SLO, &a.Source, server, where, field+".")
	plan := &AttainmentPlan{Capacity: c, Startup: document.Startup, Reads: b.metrics}
	if document.Startup != nil {
		plan.Capacity.ColdStart = document.Startup.P50
	}
	if len(shadows) == 0 {
		plan.Warnings = append(plan.Warnings, &scaling.FieldError{Field: field, Value: "given", Rule: "says nothing without shadow: it is their counts that are judged"})
	}
	for _, unknown := range document.Unknown() {
		name, why, _ := strings.Cut(unknown, ": ")
		plan.Warnings = append(plan.Warnings, &scaling.FieldError{Field: field + ".server." + name, Value: "unknown", Rule: "is not known beyond the loads that were seen: " + why})
	}
	if !b.errs.any { // Plan checks the bounds and the interval
		sound := plan.Capacity
		sound.Bounds = scaling.Bounds{Min: 1, Max: 1}
		b.add(sound.Validate(), []rename{{"scrape", prefix(at) + "intervalSeconds"}, {"control", prefix(at) + "intervalSeconds"}, {"", field + "."}})
	}
	alone := *s
	alone.Shadow = nil
	own, _ := alone.PlanWith(at, otherwise, nil)
	taken := own.Metrics
	for i := range shadows {
		taken = append(taken, shadows[i].Reads...)
	}
	for _, m := range plan.Reads {
		k := slices.IndexFunc(taken, func(old Metric) bool { return old.Name == m.Name })
		if k >= 0 && !same(taken[k].Source, m.Source) {
			b.errs.Check(false, m.Field, string(m.Source.Engine), "must be read as "+taken[k].Field+" reads it")
			break // all metrics of an attainment have the same source
		}
	}
	if err := b.errs.Err(); err != nil {
		return nil, err
	}
	return plan, nil
}

// calibrated returns the server of a document. If the document is wrong it returns a substitute, so that the other fields can
// still be checked.
func (b *builder) calibrated(text ServerDocument, field string) (sim.Server, calibrate.Document) {
	wrong := func(err error) {
		for _, e := range fieldErrors(err) {
			b.errs.Check(false, strings.TrimSuffix(field+"."+e.Field, "."), e.Value, e.Rule)
		}
	}
	if len(text) == 0 || string(text) == "null" {
		b.errs.Check(false, field, nil, fmt.Sprintf("must be given, as simulate writes it with -write-server: %s", calibrate.Format))
		return sim.Qwen32B(), calibrate.Document{}
	}
	d, err := calibrate.Read(text, "server")
	if err != nil {
		wrong(err)
		return sim.Qwen32B(), calibrate.Document{}
	}
	server, err := d.Server()
	if err != nil {
		var e scaling.FieldErrors
		for _, one := range fieldErrors(err) {
			e.Add(&scaling.FieldError{Field: strings.TrimPrefix(one.Field, "server."), Value: one.Value, Rule: one.Rule})
		}
		wrong(errors.Join(e.Err()))
		server = sim.Qwen32B()
	}
	return server, d
}
