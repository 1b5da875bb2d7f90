package scrape

import (
	"fmt"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// reading makes the fleet's reading of one metric, and says why if it has no value.
func (p *metricPlan) reading(i int, visits []*visit, at time.Time) (scaling.Reading, error) {
	var (
		shares                       []*share
		from                         []*visit
		notReady, reused, had, found int

		unschedulable, crashing, stuck int
	)
	for _, v := range visits {
		switch {
		case v.pod.State.waits():
			notReady++
			unschedulable += one(v.pod.State == Unschedulable)
			crashing += one(v.pod.State == Crashing)
			stuck += one(v.pod.stuck())
		case v.shares[i] != nil:
			shares, from = append(shares, v.shares[i]), append(from, v)
		}
		if e := v.result.Values[i].Err; v.pod.State == Ready && (e == nil || !e.Reason.Fetch()) {
			had++
			if e == nil || e.Reason != NotFound {
				found++
			}
		}
	}
	shares = p.compatible(i, shares, from)
	for _, v := range from {
		if v.shares[i] != nil && v.result.Values[i].Reused {
			reused++
		}
	}
	reading := scaling.Reading{
		Metric: p.Name, NotReady: count(notReady), At: at,
		Unschedulable: count(unschedulable), Crashing: count(crashing), Stuck: count(stuck),
	}
	lower, upper, fail := p.fleet(shares, len(visits)-len(shares), stuck)
	if fail != nil {
		reading.Failed = count(len(visits) - notReady)
		return reading, p.unknown(i, visits, len(shares), notReady, fail)
	}
	reading.Lower, reading.Upper = lower, upper
	reading.Values, reading.Reused = count(len(shares)), count(reused)
	reading.Failed = count(len(visits) - notReady - len(shares))
	if had > 0 && found == 0 {
		return reading, failf(NotFound, "absent from all %d pages that were had", had).of("", p.Name)
	}
	return reading, nil
}

// compatible drops the shares whose buckets are not those of most pods, and sets the failure in their results.
func (p *metricPlan) compatible(i int, shares []*share, from []*visit) []*share {
	if len(shares) == 0 || shares[0].dist == nil {
		return shares
	}
	kept := shares[:0:0]
	for k, same := range agree(shares) {
		if same {
			kept = append(kept, shares[k])
			continue
		}
		v := from[k]
		v.shares[i] = nil
		v.result.Values[i].OK = false
		v.result.Values[i].Reused = false
		v.result.Values[i].Err = failf(Buckets, "its buckets are not those of most pods").of(v.pod.Name, p.Name)
	}
	return kept
}

// unknown explains why a reading has no value.
func (p *metricPlan) unknown(i int, visits []*visit, shares, notReady int, fail *Error) error {
	switch {
	case len(visits) == 0:
		return (&Error{Reason: NoPods, Err: ErrNoPods}).of("", p.Name)
	case notReady == len(visits):
		return failf(NoPods, "none of %d pods is ready", notReady).of("", p.Name)
	case shares > 0:
		return fail.of("", p.Name)
	}
	var counts [NoPods + 1]int
	most := None
	for _, v := range visits {
		if e := v.result.Values[i].Err; e != nil {
			counts[e.Reason]++
		}
	}
	parts := make([]string, 0, 4)
	for r, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", n, Reason(r)))
			if n > counts[most] {
				most = Reason(r)
			}
		}
	}
	if notReady > 0 {
		parts = append(parts, fmt.Sprintf("%d not ready", notReady))
	}
	return failf(most, "no pod gave a value: %s", strings.Join(parts, ", ")).of("", p.Name)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func count(n int) int32 { return scaling.Saturate(float64(n)) }
