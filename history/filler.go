package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Filler makes a dump of answers, which may come in parts and in any order. Of the labels of a series it keeps the name of
// the pod and those that distinguish parts of a number. A pod that is only known by its address gets a number instead.
type Filler struct {
	dump      Dump
	podLabel  string
	at        map[string]int // series by all their labels
	addresses map[string]string
	spaces    map[string]bool
	values    int
}

// NewFiller returns a filler for a time range. The start is rounded down to a multiple of [Options.Longest] since 1970, the end
// up to one of the step. So the times of all queries are multiples of their steps: VictoriaMetrics and Thanos round the start
// of a query to such a multiple.
func NewFiller(e Engine, o Options, start, end time.Time) (*Filler, error) {
	if err := o.Validate(e); err != nil {
		return nil, err
	}
	step := o.step()
	seconds, longest := int64(step/time.Second), int64(o.Longest()/time.Second)
	from, to := start.Unix()/longest*longest, (end.Unix()+seconds-1)/seconds*seconds
	f := &Filler{podLabel: cmp.Or(o.PodLabel, "pod"), at: map[string]int{}, addresses: map[string]string{}, spaces: map[string]bool{}}
	f.dump = Dump{
		Version: Version, Model: o.Model, Engine: e, Namespace: o.Namespace, Workload: o.Workload,
		Start: time.Unix(from, 0).UTC(), End: time.Unix(to, 0).UTC(), Step: Seconds(step),
	}
	return f, f.dump.validateHead()
}

// Span returns the times of the first and the last value to query.
func (f *Filler) Span() (start, end time.Time) { return f.dump.Start, f.dump.End }

// Add adds n points of one series to the dump. labels are those of the answer, with the metric's name as __name__ and one
// that names the pod. point returns the time of a point, in milliseconds since 1970, which must be a step of the query, and
// its value. Values that are not finite are left out.
func (f *Filler) Add(q *Query, labels map[string]string, n int, point func(i int) (ms int64, value float64)) error {
	s, err := f.series(q, labels)
	if err != nil {
		return err
	}
	step := time.Duration(f.dump.Step).Milliseconds()
	for i := range n {
		ms, x := point(i)
		since := ms - f.dump.Start.UnixMilli()
		place := since / step
		if since%step != 0 || place < 0 || place >= int64(f.dump.Steps()) || place%int64(q.Every) != 0 {
			return &scaling.FieldError{Field: s.Family, Value: time.UnixMilli(ms).UTC(), Rule: "must be at one of the times that were asked for"}
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if len(s.Values) == 0 {
			s.From = int(place)
		}
		k := (int(place) - s.From) / q.Every
		if k < 0 { // earlier than all before: double the room, so that later insertions at the front move nothing
			more := min(max(-k, len(s.Values)), s.From/q.Every)
			s.Values = slices.Insert(s.Values, 0, slices.Repeat(Values{math.NaN()}, more)...)
			s.From -= more * q.Every
			f.values += more
			k += more
		}
		for k >= len(s.Values) {
			s.Values = append(s.Values, math.NaN())
			f.values++
		}
		s.Values[k] = x
	}
	if f.values > MaxValues {
		return &scaling.FieldError{Field: "values", Value: f.values, Rule: fmt.Sprintf("must be at most %d over all series: ask for a shorter range or a longer step", MaxValues)}
	}
	return nil
}

// trim removes the part before the first value.
func (s *Series) trim() {
	unused := slices.IndexFunc(s.Values, func(x float64) bool { return !math.IsNaN(x) })
	if unused > 0 {
		s.From, s.Values = s.From+unused*max(s.Every, 1), s.Values[unused:]
	}
}

// series finds the series with these labels, or creates it.
func (f *Filler) series(q *Query, labels map[string]string) (*Series, error) {
	var key strings.Builder
	fmt.Fprintf(&key, "%s\x00%s\x00%t", q.Signal, q.Part, q.Router)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&key, "\x00%s\x00%s", name, labels[name])
	}
	if i, ok := f.at[key.String()]; ok {
		return &f.dump.Series[i], nil
	}
	if len(f.dump.Series) == MaxSeries {
		return nil, &scaling.FieldError{Field: "series", Value: "more", Rule: fmt.Sprintf("must be at most %d", MaxSeries)}
	}
	if labels["__name__"] == "" {
		return nil, &scaling.FieldError{Field: "labels.__name__", Value: "", Rule: "must be the name of the metric, as it was answered"}
	}
	s := Series{Signal: q.Signal, Part: q.Part, Router: q.Router, Family: labels["__name__"]}
	if q.Every > 1 {
		s.Every = q.Every
	}
	if !q.Signal.fleetwide() {
		s.Pod = f.pod(q, labels)
		if s.Pod == "" {
			return nil, &scaling.FieldError{Field: s.Family, Value: "", Rule: fmt.Sprintf("must have a label %s or instance, which names the pod", f.podLabel)}
		}
	}
	if space := cmp.Or(labels["exported_namespace"], labels["namespace"]); space != "" && !q.Router && q.Signal != CacheBlocks {
		f.spaces[space] = true
	}
	for _, name := range q.Labels {
		if value := labels[name]; value != "" {
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels[name] = value
		}
	}
	f.at[key.String()] = len(f.dump.Series)
	f.dump.Series = append(f.dump.Series, s)
	return &f.dump.Series[len(f.dump.Series)-1], nil
}

// pod returns the name of a series' pod. An exporter of metrics of other pods has its own name in the label pod and theirs
// in exported_pod, unless Prometheus honours labels.
func (f *Filler) pod(q *Query, labels map[string]string) string {
	if q.Signal.kubernetes() {
		return cmp.Or(labels["exported_pod"], labels["pod"])
	}
	if name := labels[f.podLabel]; name != "" {
		return name
	}
	address := labels["instance"]
	if address == "" {
		return ""
	}
	if f.addresses[address] == "" {
		f.addresses[address] = fmt.Sprintf("replica-%d", len(f.addresses)+1)
	}
	return f.addresses[address]
}

// Pods returns the known names of the pods that serve requests: a number in place of a name says nothing of a workload.
func (f *Filler) Pods() []string {
	names, numbers := map[string]bool{}, map[string]bool{}
	for _, number := range f.addresses {
		numbers[number] = true
	}
	for i := range f.dump.Series {
		if s := &f.dump.Series[i]; !s.Router && !s.Signal.kubernetes() && s.Signal != CacheBlocks && !numbers[s.Pod] {
			names[s.Pod] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Namespaces returns the namespaces in which there are pods.
func (f *Filler) Namespaces() []string { return slices.Sorted(maps.Keys(f.spaces)) }

// Workload sets the workload of the pods, when [WorkloadOf] has found it.
func (f *Filler) Workload(name string) { f.dump.Workload = name }

// Dump returns what was added, in an order that does not depend on the order of the additions. Pods of the same name in
// several namespaces would be mixed up, so several namespaces are refused.
func (f *Filler) Dump() (*Dump, error) {
	if spaces := f.Namespaces(); len(spaces) > 1 {
		return nil, &scaling.FieldError{Field: "namespace", Value: strings.Join(spaces, ", "), Rule: "must be one: say which"}
	}
	d := f.dump
	if spaces := f.Namespaces(); len(spaces) == 1 {
		d.Namespace = spaces[0]
	}
	d.Series = make([]Series, 0, len(f.at))
	for _, key := range slices.Sorted(maps.Keys(f.at)) {
		s := f.dump.Series[f.at[key]]
		s.trim()
		d.Series = append(d.Series, s)
	}
	return &d, d.Validate()
}
