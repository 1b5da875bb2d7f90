package build

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// Metric returns how the scraper reads a policy's metric. The metric's source must be valid, as it is in a policy.Plan. If
// the engine lacks the signal, the error is a *scaling.FieldError.
func Metric(m policy.Metric) (scrape.Metric, error) {
	s := m.Source
	read := scrape.Named(cmp.Or(s.Name, policy.DefaultMetricName))
	if s.Signal != "" {
		engine, signal := find(scrape.Engines(), string(s.Engine)), find(append(scrape.Signals(), scrape.Histograms()...), string(s.Signal))
		var err error
		if read, err = engine.Metric(signal); err == nil && s.Quantile != nil {
			q, _ := s.Quantile.Float() // package policy has checked it
			read, err = engine.Quantile(signal, q)
		}
		var missing *scrape.NoSignalError
		if errors.As(err, &missing) {
			return read, &scaling.FieldError{Field: m.Field + ".signal", Value: string(s.Signal), Rule: engine.String() + " has none"}
		}
		if err != nil {
			return read, fmt.Errorf("%s: %w", m.Field, err)
		}
	}
	if s.Aggregation != "" {
		read.Terms[0].Across = find([]scrape.Aggregate{scrape.Only, scrape.Sum, scrape.Average, scrape.Max, scrape.Min}, string(s.Aggregation))
	}
	read.Name, read.Fill = cmp.Or(m.Name, read.Name), m.Fill
	read.Endpoint.Scheme = cmp.Or(string(s.Protocol), read.Endpoint.Scheme, string(policy.HTTP))
	if s.Port != nil {
		read.Endpoint.Port = s.Port.Int()
	}
	read.Endpoint.Path = cmp.Or(s.Path, read.Endpoint.Path)
	match := make([]scrape.Matcher, 0, len(s.Labels))
	for _, label := range slices.Sorted(maps.Keys(s.Labels)) {
		match = append(match, scrape.Matcher{Label: label, Value: string(s.Labels[label])})
	}
	for _, series := range [][]scrape.Series{read.Terms, read.Over, read.Sum, read.Less} {
		for i := range series {
			series[i].Match = append(slices.Clip(series[i].Match), match...)
		}
	}
	return read, nil
}

// find returns the element of all with this name, which must exist.
func find[T fmt.Stringer](all []T, name string) T {
	i := slices.IndexFunc(all, func(v T) bool { return v.String() == name })
	return all[max(i, 0)]
}

// A rename maps the beginning of a path in a scrape.Config to a path in a spec. The first match counts.
type rename struct{ from, to string }

// scrapePaths returns the renames from each scraped metric to its source in the spec, which determines its terms and its
// endpoint.
func scrapePaths(fields []string) []rename {
	var names []rename
	for i, field := range fields {
		m := fmt.Sprintf("metrics[%d].", i)
		names = append(names,
			rename{m + "endpoint.scheme", field + ".protocol"},
			rename{m + "endpoint.", field + "."},
			rename{m + "match", field + ".labels"},
			rename{m + "families", field + ".name"},
			rename{m + "quantile", field + ".quantile"},
			rename{m, field + "."},
		)
	}
	if len(fields) > 0 {
		names = append(names, rename{"metrics", firstPath.FindString(fields[0])}) // all of them
	}
	return append(names, rename{"interval", "spec.intervalSeconds"}, rename{"", "spec.scrape."})
}

// firstPath matches the field of a spec that contains a metric, for example spec.scaler or spec.shadow.
var firstPath = regexp.MustCompile(`^spec\.[a-zA-Z]+`)

// renamed returns the error with paths of the spec. The index of a metric's term is left out, because a spec has no terms.
func renamed(err error, names []rename) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var e scaling.FieldErrors
		for _, one := range joined.Unwrap() {
			e.Add(renamed(one, names))
		}
		return e.Err()
	}
	var field *scaling.FieldError
	if !errors.As(err, &field) {
		return err
	}
	path := regexp.MustCompile(`\.(terms|sum|less)\[[0-9]+\]`).ReplaceAllString(field.Field, "")
	for _, n := range names {
		if rest, ok := strings.CutPrefix(path, n.from); ok {
			return &scaling.FieldError{Field: n.to + rest, Value: field.Value, Rule: field.Rule}
		}
	}
	return err
}
