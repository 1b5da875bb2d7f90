package scrape

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"
)

const snapshotVersion = 1

// A snapshot is what a Scraper remembers of the counters and histograms of pods, as [Scraper.Snapshot] writes it.
type snapshot struct {
	Version int                        `json:"version"`
	Pods    map[string]json.RawMessage `json:"pods"` // []stored, by Pod.identity
}

// A stored is the baseline of a series.
type stored struct {
	Of     string       `json:"of"` // identifies the Series: see seriesPlan.fingerprint
	At     int64        `json:"at"` // Unix milliseconds
	Family string       `json:"family,omitempty"`
	Start  float64      `json:"start,omitempty"`
	Seen   int64        `json:"seen,omitempty"`   // when a page first had this start, in Unix milliseconds
	Former float64      `json:"former,omitempty"` // the start before this one
	Bounds []float64    `json:"bounds,omitempty"`
	IDs    []identifier `json:"ids,omitempty"`
	Began  []float64    `json:"began,omitempty"`
	Rows   []float64    `json:"rows,omitempty"`
}

// An identifier is a number that is text in JSON, so that it is not rounded.
type identifier uint64

// MarshalText writes 16 digits.
func (h identifier) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(h)), nil }

// UnmarshalText reads them.
func (h *identifier) UnmarshalText(b []byte) error {
	if len(b) != 16 {
		return fmt.Errorf("%.20q is no identity of a series", b)
	}
	_, err := fmt.Sscanf(string(b), "%016x", (*uint64)(h))
	return err
}

// Snapshot returns what is remembered of counters and histograms, in JSON of at most limit bytes, and the number of pods
// that did not fit; the smallest pods are included first. Last values of gauges are not included. It waits for a sweep that
// is running.
//
// A Scraper that restores it continues rates, means and quantiles where this one stopped: after a change of thresholds or
// metrics, for the series that both read in the same way; in another process, if its first sweep is within twice the
// Staleness, which is four intervals by default.
func (s *Scraper) Snapshot(limit int) (data []byte, left int) {
	s.turn <- struct{}{}
	defer s.unlock()
	type entry struct {
		id   string
		data []byte
	}
	var pods []entry
	for id, m := range s.memory {
		var list []stored
		for i := range s.plan.metrics {
			if len(m.baselines) == 0 {
				break // no page was read
			}
			for k := range m.baselines[i] {
				b := &m.baselines[i][k]
				if !b.known() || b.lost {
					continue
				}
				one := stored{
					Of: s.plan.metrics[i].series[k].fingerprint(&s.plan.metrics[i]), At: b.at.UnixMilli(), Family: b.family, Start: b.start, Seen: b.seen.UnixMilli(),
					Former: b.former, Bounds: b.bounds, Began: b.began, Rows: b.rows,
				}
				for _, id := range b.ids {
					one.IDs = append(one.IDs, identifier(id))
				}
				list = append(list, one)
			}
		}
		if raw, err := json.Marshal(list); err == nil && len(list) > 0 { // all numbers are finite
			pods = append(pods, entry{id, raw})
		}
	}
	slices.SortFunc(pods, func(a, b entry) int { return cmp.Or(cmp.Compare(len(a.data), len(b.data)), cmp.Compare(a.id, b.id)) })
	fits := snapshot{Version: snapshotVersion, Pods: make(map[string]json.RawMessage, len(pods))}
	const around, perPod = 32, 4 // braces; quotes, colon and comma
	used := around
	for _, p := range pods {
		name, _ := json.Marshal(p.id) //nolint:errchkjson // a string
		if used += len(name) + len(p.data) + perPod; used > limit {
			left++
			continue
		}
		fits.Pods[p.id] = p.data
	}
	data, err := json.Marshal(fits)
	if err != nil || len(data) > limit {
		return nil, len(pods)
	}
	return data, left
}

// Restore takes what another Scraper's Snapshot returned, before the first sweep. It skips pods that this Scraper remembers
// and those for which the budget has no memory. If data is not a snapshot, or of another version, it returns an error and
// takes nothing. Implausible or old data counts as missing: NoBaseline.
func (s *Scraper) Restore(data []byte) error {
	var from snapshot
	if err := json.Unmarshal(data, &from); err != nil {
		return fmt.Errorf("no snapshot of baselines: %w", err)
	}
	if from.Version != snapshotVersion {
		return fmt.Errorf("a snapshot of version %d; this is version %d", from.Version, snapshotVersion)
	}
	pods := make(map[string][]stored, len(from.Pods))
	for id, raw := range from.Pods {
		var list []stored
		if err := json.Unmarshal(raw, &list); err != nil {
			return fmt.Errorf("no snapshot of baselines: %w", err)
		}
		pods[id] = list
	}
	s.turn <- struct{}{}
	defer s.unlock()
	for _, id := range slices.Sorted(maps.Keys(pods)) {
		if s.memory[id] != nil {
			continue
		}
		m := &memory{budget: s.config.Budget, tenant: s.config.Tenant}
		if !m.begin(s.plan) {
			continue
		}
		for i := range s.plan.metrics {
			for k := range m.baselines[i] {
				p := &s.plan.metrics[i].series[k]
				of := p.fingerprint(&s.plan.metrics[i])
				at := slices.IndexFunc(pods[id], func(x stored) bool { return x.Of == of })
				if at < 0 || !pods[id][at].plausible(p.Read, s.config.MaxSeries) {
					continue
				}
				x := &pods[id][at]
				if (p.Read == Counts || p.sum || p.less) && s.config.Now().Sub(time.UnixMilli(x.At)) > 2*s.config.Staleness {
					continue // counts are those since the first sweep
				}
				b := baseline{at: time.UnixMilli(x.At), family: x.Family, start: x.Start, former: x.Former, bounds: x.Bounds, began: x.Began, rows: x.Rows}
				if x.Seen != 0 {
					b.seen = time.UnixMilli(x.Seen)
				}
				for _, id := range x.IDs {
					b.ids = append(b.ids, uint64(id))
				}
				m.keep(&m.baselines[i][k], &b)
			}
		}
		s.memory[id] = m
	}
	return nil
}

// plausible reports whether a Scraper can have remembered the baseline.
func (x *stored) plausible(read Read, limit int) bool {
	width := 1
	switch read {
	case Mean:
		width = 2
	case Quantile, Counts:
		width = 3 + len(x.Bounds)
	case Value, Rate:
	}
	n := len(x.IDs)
	if n > limit || len(x.Bounds) >= maxBuckets || len(x.Began) != n || len(x.Rows) != n*width || (x.Family == "") != (n == 0) ||
		!read.buckets() && len(x.Bounds) > 0 || !slices.IsSorted(x.Bounds) || x.At <= 0 ||
		x.Start != 0 && x.Seen > x.At {
		return false
	}
	for _, list := range [...][]float64{{x.Start, x.Former}, x.Began, x.Rows, x.Bounds} {
		for _, v := range list {
			// JSON has no NaN and no infinities; -1 is an unknown sum or count.
			if v < 0 && (v != -1 || !read.buckets()) || math.IsNaN(v) {
				return false
			}
		}
	}
	return true
}

// fingerprint identifies what is read, and where: two series with the same fingerprint have one baseline.
func (s *seriesPlan) fingerprint(m *metricPlan) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d %q %v %q %v", m.Endpoint, s.Read, s.Families, s.Match, s.GroupBy, s.Prefer)
	return fmt.Sprintf("%016x", h.Sum64())
}
