package scrape

import (
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/inferscale/inferscale/internal/exact"
)

// chosen is a series that is read.
type chosen struct {
	metric *dto.Metric
	key    string // its labels
	group  string // its labels of GroupBy
}

func (s *seriesPlan) find(families map[string]*dto.MetricFamily) *dto.MetricFamily {
	for _, name := range s.Families {
		if f := families[name]; len(f.GetMetric()) > 0 {
			return f
		}
	}
	return nil
}

func (s *seriesPlan) checkType(f *dto.MetricFamily) *Error {
	typ := f.GetType()
	name, is := f.GetName(), strings.ToLower(typ.String())
	ok, hint := false, "Value"
	switch typ {
	case dto.MetricType_GAUGE:
		ok = s.Read == Value
	case dto.MetricType_COUNTER:
		ok, hint = s.Read == Rate, "Rate"
	case dto.MetricType_HISTOGRAM:
		ok, hint = s.Read.distribution(), "Mean or Quantile"
	case dto.MetricType_SUMMARY:
		ok, hint = s.Read == Mean, "Mean"
	case dto.MetricType_UNTYPED:
		ok, hint = !s.Read.distribution(), "Value or Rate"
	default:
		return failf(Type, "%s is a %s, which cannot be read", name, is)
	}
	if !ok {
		return failf(Type, "%s is a %s: read it as %s, not %v", name, is, hint, s.Read)
	}
	return nil
}

// choose returns the series that match, one of each label set, after Prefer.
func (s *seriesPlan) choose(f *dto.MetricFamily) ([]chosen, *Error) {
	list := make([]chosen, 0, len(f.GetMetric()))
	for _, m := range f.GetMetric() {
		if !s.matches(m) {
			continue
		}
		c := chosen{metric: m, key: labelsKey(m)}
		c.group = c.key
		if len(s.GroupBy) > 0 {
			c.group = groupKey(m, s.GroupBy)
		}
		list = append(list, c)
	}
	if len(list) > 1 {
		seen := make(map[string]struct{}, len(list))
		for _, c := range list {
			if _, twice := seen[c.key]; twice {
				return nil, failf(Duplicate, "%s%s is on the page twice", f.GetName(), describe(c.metric))
			}
			seen[c.key] = struct{}{}
		}
	}
	if s.Prefer.Label == "" {
		return list, nil
	}
	preferred := make(map[string]bool)
	for _, c := range list {
		preferred[c.group] = preferred[c.group] || s.Prefer.matches(c.metric)
	}
	return slices.DeleteFunc(list, func(c chosen) bool { return preferred[c.group] && !s.Prefer.matches(c.metric) }), nil
}

func (s *seriesPlan) matches(m *dto.Metric) bool {
	for _, want := range s.Match {
		if !want.matches(m) {
			return false
		}
	}
	return true
}

func (m Matcher) matches(metric *dto.Metric) bool {
	return (label(metric, m.Label) == m.Value) != m.Not
}

// group reads every series and makes one number of each group.
func (s *seriesPlan) group(list []chosen, read func(chosen) (float64, *Error)) ([]group, *Error) {
	index := make(map[string]int, len(list))
	groups := make([]group, 0, len(list))
	for _, c := range list {
		v, fail := read(c)
		if fail != nil {
			return nil, fail
		}
		i, ok := index[c.group]
		if !ok {
			i = len(groups)
			index[c.group] = i
			groups = append(groups, group{key: c.group})
		}
		groups[i].values = append(groups[i].values, v)
	}
	for i := range groups {
		var ok bool
		if groups[i].value, ok = s.Within.of(groups[i].values); !ok {
			return nil, ambiguous(list)
		}
	}
	return groups, nil
}

// of applies the aggregate to at least one value. It is false for Only with several.
func (a Aggregate) of(values []float64) (float64, bool) {
	switch a {
	case Max:
		return slices.Max(values), true
	case Min:
		return slices.Min(values), true
	case Sum, Average:
		var s exact.Sum
		for _, v := range values {
			s.Add(v)
		}
		if a == Average {
			return s.Value() / float64(len(values)), true
		}
		return s.Value(), true
	default:
		return values[0], len(values) == 1
	}
}

func ambiguous(list []chosen) *Error {
	const shown = 3
	sets := make([]string, 0, shown+1)
	for i, c := range list {
		if i == shown {
			sets = append(sets, "...")
			break
		}
		sets = append(sets, describe(c.metric))
	}
	return failf(Ambiguous, "ambiguous: %d series: %s", len(list), strings.Join(sets, " "))
}

func describe(m *dto.Metric) string {
	pairs := make([]string, 0, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		pairs = append(pairs, fmt.Sprintf("%.40s=%.40q", l.GetName(), l.GetValue()))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// separator is in no label: expfmt admits UTF-8 only.
const separator = "\xff"

// labelsKey identifies a series within its family. Labels may come in any order, and an empty one is like none.
func labelsKey(m *dto.Metric) string {
	slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	var b strings.Builder
	for _, l := range m.GetLabel() {
		if l.GetValue() != "" {
			b.WriteString(l.GetName())
			b.WriteString(separator)
			b.WriteString(l.GetValue())
			b.WriteString(separator)
		}
	}
	return b.String()
}

func groupKey(m *dto.Metric, by []string) string {
	var b strings.Builder
	for _, name := range by {
		b.WriteString(label(m, name))
		b.WriteString(separator)
	}
	return b.String()
}
