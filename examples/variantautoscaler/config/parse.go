package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// Limits of a configuration.
const (
	minInterval = time.Second
	maxInterval = time.Hour
)

// Parse reads a configuration. The error joins all that is wrong with it, in the order of the lines.
func Parse(data []byte) (*File, error) {
	r := &reader{failed: make(map[string]bool)}
	root := r.document(data)
	if root == nil {
		return nil, r.err()
	}
	file := &File{}
	f, _ := r.mapping(root, "", []string{"models"}, "models")
	names, targets := make(map[string]string), make(map[k8s.Target]string)
	for i, n := range r.list(f, "models") {
		path := index("models", i)
		m := r.model(n, path)
		if first, taken := names[m.String()]; taken && m.Name != "" {
			r.report(n.Line, path+".name", m.Name, "must be unique in its namespace: "+first+" has it")
		} else {
			names[m.String()] = path
		}
		for v := range m.Variants {
			t, at := m.Variants[v].Target, index(path+".variants", v)
			if first, taken := targets[t]; taken && t.Name != "" {
				r.report(lineIn(n, v), at+".target", t.String(), "must be unique: "+first+" has it")
			} else {
				targets[t] = at
			}
		}
		file.Models = append(file.Models, m)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return file, nil
}

// lineIn returns the line of a model's variant.
func lineIn(model *yaml.Node, i int) int { return child(model, "variants").Content[i].Line }

// model reads a model.
func (r *reader) model(n *yaml.Node, path string) Model {
	var m Model
	f, ok := r.mapping(n, path,
		[]string{"name", "namespace", "algorithm", "interval", "dryRun", "variants", AlgorithmSaturation, AlgorithmHetero},
		"name", "namespace", "algorithm", "variants")
	if !ok {
		return m
	}
	m.Name, m.Namespace = r.text(f, "name"), r.text(f, "namespace")
	for _, rule := range validation.IsDNS1123Label(m.Namespace) {
		r.check(m.Namespace == "", f.given["namespace"], f.at("namespace"), "must be the name of a namespace: "+rule)
	}
	m.Interval = r.duration(f, "interval", DefaultInterval)
	r.check(m.Interval >= minInterval && m.Interval <= maxInterval, f.given["interval"], f.at("interval"), "must be between 1s and 1h")
	m.DryRun = r.flag(f, "dryRun")
	algorithm := r.text(f, "algorithm")
	known := algorithm == AlgorithmSaturation || algorithm == AlgorithmHetero
	r.check(known, f.given["algorithm"], f.at("algorithm"), "must be saturation or hetero")
	r.variants(f, &m, algorithm)
	for _, name := range []string{AlgorithmSaturation, AlgorithmHetero} {
		r.check(!known || name == algorithm, f.given[name], f.at(name), "must be given only with algorithm "+name)
	}
	switch algorithm {
	case AlgorithmSaturation:
		m.Saturation = r.saturation(f)
	case AlgorithmHetero:
		m.Hetero = r.hetero(f, m.Interval)
		r.fleet(f, &m)
	}
	return m
}

// variants reads the variants of a model.
func (r *reader) variants(f fields, m *Model, algorithm string) {
	const name = "variants"
	list := r.list(f, name)
	r.check(len(list) > 0 || r.failed[f.at(name)], f.given[name], f.at(name), "must be at least one")
	names := make(map[string]int)
	for i, n := range list {
		path := index(f.at(name), i)
		v, port := r.variant(n, path, m.Namespace, algorithm)
		if i == 0 {
			m.Port = port
		} else if port != m.Port && !r.failed[path+".port"] && !r.failed[index(f.at(name), 0)+".port"] {
			r.report(n.Line, path+".port", plain(port.String()), "must be that of the first variant, "+m.Port.String()+
				": ports of different numbers can have one name")
		}
		if first, taken := names[v.Target.Name]; taken && v.Target.Name != "" {
			r.report(n.Line, path+".target.name", v.Target.Name, "must be unique: "+index(f.at(name), first)+" has it")
		} else {
			names[v.Target.Name] = i
		}
		m.Variants = append(m.Variants, v)
	}
}

// variant reads a variant and the port of its pods.
func (r *reader) variant(n *yaml.Node, path, namespace, algorithm string) (Variant, intstr.IntOrString) {
	var v Variant
	var port intstr.IntOrString
	f, ok := r.mapping(n, path, []string{"target", "cost", "capacity", "min", "max", "port"}, "target", "cost", "min", "max")
	if !ok {
		r.failed[path+".port"] = true
		return v, port
	}
	v.Target.Namespace = namespace
	if t := f.given["target"]; t != nil {
		if g, ok := r.mapping(t, f.at("target"), []string{"apiVersion", "kind", "name"}, "apiVersion", "kind", "name"); ok {
			v.Target.APIVersion, v.Target.Kind, v.Target.Name = r.text(g, "apiVersion"), r.text(g, "kind"), r.text(g, "name")
			_, err := schema.ParseGroupVersion(v.Target.APIVersion)
			r.check(err == nil, g.given["apiVersion"], g.at("apiVersion"), `must be "version" or "group/version"`)
		}
	}
	v.Cost = r.number(f, "cost")
	r.check(v.Cost > 0 && v.Cost <= hetero.MaxCost, f.given["cost"], f.at("cost"), "must be a number above 0")
	v.Capacity = r.number(f, "capacity")
	r.check(v.Capacity > 0, f.given["capacity"], f.at("capacity"), "must be a number above 0")
	r.check(algorithm != AlgorithmHetero, f.given["capacity"], f.at("capacity"),
		"must be given only with algorithm saturation: hetero places a number of replicas")
	v.Min, v.Max = r.count(f, "min"), r.count(f, "max")
	least := max(v.Min, 1)
	r.check(v.Max >= least && v.Max <= hetero.MaxReplicas || r.failed[f.at("min")], f.given["max"], f.at("max"),
		fmt.Sprintf("must be between %d and %d", least, hetero.MaxReplicas))
	return v, r.port(f)
}

// port reads the field port.
func (r *reader) port(f fields) intstr.IntOrString {
	n := f.given["port"]
	if n == nil {
		return intstr.IntOrString{}
	}
	if n.ShortTag() == "!!int" {
		number, err := strconv.Atoi(n.Value)
		if err == nil && number >= 1 && number <= 65535 {
			return intstr.FromInt32(int32(number))
		}
	}
	if n.ShortTag() == "!!str" && len(validation.IsValidPortName(n.Value)) == 0 {
		return intstr.FromString(n.Value)
	}
	r.wrong(n, f.at("port"), "must be a number from 1 to 65535 or the name of a container's port")
	return intstr.IntOrString{}
}

// saturation reads the section of the algorithm, which may be left out.
func (r *reader) saturation(f fields) *Saturation {
	const from = "thresholdsFrom"
	s := &Saturation{}
	s.take(&policy.SaturationScaler{})
	n := f.given[AlgorithmSaturation]
	if n == nil {
		return s
	}
	path := f.at(AlgorithmSaturation)
	if n.Kind != yaml.MappingNode {
		r.wrong(n, path, "must be a mapping")
		return s
	}
	if t := child(n, from); t != nil {
		if g, ok := r.mapping(t, join(path, from), []string{"configMap"}, "configMap"); ok {
			s.ThresholdsFrom = r.text(g, "configMap")
		}
	}
	before := len(r.errs)
	p, ok := r.policy(&yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: AlgorithmSaturation, Line: n.Line}, without(n, from),
	}}, AlgorithmSaturation, path)
	if !ok {
		r.alsoKnown(r.errs[before:], path, from)
		return s
	}
	s.take(p.Scaler.Saturation)
	return s
}

