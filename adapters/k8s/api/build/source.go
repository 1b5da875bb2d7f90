package build

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/scrape"
)

func itoa(i int) string { return strconv.Itoa(i) }

// source returns the metric that a source reads. Its name is the family's or the signal's.
func (b *builder) source(s v1alpha1.MetricSource, path string) scrape.Metric {
	m := b.number(s, path)
	if s.Protocol != "" {
		m.Endpoint.Scheme = string(s.Protocol)
	} else if m.Endpoint.Scheme == "" {
		m.Endpoint.Scheme = string(v1alpha1.HTTP)
	}
	if s.Port != nil {
		port := s.Port.Int()
		b.errs.Check(port >= 1 && port <= 65535, path+".port", port, "must be between 1 and 65535")
		m.Endpoint.Port = min(max(port, 1), 65535)
	}
	if s.Path != "" {
		m.Endpoint.Path = s.Path
	}
	match := make([]scrape.Matcher, 0, len(s.Labels))
	for _, label := range slices.Sorted(maps.Keys(s.Labels)) {
		match = append(match, scrape.Matcher{Label: label, Value: string(s.Labels[label])})
	}
	for _, series := range [][]scrape.Series{m.Terms, m.Over} {
		for i := range series {
			series[i].Match = append(slices.Clip(series[i].Match), match...)
		}
	}
	return m
}

// number returns what is read, at its default endpoint.
func (b *builder) number(s v1alpha1.MetricSource, path string) scrape.Metric {
	none := scrape.Metric{Name: cmp.Or(s.Name, string(s.Signal), string(s.Engine))}
	if s.Signal == "" && s.Engine == "" {
		if s.Name == "" {
			s.Name = v1alpha1.DefaultMetricName
		}
		m := scrape.Named(s.Name)
		b.errs.Check(s.Quantile == nil, path+".quantile", text(s.Quantile), "must be given only with the signals TTFT and TPOT")
		if s.Aggregation != "" {
			m.Terms[0].Across = b.aggregate(s.Aggregation, path+".aggregation")
		}
		return m
	}
	b.errs.Check(s.Name == "", path+".name", s.Name, "must not be given beside engine and signal")
	b.errs.Check(s.Aggregation == "", path+".aggregation", string(s.Aggregation), "must not be given beside engine and signal: how a signal is aggregated is known")
	engine, known := find(scrape.Engines(), string(s.Engine))
	b.errs.Check(known, path+".engine", string(s.Engine), "must be one of "+list(scrape.Engines())+", beside a signal")
	signal, named := find(scrape.Signals(), string(s.Signal))
	b.errs.Check(named, path+".signal", string(s.Signal), "must be one of "+list(scrape.Signals())+", beside an engine")
	if !known || !named {
		return none
	}
	m, err := engine.Metric(signal)
	if s.Quantile != nil {
		q := b.decimal(*s.Quantile, path+".quantile")
		latency := signal == scrape.TTFT || signal == scrape.TPOT
		b.errs.Check(latency, path+".quantile", text(s.Quantile), "must be given only with the signals TTFT and TPOT")
		b.errs.Check(q > 0 && q < 1 || b.unread[path+".quantile"], path+".quantile", text(s.Quantile), "must be above 0 and below 1")
		if !latency || !(q > 0 && q < 1) {
			return none
		}
		m, err = engine.Quantile(signal, q)
	}
	var missing *scrape.NoSignalError
	if errors.As(err, &missing) {
		b.errs.Check(false, path+".signal", string(s.Signal), engine.String()+" has none")
		return none
	}
	b.errs.Add(err)
	return m
}

func (b *builder) aggregate(a v1alpha1.Aggregation, path string) scrape.Aggregate {
	all := []scrape.Aggregate{scrape.Only, scrape.Sum, scrape.Average, scrape.Max, scrape.Min}
	found, ok := find(all, string(a))
	b.errs.Check(ok, path, string(a), "must be one of "+list(all))
	return found
}

func (b *builder) decimal(d v1alpha1.Decimal, path string) float64 {
	f, err := d.Float()
	b.unread[path] = err != nil
	b.errs.Check(err == nil, path, d.String(), `must be a number that is not negative, as 40 or "0.9"`)
	return f
}

func text(d *v1alpha1.Decimal) string {
	if d == nil {
		return ""
	}
	return d.String()
}

// same reports whether two metrics are read in the same way; what missing pods count as may differ.
func same(a, b scrape.Metric) bool {
	a.Fill, b.Fill = 0, 0
	return reflect.DeepEqual(a, b)
}

type named interface{ String() string }

func find[T named](all []T, name string) (T, bool) {
	for _, v := range all {
		if v.String() == name {
			return v, true
		}
	}
	var none T
	return none, false
}

func list[T named](all []T) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.String()
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