// alsoKnown adds a field to those that errors about unknown ones list.
func (r *reader) alsoKnown(errs []error, path, name string) {
	for _, err := range errs {
		for _, e := range positions(err) {
			if strings.HasPrefix(e.Rule, "is not a field here") && strings.LastIndex(e.Field, ".") == len(path) {
				e.Rule += ", " + name
			}
		}
	}
}

// take takes what a scaler says.
func (s *Saturation) take(given *policy.SaturationScaler) {
	c := given.Config()
	of := policy.Policy{Spec: policy.Spec{Scaler: policy.Composite{Scaler: policy.Scaler{Saturation: given}}}}
	s.Config, s.KV, s.Queue, s.Metrics = c.Config, c.KV, c.Queue, of.Metrics()
}

// hetero reads the section of the algorithm.
func (r *reader) hetero(f fields, interval time.Duration) *Hetero {
	h := &Hetero{ExpansionRate: hetero.Kthena().ExpansionRate}
	n := f.given[AlgorithmHetero]
	if n == nil {
		r.report(f.node.Line, f.at(AlgorithmHetero), nil, "must be given")
		return h
	}
	g, ok := r.mapping(n, f.at(AlgorithmHetero), []string{"expansionRate", "exchanges", "whenReady", "total"}, "total")
	if !ok {
		return h
	}
	if rate := g.given["expansionRate"]; rate != nil {
		h.ExpansionRate = r.number(g, "expansionRate")
		r.check(h.ExpansionRate >= 0, rate, g.at("expansionRate"), "must be a number that is not negative")
	}
	if e := g.given["exchanges"]; e != nil && e.Value == "unlimited" {
		h.Options.Exchanges = hetero.Unlimited
	} else {
		h.Options.Exchanges = r.count(g, "exchanges")
	}
	h.Options.WhenReady = r.flag(g, "whenReady")
	if total := g.given["total"]; total != nil {
		h.Total, _ = r.policy(total, "", g.at("total"))
		if h.Total.IntervalSeconds == nil {
			seconds := int32(interval / time.Second)
			h.Total.IntervalSeconds = &seconds
		}
	}
	return h
}

// fleet checks what only the whole model shows.
func (r *reader) fleet(f fields, m *Model) {
	if len(r.errs) > 0 {
		return
	}
	fleet, err := m.Fleet()
	if err == nil {
		_, err = m.Hetero.Total.Build(fleet.Bounds())
	}
	if err != nil {
		var e *scaling.FieldError
		if errors.As(err, &e) {
			err = fmt.Errorf("%s: %s", e.Field, e.Rule)
		}
		r.report(f.given[AlgorithmHetero].Line, f.at(AlgorithmHetero), nil, err.Error())
	}
}
